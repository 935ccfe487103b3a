"""Streams that do nothing until they must, events, and graphs of captured work."""

from __future__ import annotations

import itertools
import threading
import time
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

from fluidnb_kernels.cuda_emulator_backend.memory import CUDARuntimeError, before_free, chosen, holding, lock, working

Work = Callable[[], None]

_MODES = {0: "global", 1: "thread_local", 2: "relaxed"}


class Graph:
    """Captured work."""

    def __init__(self, work: list[Work]) -> None:
        self._work = work

    def launch(self, stream: Stream | None = None) -> None:
        """Do it all once more."""
        where = get_current_stream() if stream is None else stream
        for work in self._work:
            where.push(work)

    def upload(self, stream: Stream | None = None) -> None:
        """Bring the graph to the device before its first launch; nothing to do here."""


class Stream:
    """Work in order; it waits until the stream is synchronized."""

    def __init__(
        self, null: bool = False, non_blocking: bool = False, ptds: bool = False, priority: int | None = None
    ) -> None:
        self.ptr = 0 if null else next(_numbers)
        self._apart = non_blocking
        self._waiting: list[Work] = []
        self._captured: list[Work] | None = None
        self._done = 0  # how much work is done, since the stream was made
        with lock:
            streams[self.ptr] = self

    # ---- work

    def push(self, work: Work) -> None:
        """Add work, which is done at a synchronization, or captured."""
        if self._captured is not None:
            self._captured.append(work)
            return
        with lock:
            if self.ptr == 0:  # the default stream waits for those that block, and these for it
                before = [s for s in all_streams() if s is not self and not s._apart]
            else:
                before = [] if self._apart else [_null]
            for stream in before:
                if stream._waiting:
                    self._waiting.append(partial(stream.drain, stream.mark))
            self._waiting.append(work)
            _busy.add(self)

    def keep(self, thing: object) -> None:
        """Let something live until the work so far is done."""
        self.push([thing].clear)

    def drain(self, upto: int | None = None) -> None:
        """Do the work that waits, up to so much since the stream was made; default all."""
        with lock:  # who comes while another thread does its work waits for that
            if not self._waits(upto):
                return
            with holding(), working():
                while self._waits(upto):
                    work = self._waiting.pop(0)
                    self._done += 1
                    work()
            if not self._waiting:
                _busy.discard(self)

    def _waits(self, upto: int | None) -> bool:
        return bool(self._waiting) and (upto is None or self._done < upto)

    @property
    def mark(self) -> int:
        """The amount of work that it has been given so far."""
        with lock:
            return self._done + len(self._waiting)

    # ---- cupy's names

    def synchronize(self) -> None:
        """Wait until its work is done."""
        if self._captured is not None:
            raise CUDARuntimeError("cudaErrorStreamCaptureUnsupported: the stream is capturing")
        self.drain()

    @property
    def done(self) -> bool:
        """Whether its work is done."""
        return not self._waiting

    def begin_capture(self, mode: int | None = None) -> None:
        """Write down what comes instead of doing it."""
        if self.ptr == 0:
            raise RuntimeError("cannot capture on the default (legacy) stream")
        if self._captured is not None:
            raise CUDARuntimeError("cudaErrorIllegalState: the operation cannot be performed in the present state")
        self._captured = []

    def end_capture(self) -> Graph:
        """Ends the capture and gives the graph."""
        if self._captured is None:
            raise CUDARuntimeError("cudaErrorIllegalState: the operation cannot be performed in the present state")
        graph, self._captured = Graph(self._captured), None
        return graph

    def is_capturing(self) -> bool:
        """Whether it is capturing."""
        return self._captured is not None

    def record(self, event: Event | None = None) -> Event:
        """Let an event come when the work so far is done."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Let what comes wait for an event."""
        stream = event.recorded()
        if stream is not None:
            self.push(partial(stream.drain, event.upto))  # what it is recorded behind later is no matter

    def use(self) -> Stream:
        """Make it the current stream of this thread."""
        _current.of()[-1] = self
        return self

    def __enter__(self) -> Stream:
        _current.entered.append(_current.of())
        _current.entered[-1].append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _current.entered.pop().pop()


class Event:
    """A point in a stream's work."""

    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
        self._stream: Stream | None = None
        self._captured = False
        self.upto = 0
        self.time, self.timed = 0.0, not disable_timing

    def record(self, stream: Stream | None = None) -> None:
        """Come when the work so far of a stream is done."""
        stream = get_current_stream() if stream is None else stream
        with lock:
            stream.push(self._come)
            self._stream, self.upto, self._captured = stream, stream.mark, stream.is_capturing()

    def _come(self) -> None:
        if self.timed:
            self.time = time.perf_counter()

    def recorded(self) -> Stream | None:
        """The stream in which it comes; None before it is recorded."""
        if self._captured:
            raise CUDARuntimeError("cudaErrorCapturedEvent: the event was last recorded in a capturing stream")
        return self._stream

    def synchronize(self) -> None:
        """Wait until it has come."""
        stream = self.recorded()
        if stream is not None:
            stream.drain(self.upto)

    @property
    def done(self) -> bool:
        """Whether it has come."""
        return self._stream is None or self._stream.mark - len(self._stream._waiting) >= self.upto


def get_elapsed_time(start_event: Event, end_event: Event) -> float:
    """Milliseconds between two events."""
    if any(event.recorded() is None or not event.timed for event in (start_event, end_event)):
        raise CUDARuntimeError("cudaErrorInvalidResourceHandle: invalid resource handle")
    if not (start_event.done and end_event.done):
        raise CUDARuntimeError("cudaErrorNotReady: device not ready")
    return (end_event.time - start_event.time) * 1e3


def get_current_stream(device_id: int = -1) -> Any:
    """The stream into which work of this thread goes."""
    return _current.of(device_id)[-1]


_numbers = itertools.count(1)
#: number -> stream
streams: weakref.WeakValueDictionary[int, Stream] = weakref.WeakValueDictionary()
#: Those with work that waits: it is done although nobody holds the stream any more.
_busy: set[Stream] = set()
_null = Stream(null=True)
Stream.null = _null  # type: ignore[attr-defined]


class _Current(threading.local):
    """The streams that a thread has chosen for each device, the current one last."""

    def __init__(self) -> None:
        self._stacks: dict[int, list[Stream]] = {}
        self.entered: list[list[Stream]] = []  # which of them grew, the last one last

    def of(self, device: int = -1) -> list[Stream]:
        """Those of a device."""
        return self._stacks.setdefault(chosen.device if device < 0 else device, [_null])


_current = _Current()


def all_streams() -> list[Stream]:
    """Those that there are now."""
    with lock:
        return list(streams.values())


def finish() -> None:
    """Do all work that waits, as a device does before it gives memory back."""
    for stream in all_streams():
        stream.drain()


before_free.append(finish)
