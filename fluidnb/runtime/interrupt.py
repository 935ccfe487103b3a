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
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from fluidnb.op.engine import in_background
from fluidnb.utils.main_signal import signal_main

#: The runs under way, in all threads.
runs: list[Run] = []
#: The functions below `signal`'s own, which turn numbers into enums and cost ten times as much.
_signal: Any = importlib.import_module("_signal")
_handler_of, _SIGINT = _signal.getsignal, _signal.SIGINT
_this_thread = threading.get_ident
_MAIN = threading.main_thread().ident
_previous: Any = None
_patient: list[Patience] = []
_pausing: list[Callable[[], None]] = []
_PACKAGE = Path(__file__).parents[1]
#: Code that waits for the thread of a debugger, between two operators: that may be interrupted at once.
_WAITS = f"{_PACKAGE / 'debug'}{os.sep}"
#: Code whose changes must not be half done, and that takes little time outside a run.
_OURS = tuple(f"{_PACKAGE / name}{os.sep}" for name in ("memory", "values", "op", "runtime"))


class Run:
    """One run, as the handler sees it."""

    __slots__ = ("_patches", "at", "background", "iteration", "stack", "stop", "thread")

    def __init__(self) -> None:
        self.stack: list[tuple[Any, list[Any], list[Any]]] = []
        self.stop = False
        self.at = -1  # index of the call at which the innermost remaining list of calls stopped
        self.iteration: int | None = None  # in which a loop was interrupted, until its operator is named
        self.thread = threading.get_ident()
        self.background = False  # whether Ctrl-C is not for this run
        self._patches: list[tuple[list[Any], int, Any]] = []

    def request_stop(self) -> None:
        """Stop it before its next operator."""
        self.stop = True
        innermost = self.stack[-1:]  # one read: the run's own thread may empty the stack between two
        if not innermost:
            return
        iterator, calls, ops = innermost[0]
        at = len(calls) - iterator.__length_hint__()
        last = ops[at - 1] if at else None
        while at < len(calls) and ops[at] is last:
            at += 1
        # past the end no operator is left; a loop must then stop at the first of its next iteration
        at %= max(1, len(calls))
        if calls:
            self._patches.append((calls, at, calls[at]))
            calls[at] = (self._stop_here, ())

    def _stop_here(self) -> None:
        """Raises KeyboardInterrupt, also where another run began since: no operator's call is skipped in silence."""
        self.stop = True
        self.check()

    def restore(self) -> None:
        """Restore the calls that stops have replaced."""
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
        """Register the run of this thread."""
        self.stop, self.iteration = False, None
        self.thread = thread = _this_thread()
        self.background = thread in in_background
        self.stack.clear()
        if thread == _MAIN and _handler_of(_SIGINT) not in _SETTLED:
            install()
        runs.append(self)

    def end(self) -> None:
        """Unregister the run, however it ended; a stop that came too late for it takes effect now."""
        runs.remove(self)
        if self.stop:
            self.check()


def _handler(number: int, frame: Any) -> None:
    if _pausing:
        _pausing[-1]()
        return
    mine = False
    if _patient and any(run.thread == _MAIN for run in runs) and _patient[-1].wait():
        return
    for run in [run for run in runs if not run.background]:
        run.request_stop()
        mine = mine or run.thread == _MAIN
    if mine:
        return
    if _is_inside(frame):  # binding, allocating, copying: soon it is in a run, or in the user's code
        again = threading.Timer(0.001, signal_main, (signal.Signals(number),))
        again.daemon = True
        with suppress(RuntimeError):  # without threads at once
            again.start()
            return
    previous: Callable[[int, Any], Any] = _previous if callable(_previous) else signal.default_int_handler
    previous(number, frame)


def _is_inside(frame: FrameType | None) -> bool:
    """Whether the main thread is inside code that an exception must not interrupt."""
    while frame is not None and not frame.f_code.co_filename.startswith(_WAITS):
        if frame.f_code.co_filename.startswith(_OURS):
            return True
        frame = frame.f_back
    return False


#: With these nothing is installed; a process that is started in the background of a shell ignores Ctrl-C.
_SETTLED = _handler, _signal.SIG_IGN


def install() -> None:
    """Install the handler; the former one gets Ctrl-C while the main thread runs nothing."""
    global _previous
    if threading.get_ident() == _MAIN:
        current = _signal.getsignal(_signal.SIGINT)
        if current not in _SETTLED:
            _previous = current
            with suppress(OSError, RuntimeError, ValueError):  # some systems have no signals
                _signal.signal(_signal.SIGINT, _handler)


@contextmanager
def pausing_instead(pause: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C calls a function, and raises nothing, while the main thread is inside."""
    if threading.get_ident() != _MAIN:
        yield
        return
    install()
    _pausing.append(pause)
    try:
        yield
    finally:
        _pausing.remove(pause)


class Patience:
    """Delays an interrupt until a run ends by itself, at most some seconds or until the next Ctrl-C."""

    def __init__(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, interrupt_all)
        self._timer.daemon = True
        self._requested = False

    def wait(self) -> bool:
        """Begin to wait; False if that has begun before."""
        first, self._requested = not self._requested, True
        if first:
            with suppress(RuntimeError):  # without threads it waits for the end, or for the next Ctrl-C
                self._timer.start()
        return first

    def check(self) -> None:
        """Raise KeyboardInterrupt if Ctrl-C was pressed."""
        if self._requested:
            self._timer.cancel()
            self._requested = False
            raise KeyboardInterrupt


@contextmanager
def whole_runs(seconds: float = 2.0) -> Iterator[Patience]:
    """Delay Ctrl-C to the end of a training step, so that each step is run whole or not at all; check between two."""
    patience = Patience(seconds)
    _patient.append(patience)
    try:
        yield patience
    finally:
        _patient.remove(patience)
        patience._timer.cancel()


def interrupt_all() -> None:
    """Request that the runs of all threads stop before their next operator."""
    for run in list(runs):
        run.request_stop()
