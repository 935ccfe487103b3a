"""The memory widget: buffers in the arenas of a program over time, and the pool during runs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import traitlets

from fluidnb.errors import NotFound
from fluidnb.memory import size_text
from fluidnb.program import Program
from fluidnb.viz.base.curves import Curve
from fluidnb.viz.base.styled_text import Line, plural
from fluidnb.viz.memory.model import ArenaMap, PoolPicture
from fluidnb.viz.memory.pools import read_pools
from fluidnb.viz.memory.reader import arena_mark, last_place, read_memory
from fluidnb.viz.memory.svg import memory_html
from fluidnb.viz.memory.text import memory_lines
from fluidnb_magics.session.workbench import Workbench
from fluidnb_magics.widgets.live_widget import ProgramWidget
from fluidnb_magics.widgets.widget import script, style

_MOST = 500  # owners of memory that are listed; the largest are


class MemoryExplorer(ProgramWidget):
    """The memory of a program, live."""

    _esm = script("chart", "canvas", "memory")
    _css = style("chart", "canvas", "memory")
    arenas: traitlets.List[Any] = traitlets.List().tag(sync=True)  # the arena of each block over time
    # the pool of each place over the runs, and the owners of its memory; first where the program ran
    pools: traitlets.List[Any] = traitlets.List().tag(sync=True)
    state = traitlets.Unicode().tag(sync=True)

    def __init__(self, bench: Workbench, program: Program) -> None:
        self._mark: Hashable = None
        self._used: dict[str, Curve] = {}
        self._added = -1
        super().__init__(bench, program)
        self.update()

    def lines(self) -> Sequence[Line]:
        return self._rendered(memory_lines) or [[("this program has not run yet", "dim")]]

    def html(self) -> str:
        return self._rendered(memory_html) or super().html()

    def _rendered(self, rendering: Any) -> Any:
        program = self._program()
        try:
            return None if program is None else rendering(read_memory(program))
        except NotFound:
            return None

    def refresh(self) -> None:
        program = self._program()
        if program is None:
            self.push(state="the program is gone")
            return
        mark = arena_mark(program)
        if mark is not None and mark != self._mark:
            self._mark = mark
            picture = read_memory(program)
            changed = "the program was changed since it ran" if picture.changed else ""
            self.push(arenas=[_arena(each) for each in picture.maps], state=changed)
        elif mark is None:
            self.push(state="this program has not run yet")
        pools = read_pools(program, last_place(program) or self.bench.place)
        if self.runs != self._added:
            self._added = self.runs
            for pool in pools:
                self._used.setdefault(pool.stats.place, Curve("used")).add(self.runs, pool.stats.used)
        self.push(pools=[self._pool(pool) for pool in pools])

    def _pool(self, pool: PoolPicture) -> dict[str, Any]:
        stats, curve = pool.stats, self._used.get(pool.stats.place, Curve("used"))
        reserved = f"{size_text(stats.reserved)} reserved"
        if pool.limit:
            reserved += f" of at most {size_text(pool.limit)}"
        return {
            "place": stats.place, "device": pool.device, "runs": self.runs, "used": stats.used, "peak": stats.peak,
            "points": [[step, used] for step, used in curve.points],
            "words": f"{size_text(stats.used)} used, peak {size_text(stats.peak)}, {reserved}, "
            f"{plural(len(stats.live), 'block')}, {stats.fragmentation:.0%} fragmented",
            "holders": [[h.name, h.bytes, h.count, h.kind] for h in pool.holders[:_MOST]],
        }  # fmt: skip


def _arena(arena: ArenaMap) -> dict[str, Any]:
    data: dict[str, Any] = {
        "block": arena.block, "size": arena.size, "peak": arena.peak, "starts": arena.starts, "live": arena.live,
        "steps": [[s.index, s.type, s.role, s.location] for s in arena.steps],
        "buffers": [
            [list(b.names) or [arena.called(b)], b.offset, b.size, b.first, b.last, bool(b.names)]
            for b in arena.buffers
        ],
        "words": "it is empty",
    }  # fmt: skip
    if arena.buffers:
        data["peak_call"] = arena.peak_call
        data["words"] = (
            f"{arena.words} at {arena.peak_step.text}; "
            f"{arena.fragmentation:.0%} lost to gaps; {size_text(arena.unshared)} without sharing"
        )
    return data
