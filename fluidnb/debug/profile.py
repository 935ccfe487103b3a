"""Profiles: one event for each operator that ran, and tables of them."""

import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter

from fluidnb.errors import OpValueError, near
from fluidnb.program.constants import role_of
from fluidnb.runtime.compile.lowering import LoweredOp
from fluidnb.runtime.observers import observers
from fluidnb.values.place import CPUPlace, Place

_HOST = CPUPlace()


@dataclass(frozen=True, slots=True)
class Event:
    """One operator that ran."""

    type: str
    label: str  # its index, type and block as text
    block: int  # index of its block
    cell: str  # the cell or file and the line that created it, or an empty text
    start: int  # its start, in ns
    end: int  # its end, in ns
    role: str = "forward"  # ``forward``, ``backward`` or ``optimizer``
    index: int = -1  # its index in its block; -1 if unknown
    place: Place = _HOST  # where it ran; times on a device are those of the device's clock


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table; times in ms."""

    event: str  # the name of the group
    calls: int
    total: float  # their sum
    min: float  # the shortest call
    max: float  # the longest call
    ratio: float  # the share of the total time

    @property
    def ave(self) -> float:
        """The mean, in ms."""
        return self.total / self.calls


#: group -> the key of an event
GROUPS: dict[str, Callable[[Event], str]] = {
    "type": lambda e: e.type,
    "op": lambda e: e.label,
    "block": lambda e: f"block {e.block}",
    "cell": lambda e: e.cell or "?",
}

#: The attributes of a row by which a table can be sorted, the largest first.
ORDERS = ("calls", "total", "max", "min", "ave")


@dataclass
class Profile:
    """The events of some runs."""

    events: list[Event] = field(default_factory=list)  # in the order of their ends

    @property
    def places(self) -> list[Place]:
        """The places where operators ran, the host first."""
        return sorted({event.place for event in self.events}, key=lambda place: (place is not _HOST, str(place)))

    def record(self, op: LoweredOp, start: int, end: int, place: Place) -> None:
        """Add an operator that ran; times in ns."""
        where, desc = op.where(), op.desc
        cell = "" if where is None else where.short()
        self.events.append(Event(desc.optype, op.text(), op.block, cell, start, end, role_of(desc), op.index, place))

    def rows(self, by: str = "type", sorted_key: str | None = None) -> list[Row]:
        """The table; by default in the order of first appearance."""
        check_key(sorted_key)
        if by not in GROUPS:
            raise OpValueError(f"A profile cannot be grouped by {by!r}.", expected=", ".join(GROUPS), received=by)
        times: dict[str, list[int]] = defaultdict(list)
        for e in self.events:
            times[GROUPS[by](e)].append(e.end - e.start)
        everything = sum(map(sum, times.values())) or 1
        rows = [
            Row(name, len(ns), sum(ns) / 1e6, min(ns) / 1e6, max(ns) / 1e6, sum(ns) / everything)
            for name, ns in times.items()
        ]
        return rows if sorted_key in (None, "default") else sorted(rows, key=attrgetter(str(sorted_key)), reverse=True)

    def text(self, by: str = "type", sorted_key: str | None = None) -> str:
        """The table as text."""
        rows = self.rows(by, sorted_key)
        width = max([24, *(len(r.event) for r in rows)]) + 2
        head = f"{'Event':<{width}}{'Calls':>8}{'Total':>12}{'Min.':>12}{'Max.':>12}{'Ave.':>12}{'Ratio':>9}"
        devices = ", ".join(str(place) for place in self.places if place is not _HOST)
        clock = f"; those on {devices} by the device's clock" if devices else ""
        lines = [f"Profile: {len(self.events)} operators run, times in ms{clock}", head]
        lines += [
            f"{r.event:<{width}}{r.calls:>8}{r.total:>12.4f}{r.min:>12.4f}{r.max:>12.4f}{r.ave:>12.4f}{r.ratio:>9.2%}"
            for r in rows
        ]
        return "\n".join(lines)

    def chrome_trace(self) -> str:
        """The events as JSON for chrome://tracing and Perfetto: a group for each place, in it a row for each block."""
        begin, places = min((e.start for e in self.events), default=0), self.places
        rows: list[dict[str, object]] = [
            {"name": "process_name", "ph": "M", "pid": i, "args": {"name": str(place)}}
            for i, place in enumerate(places)
            if places != [_HOST]
        ]
        rows += [
            {
                "name": e.type, "cat": "op", "ph": "X", "pid": places.index(e.place), "tid": e.block,
                "ts": (e.start - begin) / 1e3, "dur": (e.end - e.start) / 1e3,
                "args": {"op": e.label, "cell": e.cell},
            }
            for e in self.events
        ]  # fmt: skip
        return json.dumps({"traceEvents": rows, "displayTimeUnit": "ms"})


def profile_steps(run: Callable[[], object], steps: int = 1) -> tuple[Profile, list[int]]:
    """Profile some runs, with the number of events before each; another active profiler is not affected."""
    profile, starts = Profile(), []
    record = profile.record
    observers.append(record)
    try:
        for _ in range(steps):
            starts.append(len(profile.events))
            run()
    finally:
        observers.remove(record)
    return profile, starts


def check_key(sorted_key: str | None) -> None:
    """Raise an OpValueError unless a table can be sorted by a key, or None."""
    if sorted_key not in (None, "default", *ORDERS):
        raise OpValueError(
            f"The sorted_key {sorted_key!r} is not known.", expected="'calls', 'total', 'max', 'min' or 'ave'",
            received=sorted_key, hint=near(str(sorted_key), ORDERS) or "total puts what takes the most time first.",
        )  # fmt: skip
