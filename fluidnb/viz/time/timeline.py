"""A profiled run as a timeline: lanes by nesting depth, and a table of time by operator type."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fluidnb.debug.profile import Event, Profile
from fluidnb.values.place import CPUPlace, Place
from fluidnb.viz.base.device_names import device_name
from fluidnb.viz.base.styled_text import Line, columns, cut, plural
from fluidnb.viz.program.model import BlockRow, OpRow, ProgramPicture

#: Characters of a lane, and of the longest bar of the table.
_LANE, _BAR = 64, 20


@dataclass(frozen=True, slots=True)
class Bar:
    """An executed operator; times in ns from the start."""

    event: Event  # its event in the profile
    start: int
    end: int
    depth: int  # number of enclosing operators with blocks
    own: int  # its self time, without operators inside it


@dataclass(frozen=True, slots=True)
class Share:
    """A row of the table; times in ns."""

    type: str
    role: str
    calls: int
    own: int  # their self time, without operators inside them
    longest: Bar  # the longest of them, whose source line is shown


@dataclass(frozen=True, slots=True)
class Timeline:
    """A profiled period."""

    bars: tuple[Bar, ...]  # the operators by start time
    runs: tuple[int, ...] = ()  # the start of each run, if known

    @property
    def length(self) -> int:
        """Time from the first operator to the end of the last, in ns."""
        return max((bar.end for bar in self.bars), default=0)

    @property
    def busy(self) -> int:
        """Time inside operators, in ns."""
        return sum(bar.own for bar in self.bars)

    @property
    def places(self) -> list[Place]:
        """The places of the operators, the host first."""
        return Profile([bar.event for bar in self.bars]).places

    @property
    def lanes(self) -> list[tuple[Place, int]]:
        """Place and depth of each lane; the lanes of the host are above those of devices."""
        order = self.places
        return sorted({(b.event.place, b.depth) for b in self.bars}, key=lambda lane: (order.index(lane[0]), lane[1]))

    def label(self, lane: tuple[Place, int]) -> str:
        """The label of a lane: its depth, and its place if there are devices."""
        place, depth = lane
        if self.places == [CPUPlace()]:
            return str(depth)
        return f"{'host' if place is CPUPlace() else place} {depth}"

    @property
    def clocks(self) -> list[str]:
        """A sentence for each device about the clock of its times."""
        return [f"device time by CUDA events: {p}, {device_name(p)}" for p in self.places if p.kind == "cuda"]

    @property
    def shares(self) -> list[Share]:
        """Self time by type and role, the largest first."""
        groups: dict[tuple[str, str], list[Bar]] = defaultdict(list)
        for bar in self.bars:
            groups[bar.event.type, bar.event.role].append(bar)
        rows = [
            Share(name, role, len(bars), sum(b.own for b in bars), max(bars, key=lambda b: b.own))
            for (name, role), bars in groups.items()
        ]
        return sorted(rows, key=lambda r: -r.own)


def read_timeline(profile: Profile | Sequence[Event], runs: Sequence[int] = ()) -> Timeline:
    """Reads a profile as a timeline."""
    events = profile.events if isinstance(profile, Profile) else list(profile)
    begin = min((e.start for e in events), default=0)
    own = {id(e): e.end - e.start for e in events}
    depths: dict[int, int] = {}
    around: list[Event] = []
    ordered = sorted(events, key=lambda e: (e.start, -e.end))
    for event in ordered:
        while around and (around[-1].end < event.end or around[-1].end <= event.start):
            around.pop()
        depths[id(event)] = len(around)
        if around:
            own[id(around[-1])] -= event.end - event.start
        around.append(event)
    bars = tuple(Bar(e, e.start - begin, e.end - begin, depths[id(e)], own[id(e)]) for e in ordered)
    ends = zip(runs, [*runs[1:], len(events)], strict=False)
    starts = [min(e.start for e in events[a:b]) - begin for a, b in ends if a < b]
    return Timeline(bars, tuple(starts))


def timeline_lines(timeline: Timeline, width: int = 0, top: int = 12) -> list[Line]:
    """Text rendering, with the ``top`` operator types."""
    words = f"{plural(len(timeline.bars), 'operator')}, {time_text(timeline.length)}"
    if len(timeline.runs) > 1:
        words += f", {plural(len(timeline.runs), 'run')}"
    gaps = timeline.length - timeline.busy
    if gaps > timeline.length / 100:
        words += f", {time_text(gaps)} of it between operators"
    labels = [(timeline.label(lane), lane) for lane in timeline.lanes]
    wide = max((len(name) for name, _ in labels), default=0)
    size = max(min(_LANE, width - wide - 3), 8) if width else _LANE
    lines: list[Line] = [[("timeline  ", "bold"), (words, "dim")]]
    lines += [[(clock, "dim")] for clock in timeline.clocks]
    lines += [[(f"{name:<{wide}}  ", "dim"), *_lane(timeline, lane, size)] for name, lane in labels]
    shares, whole = timeline.shares, timeline.busy or 1
    rows: list[list[Line]] = []
    for share in shares[:top]:
        bar = "█" * round(_BAR * share.own / whole)
        rows.append([
            [(share.type, share.role)], [(bar, share.role)], [(f"{share.own / whole:>4.0%}", "")],
            [(time_text(share.own), "")], [(f"{share.calls} times" if share.calls > 1 else "", "dim")],
            [(share.longest.event.cell, "location")],
        ])  # fmt: skip
    rest = shares[top:]
    if rest:
        own = sum(s.own for s in rest)
        rows.append([[(f"{plural(len(rest), 'more type')}, {own / whole:.0%}", "dim")]])
    lines += columns(rows, width)
    return [cut(line, width) for line in lines] if width else lines


def time_text(ns: float) -> str:
    """A time as text with a unit."""
    if ns < 1e6:
        return f"{ns / 1e3:.1f} µs"
    return f"{ns / 1e6:.1f} ms" if ns < 1e9 else f"{ns / 1e9:.1f} s"


def _lane(timeline: Timeline, lane: tuple[Place, int], size: int) -> Line:
    """A lane: each character has the role with the most time in it; lighter if less than half is busy."""
    whole = timeline.length or 1
    taken: list[dict[str, float]] = [defaultdict(float) for _ in range(size)]
    for bar in timeline.bars:
        if (bar.event.place, bar.depth) == lane:
            first, last = bar.start * size / whole, bar.end * size / whole
            for i in range(int(first), min(int(last) + 1, size)):
                taken[i][bar.event.role] += max(min(last, i + 1) - max(first, i), 0)
    line: Line = []
    for cell in taken:
        role = max(cell, key=lambda r: cell[r]) if cell else ""
        share = sum(cell.values())
        line.append(("█" if share >= 0.5 else "▒" if share >= 0.05 else " ", role))
    while line and line[-1][0] == " ":
        line.pop()
    return line


def timed(picture: ProgramPicture, timeline: Timeline) -> ProgramPicture:
    """Adds the mean time of each operator in profiled runs to a program."""
    runs, whole = max(len(timeline.runs), 1), timeline.busy or 1
    times: dict[tuple[int, int], list[int]] = defaultdict(list)
    for bar in timeline.bars:
        times[bar.event.block, bar.event.index].append(bar.own)

    def block(row: BlockRow) -> BlockRow:
        return replace(row, ops=tuple(map(op, row.ops)))

    def op(row: OpRow) -> OpRow:
        took, text = times.get((row.block, row.index), []), ""
        if took:
            count = len(took) / runs
            text = (f"{count:.0f} times  " if count > 1 else "") + time_text(sum(took) / runs)
        return replace(row, blocks=tuple(map(block, row.blocks)), took=text, share=sum(took) / whole)

    mean = f"mean of {runs} runs" if runs > 1 else "one run"
    clocks = timeline.clocks or ["by the host's clock"]
    note = f"({'; '.join([mean, *clocks])})"
    return replace(picture.with_blocks(block), note=note)
