"""Shared guards: dependencies of a specialization beyond shapes, dtypes, LoDs and attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fluidnb.values.copies import on_host

if TYPE_CHECKING:
    from fluidnb.op.binder import Binder


class ValuesOf:
    """The guard of operators that take a shape, an axis or a count as a variable; without one they need no guard.

    Args:
        slots: the input slots whose values count; small integer tensors.

    Example:
        >>> guard = ValuesOf("Shape")
        >>> guard.applies({"X": ["x"]}), guard.applies({"X": ["x"], "Shape": ["s"]})
        (False, True)
    """

    def __init__(self, *slots: str) -> None:
        self.slots = slots

    def applies(self, inputs: Mapping[str, Any]) -> bool:
        """Whether an operator with these inputs has such a variable; slots without arguments are left out."""
        return any(slot in inputs for slot in self.slots)

    def __call__(self, b: Binder) -> tuple[Any, ...]:
        """The values now, as a comparable tuple."""
        return tuple(
            (slot, i, on_host(x).tobytes()) for slot in self.slots for i, x in enumerate(b.all(slot)) if x is not None
        )


def values_of(*slots: str) -> ValuesOf:
    """A guard for operators whose result's shape depends on the values of some inputs, where these are given.

    Args:
        slots: the input slots.

    Returns:
        The guard, for ``guard=``.

    Example:
        >>> from fluidnb.op import get_op
        >>> get_op("reshape").guard.slots
        ('Shape', 'ShapeTensor')
    """
    return ValuesOf(*slots)
