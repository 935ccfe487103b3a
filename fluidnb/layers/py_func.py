"""A Python function as a layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fluidnb.errors import NotFound, OpTypeError, OpValueError, near
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.one_op import check_variable
from fluidnb.op.callables import callable_id
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = ["py_func"]

Variables = Variable | Sequence[Variable] | None


@naming.layer
def py_func(
    func: Callable[..., Any],
    x: Variables,
    out: Variables,
    backward_func: Callable[..., Any] | None = None,
    skip_vars_in_backward_input: Variables = None,
) -> Variables:
    """Call a Python function in every run, in the place of an operator.

    Args:
        func: is called with a LoDTensor for each of ``x`` and returns an array or a LoDTensor for each of ``out``.
        x: a Variable, a list of them, or None.
        out: what it returns goes into these; they are made beforehand, with shape and dtype. None for nothing.
        backward_func: is called with ``x``, ``out`` and the gradients of ``out``, and returns a gradient for each of
            ``x``; None for one means zeros. Without it no gradient passes.
        skip_vars_in_backward_input: variables among ``x`` and ``out`` that it is not called with.

    Returns:
        ``out``.

    Raises:
        OpTypeError: a function cannot be called, or something is not a Variable.
        OpValueError: an output without a shape.
        NotFound: a variable to skip is neither in ``x`` nor in ``out``.

    Example:
        >>> x = fluid.layers.data("x", [2])
        >>> y = fluid.default_main_program().current_block().create_var(name="y", shape=[-1, 2], dtype="float32")
        >>> y = fluid.layers.py_func(lambda t: np.array(t) ** 3, x, y)
        >>> fluid.Executor(fluid.CPUPlace()).run(feed={"x": np.array([[1, 2]], "float32")}, fetch_list=[y])[0]
        array([[1., 8.]], dtype=float32)

    Source: Fluid's layers.py_func.
    """
    for argument, function in (("func", func), ("backward_func", backward_func)):
        if not callable(function) and not (function is None and argument == "backward_func"):
            raise OpTypeError(
                f"Input {argument} of py_func must be a function.", expected="something that can be called",
                received=f"{function!r} ({type(function).__name__})",
            )  # fmt: skip
    given, made, skipped = (
        _listed(v, argument)
        for v, argument in ((x, "x"), (out, "out"), (skip_vars_in_backward_input, "skip_vars_in_backward_input"))
    )
    for v in made:
        if not v.shape:
            raise OpValueError(
                "Output shapes of py_func must be given.", expected="a shape, -1 for unknown sizes",
                received=f"{v.name} without a shape", hint="create_var(name=..., shape=[...], dtype=...) makes one.",
            )  # fmt: skip
    known = [v.name for v in (*given, *made)]
    for v in skipped:
        if v.name not in known:
            raise NotFound(
                f"{v.name} is skipped, but py_func has no such variable.", expected=f"one of {', '.join(known)}",
                received=v.name, hint=near(v.name, known),
            )  # fmt: skip
    LayerHelper("py_func").append_op(
        type="py_func", inputs={"X": given}, outputs={"Out": made},
        attrs={
            "forward_callable_id": callable_id(func),
            "backward_callable_id": -1 if backward_func is None else callable_id(backward_func),
            "backward_skip_vars": [v.name for v in skipped],
        },
    )  # fmt: skip
    return out


def _listed(value: Variables, argument: str) -> list[Variable]:
    found = [] if value is None else [value] if isinstance(value, Variable) else value
    if not isinstance(found, list | tuple):
        check_variable(value, argument, "py_func")
    for v in found:
        check_variable(v, argument, "py_func")
    return list(found)
