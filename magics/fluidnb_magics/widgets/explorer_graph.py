"""One level of a program as a graph for the page, with what a click on each of its nodes opens."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from fluidnb.errors import FluidError
from fluidnb.viz import OpRow, ProgramPicture, dot_svg, level, part, program_svg
from fluidnb.viz.base.svg import new_uid


@dataclass(frozen=True, slots=True)
class Graph:
    """A drawn graph.

    Args:
        span: which part of the program it is; empty for all of it.
        svg: the picture; empty if there is none.
        why: why it is a listing, or why there is none.
        counts: how much it holds, in words.
        uid: start of all ids in the picture.
        folds: id of a node that stands for several operators -> the part to open.
    """

    span: str = ""
    svg: str = ""
    why: str = ""
    counts: str = ""
    uid: str = ""
    folds: dict[str, str] = field(default_factory=dict)


def drawn(picture: ProgramPicture, span: str, stop: threading.Event) -> Graph:
    """Draw a level of a program.

    Args:
        picture: the program.
        span: a part of it as `fluidnb.viz.part` takes it; empty for all of it.
        stop: gives up the layout when it is set.

    Returns:
        The graph; where Graphviz gives none, the listing of the same level.

    Example:
        >>> x = fluid.layers.data("x", [3])
        >>> from fluidnb.viz import read_program
        >>> y = fluid.layers.relu(x)
        >>> graph = drawn(read_program(fluid.default_main_program()), "", threading.Event())
        >>> f'id="{graph.uid}op_0_0"' in graph.svg, graph.folds
        (True, {})
    """
    try:
        shown = level(part(picture, span) if span else picture)
    except FluidError as error:
        return Graph(span, why=str(error))
    uid = new_uid()
    layout = dot_svg(shown, uid, stop=stop)
    if stop.is_set():
        return Graph(span, why=layout.why)
    ops = [op for block in shown.blocks for _, op in block.walk()]
    folds = {f"{uid}op_{op.block}_{op.index}": _inside(op) for op in ops if op.hides or op.folded}
    return Graph(span, layout.svg or program_svg(shown, uid), layout.why, shown.counts, uid, folds)


def _inside(op: OpRow) -> str:
    """What is folded away in a node, as a part of the program."""
    if op.hides:
        return f"{op.block}:{op.hides[0].index}-{op.hides[-1].index}"
    return str(op.folded[0].index)
