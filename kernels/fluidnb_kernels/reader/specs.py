"""Shared parts of reader operators: attributes that declare tensors, and opening a reader."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fluidnb.op import Attr, Binder, Context
from fluidnb.op.compile_context import CompileContext
from fluidnb.values import Variable
from fluidnb.values.reader import Reader

#: Attributes of operators that open a reader.
TENSORS = {
    "shape_concat": Attr("ints", doc="the sizes of all tensors, one after another"),
    "ranks": Attr("ints", doc="how many of these sizes each tensor has"),
    "lod_levels": Attr("ints", [], "the LoD level of each tensor"),
    "use_data_config": Attr("bool", True, "whether the attributes declare the tensors"),
}


def shapes_of(attrs: Mapping[str, Any]) -> list[list[int]]:
    """The shapes that the attributes declare.

    Args:
        attrs: with ``shape_concat`` and ``ranks``.

    Example:
        >>> shapes_of({"shape_concat": [-1, 3, 4, -1, 1], "ranks": [3, 2]})
        [[-1, 3, 4], [-1, 1]]
    """
    sizes = iter(attrs["shape_concat"])
    return [[next(sizes) for _ in range(rank)] for rank in attrs["ranks"]]


def check_tensors(attrs: Mapping[str, Any]) -> str | None:
    """Checks `TENSORS`: None, or the fault as a sentence."""
    ranks, levels = attrs["ranks"], attrs["lod_levels"]
    if any(rank < 0 for rank in ranks):
        return f"ranks are numbers of sizes, and one is {min(ranks)}."
    if sum(ranks) != len(attrs["shape_concat"]):
        return f"shape_concat has {len(attrs['shape_concat'])} sizes, and ranks take {sum(ranks)}."
    if levels and len(levels) != len(ranks):
        return f"lod_levels has {len(levels)} entries for {len(ranks)} tensors."
    return None


def declare_tensors(c: Context) -> None:
    """The shape rule of operators that open a reader."""
    if isinstance(c, CompileContext) and c.attr("use_data_config"):
        shapes = shapes_of({name: c.attr(name) for name in ("shape_concat", "ranks")})
        levels = c.attr("lod_levels") or [0] * len(shapes)
        c.set_reader("Out", [(shape, None, level) for shape, level in zip(shapes, levels, strict=True)])


def same_tensors(c: Context) -> None:
    """The shape rule of operators that decorate a reader."""
    if isinstance(c, CompileContext):
        c.set_reader("Out", c.reader("UnderlyingReader"))


def emit_open(b: Binder, slot: str | None, make: Callable[[Any, str], Reader]) -> None:
    """Emit the call that lets the output hold a reader over a slot's value, and do it now for the next operators."""
    out = b.scope.cell(b.outputs["Out"][0])[0]
    under = None if slot is None else b.scope.cell(b.inputs[slot][0])[0]
    open_reader(out, under, make)
    b(open_reader, out, under, make)


def open_reader(out: Variable, under: Variable | None, make: Callable[[Any, str], Reader]) -> None:
    """Let a variable hold a reader, unless it holds one over the same value already."""
    over = None if under is None else under.value
    held = out.value
    if not isinstance(held, Reader) or (held is not over and held.over is not over):
        out.value = make(over, out.name)
