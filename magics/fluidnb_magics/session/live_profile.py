"""The profile of later runs in a terminal, where no widget can be shown."""

import weakref
from collections.abc import Callable
from time import monotonic
from typing import Any

from fluidnb.debug.profile import Profile
from fluidnb.program import Program
from fluidnb.runtime.observers import after_run, observers
from fluidnb.viz.base.display_target import DisplayTarget
from fluidnb.viz.time.timeline import Timeline, read_timeline, time_text, timeline_lines
from fluidnb_magics.display import show, width
from fluidnb_magics.session.workbench import Workbench

#: Seconds between two profiled runs, at least, so that training is hardly slower.
_INTERVAL = 1.0
#: How many types of operators a line names.
_SHOWN = 4


class LiveProfile:
    """Writes a line while a program runs, and the whole profile of its last recorded run after the cell."""

    def __init__(
        self, bench: Workbench, program: Program, target: DisplayTarget, clock: Callable[[], float] = monotonic
    ) -> None:
        self._bench, self._target, self._clock = bench, target, clock
        self.program = weakref.ref(program)
        self._runs, self._next = 0, 0.0
        self._timeline: Timeline | None = None
        self._profile: Profile | None = None
        after_run.append(self._after_run)
        bench.changes.observe(self._after_cell)
        bench.widgets.add(self)
        self._begin()

    def close(self) -> None:
        """End it."""
        self._end()
        if self._after_run in after_run:
            after_run.remove(self._after_run)
        self._bench.changes.forget(self._after_cell)
        self._bench.widgets.discard(self)

    def _begin(self) -> None:
        """Record the next run."""
        self._profile = Profile()
        observers.append(self._profile.record)

    def _end(self) -> Profile | None:
        profile, self._profile = self._profile, None
        if profile is not None:
            observers.remove(profile.record)
        return profile

    def _after_run(self, program: Program, scope: Any) -> None:
        if program is not self.program():
            if self._profile is not None:
                self._profile.events.clear()
            return
        self._runs += 1
        profile = self._end()
        if profile is not None and profile.events:
            self._timeline = read_timeline(profile)
            self._target.line(self._line(self._timeline))
            self._next = self._clock() + _INTERVAL
        elif self._clock() >= self._next:
            self._begin()

    def _line(self, timeline: Timeline) -> str:
        whole = timeline.busy or 1
        shares = [f"{share.type} {share.own / whole:.0%}" for share in timeline.shares[:_SHOWN]]
        return f"profile of run {self._runs:,}: {time_text(timeline.length)}, {', '.join(shares)}"

    def _after_cell(self) -> None:
        if self._timeline is not None:
            show(self._bench.shell, timeline_lines(self._timeline, width(self._bench.shell)))
            self._timeline = None
        if self._profile is None:
            self._begin()
