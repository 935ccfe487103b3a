"""The timeline widget: a profiled run to zoom into, with the sums of the visible part."""

from collections.abc import Sequence
from typing import Any

import traitlets

from fluidnb.debug.profile import Profile
from fluidnb.program import Program
from fluidnb.runtime.observers import Observer, observers
from fluidnb.values import CPUPlace
from fluidnb.viz.base.styled_text import Line
from fluidnb.viz.time.timeline import Timeline, read_timeline, timeline_lines
from fluidnb.viz.time.timeline_svg import timeline_html
from fluidnb_magics.session.workbench import Workbench
from fluidnb_magics.widgets.live_widget import ProgramWidget
from fluidnb_magics.widgets.widget import script, style


class TimelineExplorer(ProgramWidget):
    """The timeline of profiled runs (None waits for the next one); later runs of the program are profiled at times."""

    _esm = script("chart", "canvas", "timeline")
    _css = style("chart", "canvas", "timeline")
    timeline = traitlets.Dict().tag(sync=True)
    state = traitlets.Unicode().tag(sync=True)

    def __init__(self, bench: Workbench, program: Program, timeline: Timeline | None = None) -> None:
        self._shown = Timeline(()) if timeline is None else timeline
        self._profile = Profile()
        self._recorded: tuple[int, Profile] | None = None
        self._record: Observer = self._profile.record
        super().__init__(
            bench, program, timeline=_columns(self._shown, program),
            state="no run yet: the next one is shown" if timeline is None else "",
        )  # fmt: skip
        self._begin()

    def lines(self) -> Sequence[Line]:
        if not self._shown.bars:
            return [[(self.state, "dim")]]
        return timeline_lines(self._shown)

    def html(self) -> str:
        return timeline_html(self._shown) if self._shown.bars else super().html()

    def unfollow(self) -> None:
        self._end()
        super().unfollow()

    def ran(self, program: Program, scope: Any) -> bool:
        if program is not self._program():
            self._profile.events.clear()  # another program that ran meanwhile
            return False
        if self._end() and self._profile.events:
            self._recorded = self.runs + 1, self._profile
        return True

    def refresh(self) -> None:
        program = self._program()
        if program is not None and self._recorded is not None:
            number, profile = self._recorded
            self._recorded = None
            self._shown = read_timeline(profile)
            self.push(timeline=_columns(self._shown, program), state=f"run {number:,} since this was opened")
        self._begin()

    def _begin(self) -> None:
        """Record the next run."""
        if self._recorded is None and self._record not in observers:
            self._profile = Profile()
            self._record = self._profile.record
            observers.append(self._record)

    def _end(self) -> bool:
        """Stop recording; whether it recorded."""
        records = self._record in observers
        if records:
            observers.remove(self._record)
        return records


def _columns(timeline: Timeline, program: Program) -> dict[str, Any]:
    """A timeline as plain data for the page: each operator once, and its runs in columns."""
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
