"""Transpilers of Fluid, and of the design documents, that are still to come: a call says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from fluidnb.layers.absent import refusal

MACHINES = (
    "training on several machines is still to come",
    "fluid.Executor trains the whole program in one process.",
)
_SOURCE = (
    "writing a program as source code is still to come",
    "fluid.io.save_inference_model writes what Paddle's own library runs; fluid.Executor runs it here.",
)

#: name -> (why, what to use instead)
ABSENT = {
    "CodeGenerator": _SOURCE,
    "DistributeTranspiler": MACHINES,
    "DistributeTranspilerConfig": MACHINES,
    "HashName": MACHINES,
    "RoundRobin": MACHINES,
    "SimpleDistributeTranspiler": MACHINES,
}


def absent(name: str) -> Callable[..., NoReturn]:
    """What stands in the place of a transpiler that is to come.

    Args:
        name: one of `ABSENT`.

    Returns:
        A function that raises, whatever it is given; looking at the name does not.

    Example:
        >>> fluid.transpiler.DistributeTranspiler()
        Traceback (most recent call last):
        fluidnb.errors.NotBuiltYet: fluid.transpiler.DistributeTranspiler is not part of fluidnb yet: training on ...
          ...
    """
    return refusal(f"fluid.transpiler.{name}", *ABSENT[name])
