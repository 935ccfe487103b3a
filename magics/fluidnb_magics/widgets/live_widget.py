"""Widgets that follow runs, cells and steps of a debug session, with at most ten updates a second."""

import threading
import weakref
from collections.abc import Callable
from time import perf_counter
from typing import Any

import traitlets

from fluidnb.debug.debugger import Debugger
from fluidnb.debug.session import Session
from fluidnb.debug.snapshot import Snapshot
from fluidnb.program import Program
from fluidnb.runtime.observers import after_run
from fluidnb_magics.session.selection import Chosen
from fluidnb_magics.session.workbench import Workbench
from fluidnb_magics.widgets.widget import NotebookWidget

INTERVAL = 0.1  # seconds between two updates while something runs, at least
SHARE = 0.05  # the part of a run's time that updates may take


class Pace:
    """The time of the next update: at most ten a second, and fewer where an update takes long."""

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self._next = clock()

    def due(self) -> bool:
        """Whether enough time has passed since the last update."""
        return self._clock() >= self._next

    def timed(self, update: Callable[[], Any]) -> None:
        """Make an update, and delay the next one."""
        began = self._clock()
        try:
            update()
        finally:
            now = self._clock()
            self._next = now + max(INTERVAL, (now - began) / SHARE)


class LiveWidget(NotebookWidget):
    """A widget that follows runs; it reads nothing while no page shows it, or after it was closed."""

    def __init__(self, bench: Workbench, **traits: Any) -> None:
        super().__init__(**traits)
        self.bench = bench
        self.runs = self._kept = 0
        self._pace = Pace()
        self._guard = threading.RLock()
        self._views: set[str] = set()
        self._session: weakref.ref[Session] | None = None
        self._follows = False
        bench.widgets.add(self)
        bench.selection.observe(self._chosen)
        self._chosen(bench.selection.chosen)
        self.follow()

    # Overridden by subclasses.

    def refresh(self) -> None:
        """Update the widget; not reentrant, called in the thread that ran something."""

    def picked(self, chosen: Chosen | None) -> None:
        """Show the selection, or that there is none."""

    def ran(self, program: Program, scope: Any) -> bool:
        """Whether a finished run matters here."""
        return True

    # Following.

    def follow(self) -> None:
        if not self._follows:
            self._follows = True
            after_run.append(self._after_run)
            self.bench.changes.observe(self._after_cell)
            self._attach()

    def unfollow(self) -> None:
        """Stop following, until a page shows the widget."""
        if self._follows:
            self._follows = False
            after_run.remove(self._after_run)
            self.bench.changes.forget(self._after_cell)
            self._detach()

    def close(self) -> None:
        self.unfollow()
        self.bench.selection.forget(self._chosen)
        super().close()

    def push(self, **traits: Any) -> None:
        """Send new values of traits to the page."""
        with self.hold_sync():
            for name, value in traits.items():
                setattr(self, name, value)

    def update(self) -> None:
        """Update now, whatever the time."""
        with self._guard:
            self._pace.timed(self.refresh)

    def do_look(self, view: str) -> None:
        """A page shows the widget."""
        self._views.add(view)
        if not self._follows:
            self.follow()
            self.update()

    def do_leave(self, view: str) -> None:
        """A page does not show it any more."""
        self._views.discard(view)
        if not self._views:
            self.unfollow()

    def _after_run(self, program: Program, scope: Any) -> None:
        if not self.ran(program, scope):
            return
        self.runs += 1
        # A request of a page, in another thread, does not delay a run.
        if self._pace.due() and self._guard.acquire(blocking=False):
            try:
                self._pace.timed(self.refresh)
            except Exception:
                self.unfollow()  # one error, not one with each run
                raise
            finally:
                self._guard.release()

    def _after_cell(self) -> None:
        self._attach()
        self.update()
        if self.runs != self._kept:
            self._kept = self.runs
            self.update_static()

    # Debug sessions.

    @property
    def session(self) -> Session | None:
        """The debug session that is followed."""
        session = None if self._session is None else self._session()
        return None if session is None or session.closed else session

    def _attach(self) -> None:
        """Follow the debug session that was begun last."""
        new = self.bench.session
        if new is self.session or new is None or new.closed:
            return
        self._detach()
        self._session = weakref.ref(new)
        new.post(Debugger.observe, self._stepped)

    def _detach(self) -> None:
        session, self._session = self.session, None
        if session is not None:
            session.post(Debugger.forget, self._stepped)

    def _stepped(self, snapshot: Snapshot) -> None:
        """Observer, in the thread of the session."""
        if snapshot.state != "running" or self._pace.due():
            self.update()

    def _chosen(self, chosen: Chosen | None) -> None:
        with self._guard:
            self.picked(chosen)


class ProgramWidget(LiveWidget):
    """A widget about one program, in which an operator or a variable can be selected."""

    picked_things = traitlets.Dict().tag(sync=True)  # the selection: a variable's name, or operators

    def __init__(self, bench: Workbench, program: Program, **traits: Any) -> None:
        self._program = weakref.ref(program)
        super().__init__(bench, **traits)

    def do_pick(self, block: int, index: int, name: str = "") -> None:
        """Selects a variable, or without a name an operator."""
        program = self._program()
        if program is not None and (name or index >= 0):
            self.bench.selection.choose(Chosen(program, ops=() if name else ((block, index),), variable=name))

    def picked(self, chosen: Chosen | None) -> None:
        if chosen is None or chosen.program is not self._program():
            self.push(picked_things={})
        else:
            self.push(picked_things={"name": chosen.variable, "ops": [list(op) for op in chosen.ops]})
