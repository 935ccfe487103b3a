"""The timeline widget: a profiled run to zoom into, with the sums of what is in view."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import traitlets

from fluidnb.program import Program
from fluidnb.values import CPUPlace
from fluidnb.viz.spans import Line
from fluidnb.viz.timeline import Timeline
from fluidnb.viz.timeline_svg import timeline_html
from fluidnb_magics.selection import Chosen
from fluidnb_magics.widgets.face import Face, script, style
from fluidnb_magics.workbench import Workbench


class TimelineExplorer(Face):
    """Where the time of some runs went.

    Args:
        bench: the session behind the magics.
        program: what ran.
        timeline: the runs.
        lines: the text face.

    Attributes:
        timeline: the operators that ran.
        picked_things: the operators and the variable that are selected.
    """

    _esm = script("chart", "canvas", "timeline")
    _css = style("chart", "canvas", "timeline")
    timeline = traitlets.Dict().tag(sync=True)
    picked_things = traitlets.Dict().tag(sync=True)

    def __init__(self, bench: Workbench, program: Program, timeline: Timeline, lines: Sequence[Line]) -> None:
        super().__init__(timeline=_columns(timeline, program))
        self._bench, self._program = bench, weakref.ref(program)
        self._lines, self._html = lines, timeline_html(timeline)
        bench.faces.add(self)
        bench.selection.observe(self._picked)
        self._picked(bench.selection.chosen)

    def lines(self) -> Sequence[Line]:
        return self._lines

    def html(self) -> str:
        return self._html

    def close(self) -> None:
        """End the widget."""
        self._bench.selection.forget(self._picked)
        super().close()

    def do_pick(self, block: int, index: int) -> None:
        """Select an operator.

        Args:
            block: its block.
            index: its index there.
        """
        program = self._program()
        if program is not None and index >= 0:
            self._bench.selection.choose(Chosen(program, ops=((block, index),)))

    def _picked(self, chosen: Chosen | None) -> None:
        found: dict[str, Any] = {}
        if chosen is not None and chosen.program is self._program():
            found = {"ops": [list(spot) for spot in chosen.ops], "name": chosen.variable}
        self.picked_things = found


def _columns(timeline: Timeline, program: Program) -> dict[str, Any]:
    """A timeline as the page draws it: each operator once, and its runs in columns."""
    ops: dict[Any, int] = {}
    rows: list[list[Any]] = []
    blocks = program.desc.blocks
    which, lanes = [], {lane: i for i, lane in enumerate(timeline.lanes)}
    for bar in timeline.bars:
        e = bar.event
        key = (e.block, e.index, e.label, e.place)
        if key not in ops:
            ops[key] = len(rows)
            known = 0 <= e.block < len(blocks) and 0 <= e.index < len(blocks[e.block].ops)
            op = blocks[e.block].ops[e.index] if known else None
            names = [] if op is None else [*op.output_arg_names(), *op.input_arg_names()]
            place = "host" if e.place is CPUPlace() else str(e.place)
            rows.append([e.type, e.role, e.block, e.index, e.label, e.cell, names, place])
        which.append(ops[key])
    return {
        "ops": rows, "op": which, "start": [b.start for b in timeline.bars], "end": [b.end for b in timeline.bars],
        "lane": [lanes[b.event.place, b.depth] for b in timeline.bars], "own": [b.own for b in timeline.bars],
        "lanes": [timeline.label(lane) if timeline.clocks else f"depth {lane[1]}" for lane in lanes],
        "runs": list(timeline.runs), "length": timeline.length, "clocks": timeline.clocks,
    }  # fmt: skip
