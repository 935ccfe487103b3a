"""Profiles: one event for each operator that ran, and tables of them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from fluidnb.errors import OpValueError, near
from fluidnb.program.op_roles import role_of
from fluidnb.runtime.compile.lowering import LoweredOp
from fluidnb.runtime.observers import observers
from fluidnb.values.place import CPUPlace, Place

_HOST = CPUPlace()


@dataclass(frozen=True, slots=True)
class Event:
    """One operator that ran.

    Args:
        type: its type.
        label: its index, type and block as text.
        block: index of its block.
        cell: the cell or file and the line that created it, or an empty text.
        start: its start, in ns.
        end: its end, in ns.
        role: ``forward``, ``backward`` or ``optimizer``.
        index: its index in its block; -1 if unknown.
        place: where it ran; times on a device are those of the device's clock.
    """

    type: str
    label: str
    block: int
    cell: str
    start: int
    end: int
    role: str = "forward"
    index: int = -1
    place: Place = _HOST


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table; times in ms.

    Args:
        event: the name of the group.
        calls: number of calls.
        total: their sum.
        min: the shortest call.
        max: the longest call.
        ratio: the share of the total time.
    """

    event: str
    calls: int
    total: float
    min: float
    max: float
    ratio: float

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

#: sorted_key -> the sort key of a row, the largest first
ORDERS: dict[str, Callable[[Row], float]] = {
    "calls": lambda r: r.calls,
    "total": lambda r: r.total,
    "max": lambda r: r.max,
    "min": lambda r: r.min,
    "ave": lambda r: r.ave,
}


@dataclass
class Profile:
    """The events of some runs.

    Args:
        events: the events, in the order of their ends.

    Example:
        >>> p = Profile([Event("mul", "op 0 (mul) in block 0", 0, "", 0, 2_000_000)])
        >>> p.rows()[0].total
        2.0
    """

    events: list[Event] = field(default_factory=list)

    @property
    def places(self) -> list[Place]:
        """The places where operators ran, the host first."""
        found = dict.fromkeys(event.place for event in self.events)
        return sorted(found, key=lambda place: (place is not _HOST, str(place)))

    def record(self, op: LoweredOp, start: int, end: int, place: Place) -> None:
        """Add an operator that ran; times in ns."""
        where = op.where()
        cell = "" if where is None else where.short()
        role = role_of(op.desc)
        self.events.append(Event(op.desc.optype, op.text(), op.block, cell, start, end, role, op.index, place))

    def rows(self, by: str = "type", sorted_key: str | None = None) -> list[Row]:
        """The table.

        Args:
            by: ``type``, ``op``, ``block`` or ``cell``.
            sorted_key: ``calls``, ``total``, ``max``, ``min`` or ``ave``; None keeps the order of first appearance.

        Returns:
            One row for each group.

        Raises:
            OpValueError: another ``by`` or ``sorted_key``.
        """
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
        return rows if sorted_key in (None, "default") else sorted(rows, key=ORDERS[str(sorted_key)], reverse=True)

    def text(self, by: str = "type", sorted_key: str | None = None) -> str:
        """The table as text.

        Args:
            by: see `rows`.
            sorted_key: see `rows`.
        """
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
    """Profile some runs; another active profiler is not affected.

    Args:
        run: called for each run.
        steps: the number of runs.

    Returns:
        The profile, and the number of events before each run.

    Raises:
        FluidError: what the runs raise.

    Example:
        >>> x = fluid.layers.mean(fluid.layers.data("x", shape=[2])); exe = fluid.Executor()
        >>> profile, runs = profile_steps(lambda: exe.run(feed={"x": np.ones((1, 2), "float32")}, fetch_list=[x]), 3)
        >>> [e.type for e in profile.events], runs
        (['mean', 'mean', 'mean'], [0, 1, 2])
    """
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
    """Raise an OpValueError unless a table can be sorted by a key, or None.

    Example:
        >>> check_key("total")
    """
    if sorted_key not in (None, "default", *ORDERS):
        raise OpValueError(
            f"The sorted_key {sorted_key!r} is not known.",
            expected="'calls', 'total', 'max', 'min' or 'ave'", received=sorted_key,
            hint=near(str(sorted_key), ORDERS) or "total puts what takes the most time first.",
        )  # fmt: skip
