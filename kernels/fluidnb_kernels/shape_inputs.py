"""Shapes, axes and counts that come as an attribute, or as variables that take its place when the program runs."""

from __future__ import annotations

from fluidnb.op import Context
from fluidnb.values.copies import on_host

#: Slots that give a shape as one variable, or as a list of sizes.
SHAPE_SLOTS = {
    "ShapeTensor?": "the sizes as a variable, instead of the attribute",
    "ShapeTensorList*?": "each size as a variable of one element",
}


def integers(c: Context, attr: str, whole: str = "", each: str = "", unknown: int = -1) -> list[int]:
    """Whole numbers of an attribute, or of variables; an operator that reads them needs ``guard=values_of(...)``."""
    for slot in (whole, each):
        if slot and c.has(slot):
            values = c.all(slot)
            if not c.runtime:
                return [unknown] * (len(values) if slot == each else max(values[0].size, 0))
            return [int(n) for v in values for n in on_host(v).reshape(-1)]
    value = c.attr(attr, 0)
    return list(value) if isinstance(value, list) else [value]


def integer(c: Context, attr: str, whole: str) -> int:
    """The whole number that an operator is given; -1 while it is unknown; see `integers`."""
    if not c.has(whole):
        return int(integers(c, attr)[0])
    size = c[whole].size
    c.require(
        size == 1 or size <= 0 and not c.runtime, f"Input({whole}) of {c.definition.type} must hold one number.",
        expected="shape [1]", received=list(c[whole].shape),
    )  # fmt: skip
    return int(on_host(c[whole]).reshape(-1)[0]) if c.runtime else -1
