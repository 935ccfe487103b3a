"""Telling how a session stands: snapshots, those who look at them, and expressions that are watched."""

from __future__ import annotations

import queue
import re
import sys
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import numpy as np

from fluidnb.debug.look import NoValue, View
from fluidnb.debug.snapshot import Snapshot, frames_of
from fluidnb.debug.stop import Stop, StopKind
from fluidnb.debug.tape import Tape
from fluidnb.errors import NotFound
from fluidnb.values import CPUPlace, DeviceContext

#: Seconds between two snapshots of a program that runs.
_OFTEN = 0.1
_RUNNING = Stop(StopKind.RUNNING)


class Teller:
    """Takes snapshots of a tape and tells them; it belongs to the worker's thread.

    Args:
        budget: bytes that the journal may hold.

    Attributes:
        tape: the steps.
        snapshot: how it stands; replaced, never changed.
        watches: expressions that snapshots evaluate.
        wrote: the variables that the last step wrote.
        error: what the operator that comes next raised, or None.
        asides: what to do between two steps: for whom, a function of this object, its arguments.
    """

    def __init__(self, budget: int) -> None:
        self.tape = Tape(budget)
        self.snapshot = Snapshot("idle", Stop(StopKind.IDLE))
        self.watches: list[str] = []
        self.wrote: tuple[str, ...] = ()
        self.error: BaseException | None = None
        self._observers: list[Callable[[Snapshot], None]] = []
        self._problems: tuple[str, ...] = ()
        self._told = 0.0
        self.asides: queue.SimpleQueue[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]] = queue.SimpleQueue()
        self._reached = 0

    def settle(self) -> None:
        """Do what was asked for between two steps."""
        while not self.asides.empty():
            future, function, args = self.asides.get()
            try:
                future.set_result(function(self, *args))
            except BaseException as error:
                future.set_exception(error)

    def observe(self, look: Callable[[Snapshot], None]) -> None:
        """Tell somebody of every snapshot."""
        self._observers.append(look)
        self._tell(look)

    def forget(self, look: Callable[[Snapshot], None]) -> None:
        """Tell somebody no more."""
        self._observers.remove(look)

    def watch(self, text: str) -> Snapshot:
        """Show an expression in every snapshot."""
        if text not in self.watches:
            self.watches.append(text)
        return self.again()

    def unwatch(self, text: str | None = None) -> Snapshot:
        """Show it no more."""
        self.watches = [w for w in self.watches if text is not None and w != text]
        return self.again()

    def stand(self, stop: Stop) -> Snapshot:
        """Take a snapshot of where the tape stands still, and tell it.

        Args:
            stop: why it stands there.

        Returns:
            The snapshot.
        """
        state = "idle" if not self.tape.runs else "done" if self.tape.done else "paused"
        self._told = 0.0
        snapshot = self._publish(state, stop)
        self.error, self.wrote = None, ()
        return snapshot

    def again(self) -> Snapshot:
        """Tell the snapshot once more, with its watches as they are now: settings have changed, the tape has not.

        Returns:
            The snapshot.
        """
        return self._show(replace(self.snapshot, watches=self._all_watched()))

    def running(self, stop: Stop = _RUNNING) -> None:
        """Tell how it is going, now and then, and do what was asked for between two steps.

        Args:
            stop: what it is doing.
        """
        now = time.monotonic()
        if not self.asides.empty():
            self._publish("running", stop)
            self.settle()
        if self._told == 0.0:
            self._told = now
        elif now - self._told > _OFTEN:
            self._told = now
            self._publish("running", stop)

    def _publish(self, state: str, stop: Stop) -> Snapshot:
        tape = self.tape
        frames = frames_of(tape.machine.stack) if tape.runs else ()
        self._reached = tape.at if state == "done" else max(tape.at, self._reached)
        return self._show(Snapshot(
            state, stop, tape.at, max(0, len(tape.runs) - 1), frames, self.wrote,
            self._all_watched(), tape.can_back, self.error, tape.journal.nbytes, self._problems, self._reached,
            device=self._device(),
        ))  # fmt: skip

    def _device(self) -> str:
        """What it runs on, where that is not the host."""
        place = self.tape.machine.plan.place if self.tape.runs else CPUPlace()
        return "" if place.kind == "cpu" else f"{place}, {DeviceContext.get(place).name}"

    def _show(self, snapshot: Snapshot) -> Snapshot:
        self.snapshot = snapshot
        for look in list(self._observers):
            self._tell(look)
        return self.snapshot

    def _tell(self, look: Callable[[Snapshot], None]) -> None:
        try:
            look(self.snapshot)
        except Exception as error:
            text = "".join(traceback.format_exception(error)).rstrip()
            self._problems = (*self._problems[-9:], text)
            print(f"an observer of the debug session raised:\n{text}", file=sys.stderr)

    def _all_watched(self) -> tuple[tuple[str, str], ...]:
        return tuple((w, self._watched(w)) for w in self.watches)

    def _watched(self, text: str) -> str:
        if not self.tape.runs:
            return "—"
        view = View(self.tape.machine.stack[-1].scope)
        try:
            value = view[text] if text in view else view.evaluate(text)
        except NotFound as error:
            similar = error.similar if isinstance(error, NoValue) else ""
            said = f'"{text}" has no value here.' if re.fullmatch(r"[\w.@]+", text) else error.summary
            return f"{said} {similar}".rstrip()
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        with np.printoptions(threshold=6, edgeitems=2, precision=4):
            return " ".join(str(value).split())
