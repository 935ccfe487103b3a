"""What the cases put around their methods."""

import functools

import paddle.fluid as fluid


def prog_scope():
    """Programs and a scope of its own for a test method."""

    def wrap(method):
        @functools.wraps(method)
        def inside(*args, **kwargs):
            with fluid.scope_guard(fluid.core.Scope()):
                with fluid.program_guard(fluid.Program(), fluid.Program()):
                    return method(*args, **kwargs)

        return inside

    return wrap


def many_times(count):
    def wrap(method):
        @functools.wraps(method)
        def inside(*args, **kwargs):
            for _ in range(count):
                method(*args, **kwargs)

        return inside

    return wrap
