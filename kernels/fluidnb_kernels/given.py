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
    """Whole numbers that an operator is given.

    While building, the values of variables are not known; while running, an operator that reads them here must have
    ``guard=values_of(whole, each)``.

    Args:
        c: the context.
        attr: the attribute: a number or a list.
        whole: slot of one variable with all of them; it wins over the others.
        each: slot of a list of variables with one of them each.
        unknown: what stands for a number that is not known yet.

    Returns:
        The numbers.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("fill_constant", {"ShapeTensor": [2, 3]})["Out"].shape
        (2, 3)
    """
    for slot in (whole, each):
        if slot and c.has(slot):
            values = c.all(slot)
            if not c.runtime:
                return [unknown] * (len(values) if slot == each else max(values[0].size, 0))
            return [int(n) for v in values for n in on_host(v).reshape(-1)]
    value = c.attr(attr, 0)
    return list(value) if isinstance(value, list) else [value]
