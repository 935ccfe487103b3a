"""Ctrl-C between operators: deferred to the end of the running one, at no cost without Ctrl-C.

The handler does not raise. It finds where each run is in its list of calls (a list iterator knows how many items are
left) and puts a stop in place of the first call of the next operator. So parameters are always as before or as after an
operator, never between two of its calls.
"""

from __future__ import annotations

import importlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

#: The runs under way, in all threads.
runs: list[Run] = []

#: The functions below `signal`'s own, which turn numbers into enums and cost ten times as much.
_signal: Any = importlib.import_module("_signal")

_MAIN = threading.main_thread().ident
_previous: Any = None
_patient: list[Patience] = []
_ROOMS = Path(__file__).parents[1]
#: Who waits here waits for a debugger's own thread, between two operators: that may be interrupted at once.
_WAITS = f"{_ROOMS / 'debug'}{os.sep}"
#: Where nothing lasts long outside a run, and a half-done change would hurt.
_OURS = tuple(f"{_ROOMS / room}{os.sep}" for room in ("memory", "values", "op", "runtime"))


class Run:
    """One run under way, as the handler sees it.

    Attributes:
        stack: (iterator, calls, operators) of the call lists under way, innermost last.
        at: after an error or a stop, the index of the call at which the innermost list of calls that is left stopped.
        stop: whether a stop was requested.
        thread: the thread in which it runs.
        iteration: the iteration in which a loop was interrupted, until its operator is named.
    """

    __slots__ = ("_patches", "at", "iteration", "stack", "stop", "thread")

    def __init__(self) -> None:
        self.stack: list[tuple[Any, list[Any], list[Any]]] = []
        self.stop, self.at = False, -1
        self.iteration: int | None = None
        self.thread = threading.get_ident()
        self._patches: list[tuple[list[Any], int, Any]] = []

    def ask_to_stop(self) -> None:
        """Let it stop before its next operator."""
        self.stop = True
        innermost = self.stack[-1:]  # one look: the run's own thread may empty the stack between two
        if not innermost:
            return
        iterator, calls, ops = innermost[0]
        at = len(calls) - iterator.__length_hint__()
        last = ops[at - 1] if at else None
        while at < len(calls) and ops[at] is last:
            at += 1
        # past the end there is no operator left here; a loop that comes round again must stop at the first
        at %= max(1, len(calls))
        if calls:
            self._patches.append((calls, at, calls[at]))
            calls[at] = (self._stop_here, ())

    def _stop_here(self) -> None:
        """Raises KeyboardInterrupt, also where another run began since: no operator's call is skipped in silence."""
        self.stop = True
        self.check()

    def restore(self) -> None:
        """Put the calls back that stops have taken the place of."""
        for calls, at, call in reversed(self._patches):
            calls[at] = call
        self._patches.clear()

    def check(self) -> None:
        """Raise KeyboardInterrupt if a stop was requested."""
        if self.stop:
            self.stop = False
            self.restore()
            raise KeyboardInterrupt

    def begin(self) -> None:
        """Say that it starts, in this thread."""
        self.stop, self.iteration = False, None
        self.thread = threading.get_ident()
        self.stack.clear()
        if self.thread == _MAIN and _signal.getsignal(_signal.SIGINT) is not _handler:
            hold()
        runs.append(self)

    def end(self) -> None:
        """Say that it is over, however it ended; a stop that came too late for it takes effect now."""
        runs.remove(self)
        if self.stop:
            self.check()


def _handler(number: int, frame: Any) -> None:
    mine = False
    if _patient and any(run.thread == _MAIN for run in runs) and _patient[-1].wait():
        return
    for run in list(runs):
        run.ask_to_stop()
        mine = mine or run.thread == _MAIN
    if mine:
        return
    if _is_inside(frame):  # binding, allocating, copying: a moment later it is in a run, or in the user's code
        again = threading.Timer(0.001, signal.pthread_kill, (_MAIN, number))
        again.daemon = True
        again.start()
        return
    previous: Callable[[int, Any], Any] = _previous if callable(_previous) else signal.default_int_handler
    previous(number, frame)


def _is_inside(frame: FrameType | None) -> bool:
    """Whether the main thread is in the middle of something of ours that an exception must not tear apart."""
    while frame is not None and not frame.f_code.co_filename.startswith(_WAITS):
        if frame.f_code.co_filename.startswith(_OURS):
            return True
        frame = frame.f_back
    return False


def hold() -> None:
    """Make sure that Ctrl-C comes here first; while no run of the main thread is under way, the old handler gets it."""
    global _previous
    if threading.get_ident() == _MAIN:
        current = _signal.getsignal(_signal.SIGINT)
        if current is not _handler and current is not _signal.SIG_IGN:
            _previous = current
            _signal.signal(_signal.SIGINT, _handler)


class Patience:
    """Lets a run that is interrupted end by itself, for a while.

    Args:
        seconds: how long; then it stops before its next operator, as it does when Ctrl-C is pressed again.
    """

    def __init__(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, interrupt_all)
        self._timer.daemon = True
        self._asked = False

    def wait(self) -> bool:
        """Begin to wait; False if that has begun before."""
        first, self._asked = not self._asked, True
        if first:
            self._timer.start()
        return first

    def check(self) -> None:
        """Raise KeyboardInterrupt if Ctrl-C was pressed."""
        if self._asked:
            self._timer.cancel()
            self._asked = False
            raise KeyboardInterrupt


@contextmanager
def whole_runs(seconds: float = 2.0) -> Iterator[Patience]:
    """Let Ctrl-C take effect between runs of the main thread, so that each training step happens whole or not at all.

    Args:
        seconds: how long the end of a run is waited for.

    Yields:
        What has to be checked between two runs.

    Example:
        >>> with whole_runs() as patience:
        ...     patience.check()
    """
    patience = Patience(seconds)
    _patient.append(patience)
    try:
        yield patience
    finally:
        _patient.remove(patience)
        patience._timer.cancel()


def interrupt_all() -> None:
    """Requests that the runs of all threads stop before their next operator.

    Example:
        >>> interrupt_all()
    """
    for run in list(runs):
        run.ask_to_stop()
