"""Modules of Fluid by the names that its versions gave them: which are ours, and which there are not.

Example:
    >>> SAME["data_feeder"], absent_module("paddle.fluid.dygraph.nn").__name__
    ('fluidnb.data', 'dygraph.nn')
"""

from __future__ import annotations

from types import ModuleType

import fluidnb as fluid
from fluidnb.absent import CONTRIB, EAGER, FILES, MACHINES, MODULES, AbsentModule

#: module of Fluid -> our module that has what it has
SAME = {
    "data_feeder": "fluidnb.data",
    "inferencer": "fluidnb.contrib.inferencer",
    "inference_transpiler": "fluidnb.transpiler.inference_transpiler",
    "learning_rate_decay": "fluidnb.layers",
    "lod_tensor": "fluidnb.values",
    "memory_optimization_transpiler": "fluidnb.transpiler.memory_optimization_transpiler",
    "trainer": "fluidnb.contrib.trainer",
}

_INSIDE = (
    "it serves Fluid's own source code",
    "what it makes is there: layers.fc and the like, operators of variables, context managers.",
)
_GROUPS = {
    _INSIDE: """annotations input layers.layer_function_generator layers.math_op_patch layers.utils
        log_helper wrapped_decorator""",
    (
        "it runs blocks in threads that talk by channels, and was given up in version 1.0",
        "Python's threads, each with an Executor and a scope.",
    ): "concurrency",
    EAGER: "imperative",
    MACHINES: """distribute_lookup_table distributed incubate layers.collective transpiler.collective transpiler.details
        transpiler.distribute_transpiler transpiler.geo_sgd_transpiler transpiler.ps_dispatcher""",
    FILES: """async_executor data_feed_desc data_generator device_worker proto.data_feed_pb2 trainer_desc
        trainer_factory""",
    (
        "profiles are JSON of chrome://tracing here",
        "fluid.profiler.stop_profiler gives and writes them.",
    ): "proto.profiler",
    (
        "it was added in version 1.5 and is not built",
        "layers.gaussian_random, uniform_random and the arithmetic of variables.",
    ): "layers.distributions",
}  # fmt: skip

#: module of Fluid that there is not -> (why, what to use instead)
ABSENT = {name: facts for facts, names in _GROUPS.items() for name in names.split()}
ABSENT.update((f"contrib.{name}", facts) for name, facts in CONTRIB.items())

_ROOTS = ("paddle.fluid.", "paddle.v2.fluid.", "paddle.v2.framework.")


def absent_module(fullname: str) -> ModuleType | None:
    """Placeholder for a module that fluidnb does not have; its names raise NotBuiltYet.

    Args:
        fullname: the module's name in Paddle.

    Returns:
        The module; None for a name that is no such module.

    Example:
        >>> absent_module("paddle.fluid.contrib.slim").Compressor()
        Traceback (most recent call last):
        fluidnb.errors.NotBuiltYet: fluid.contrib.slim.Compressor is not part of fluidnb yet: it makes ...
          ...
    """
    root = next((r for r in _ROOTS if fullname.startswith(r)), None)
    if root is None:
        return None
    name = fullname.removeprefix(root)
    if name in MODULES:
        module: ModuleType = getattr(fluid, name)
        return module
    for known, facts in {**MODULES, **ABSENT}.items():
        if name == known or name.startswith(f"{known}."):
            return AbsentModule(name, facts)
    return None
