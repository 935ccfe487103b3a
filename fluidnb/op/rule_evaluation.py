"""Evaluates guards and shape rules, which may read the values of operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fluidnb.op.select import select
from fluidnb.values.copies import on_host

if TYPE_CHECKING:
    from fluidnb.op.binder import Binder


def is_array(value: Any) -> bool:
    """Whether an operand is an array, of whatever place."""
    return isinstance(getattr(value, "shape", None), tuple)


def evaluate(function: Callable[[Any], Any], binder: Binder) -> Any:
    """Evaluates an operator's guard or shape rule; of a host-only operator, on host copies of the operands."""
    inputs, here = binder._inputs, binder.memory.place_kind
    if here == "cpu" or binder.op.guard is None:
        return function(binder)
    if select(binder.definition, binder._dtype(), here, binder.attrs).kernel.place == here:
        return function(binder)
    binder._inputs = {s: [(on_host(v) if is_array(v) else v, lod) for v, lod in row] for s, row in inputs.items()}
    try:
        return function(binder)
    finally:
        binder._inputs = inputs
