"""Widgets that follow what runs: after a run, a cell or a step of a debug session, at most ten times a second."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from time import perf_counter
from typing import Any

from fluidnb.debug.debugger import Debugger
from fluidnb.debug.session import Session
from fluidnb.debug.snapshot import Snapshot
from fluidnb.program import Program
from fluidnb.runtime.observers import after_run
from fluidnb_magics.session.selection import Chosen
from fluidnb_magics.session.workbench import Workbench
from fluidnb_magics.widgets.widget import NotebookWidget, show_face

#: Seconds between two updates while something runs, at least.
INTERVAL = 0.1
#: The part of a run's time that updates may take.
SHARE = 0.05


class Pace:
    """Says when the next update may come: at most ten times a second, and less often where an update takes long.

    Args:
        clock: gives the time in seconds.

    Example:
        >>> now = [0.0]; pace = Pace(lambda: now[0])
        >>> pace.due(), pace.timed(lambda: now.__setitem__(0, 0.03)), pace.due()
        (True, None, False)
        >>> now[0] = 0.5; early = pace.due(); now[0] = 0.7; early, pace.due()
        (False, True)
    """

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self._next = clock()

    def due(self) -> bool:
        """Whether it may come now."""
        return self._clock() >= self._next

    def timed(self, update: Callable[[], Any]) -> None:
        """Make an update, and let the next one wait.

        Args:
            update: makes it.
        """
        began = self._clock()
        try:
            update()
        finally:
            now = self._clock()
            self._next = now + max(INTERVAL, (now - began) / SHARE)


class Live(NotebookWidget):
    """A widget that follows runs; it reads nothing while no page shows it, or after it was closed.

    A subclass gives `refresh`, and `picked` if what is selected matters to it.

    Args:
        bench: the session behind the magics.
        traits: values of traits.

    Attributes:
        runs: how many runs there were since it was made.
    """

    def __init__(self, bench: Workbench, **traits: Any) -> None:
        super().__init__(**traits)
        self.bench = bench
        self.runs = self._kept = 0
        self._pace = Pace()
        self._guard = threading.RLock()
        self._views: set[str] = set()
        self._session: weakref.ref[Session] | None = None
        self._follows = False
        bench.faces.add(self)
        bench.selection.observe(self._chosen)
        self._chosen(bench.selection.chosen)
        self.follow()

    # What subclasses give.

    def refresh(self) -> None:
        """Updates the widget; not reentrant, called in the thread that ran something."""

    def picked(self, chosen: Chosen | None) -> None:
        """Show what is selected.

        Args:
            chosen: what, or None.
        """

    def ran(self, program: Program, scope: Any) -> bool:
        """Whether a run that is over matters here.

        Args:
            program: what ran.
            scope: where.

        Returns:
            True for every run.
        """
        return True

    # Following.

    def follow(self) -> None:
        """Look from now on."""
        if not self._follows:
            self._follows = True
            after_run.append(self._after_run)
            self.bench.changes.observe(self._after_cell)
            self._attach()

    def rest(self) -> None:
        """Look no more until somebody does."""
        if self._follows:
            self._follows = False
            after_run.remove(self._after_run)
            self.bench.changes.forget(self._after_cell)
            self._detach()

    def close(self) -> None:
        """End the widget: it follows nothing any more."""
        self.rest()
        self.bench.selection.forget(self._chosen)
        super().close()

    def push(self, **traits: Any) -> None:
        """Send new values of traits to the page.

        Args:
            traits: the values.
        """
        with self.hold_sync():
            for name, value in traits.items():
                setattr(self, name, value)

    def update(self) -> None:
        """Look again, whatever the time."""
        with self._guard:
            self._pace.timed(self.refresh)

    def do_look(self, view: str) -> None:
        """A page shows the widget.

        Args:
            view: what it calls its view.
        """
        self._views.add(view)
        if not self._follows:
            self.follow()
            self.update()

    def do_leave(self, view: str) -> None:
        """A page shows it no more.

        Args:
            view: what it called its view.
        """
        self._views.discard(view)
        if not self._views:
            self.rest()

    def _after_run(self, program: Program, scope: Any) -> None:
        if not self.ran(program, scope):
            return
        self.runs += 1
        # A page that asks for something in another thread makes no run wait.
        if self._pace.due() and self._guard.acquire(blocking=False):
            try:
                self._pace.timed(self.refresh)
            except Exception:
                self.rest()  # told once, not with each run
                raise
            finally:
                self._guard.release()

    def _after_cell(self) -> None:
        self._attach()
        self.update()
        if self.runs != self._kept:
            self._kept = self.runs
            self.renew_still()

    # Debug sessions.

    @property
    def session(self) -> Session | None:
        """The debug session that is followed."""
        found = None if self._session is None else self._session()
        return None if found is None or found.closed else found

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
        """In the thread of the session."""
        if snapshot.state != "running" or self._pace.due():
            self.update()

    def _chosen(self, chosen: Chosen | None) -> None:
        with self._guard:
            self.picked(chosen)


def show_live(bench: Workbench, face: NotebookWidget) -> None:
    """Shows a widget; in a terminal its text rendering, once.

    Args:
        bench: the session behind the magics.
        face: the widget.
    """
    show_face(bench.shell, face)
    if getattr(bench.shell, "kernel", None) is None:
        face.close()
