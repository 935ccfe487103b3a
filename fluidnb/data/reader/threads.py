"""Reader decorators with threads: reading ahead, and mapping by several workers."""

from __future__ import annotations

import atexit
import contextlib
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any, TypeAlias
from weakref import WeakSet

from fluidnb.arguments import checked
from fluidnb.data.reader.decorators import OneMapper, Reader, check_count, samples_of

#: A sample, what the source raised instead, and whether there may be more after it.
_Item: TypeAlias = "tuple[Any, BaseException | None, bool]"
#: Seconds that the end of the program waits for the threads that read ahead; one whose source hangs is left behind.
PATIENCE = 2.0
#: Larger numbers of samples to read ahead are not counted: a slot for each one takes time and memory.
MOST_AHEAD = 1_000_000
#: Seconds between two checks whether the consumer still waits for a sample.
_GLANCE = 0.05
#: The passes under way.
_passes: WeakSet[Ahead] = WeakSet()


class Ahead:
    """One pass over a source, read in a thread up to a number of samples ahead.

    Args:
        size: samples to keep ready; 0, or more than `MOST_AHEAD`, for as many as come.
    """

    def __init__(self, source: Callable[[], Iterable[Any]], size: int, name: str = "fluidnb reader") -> None:
        # SimpleQueue alone: in queue.Queue, Semaphore and Event, Ctrl-C may leave a lock in a wrong state.
        self._ready: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        limited = 0 < size <= MOST_AHEAD
        self._slots: queue.SimpleQueue[None] | None = queue.SimpleQueue() if limited else None
        # Held until a sample is put. SimpleQueue.get(timeout=...) waits without end when a signal handler outlasts it.
        self._arrived = threading.Lock()
        self._arrived.acquire()
        self._left: list[bool] = []
        self._end: _Item | None = None
        for _ in range(size if limited else 0):
            self._free_slot()
        reading = source, self._ready, self._arrived, self._slots, self._left
        self.thread = threading.Thread(target=_read, args=reading, name=name, daemon=True)
        _passes.add(self)
        self.thread.start()

    def get(self, check: Callable[[], None] | None = None) -> _Item:
        """The next sample; waits for it.

        Args:
            check: called while it waits; what it raises ends the waiting, and takes no sample.

        Returns:
            The sample, what the source raised instead, and whether there may be more after it.
        """
        item = self._end
        while item is None:
            if check is None:
                item = self._ready.get()
                break
            check()
            try:
                item = self._ready.get_nowait()
            except queue.Empty:
                self._arrived.acquire(timeout=_GLANCE)
        self._free_slot()
        if not item[2]:
            self._end = item
        return item

    def _free_slot(self) -> None:
        """Let the thread put one more sample."""
        if self._slots is not None:
            self._slots.put(None)

    def ready(self) -> int:
        """Number of samples that are ready to be read."""
        return self._ready.qsize()

    def leave(self, patience: float = 0.0) -> None:
        """End the pass: the thread stops at its next sample."""
        self._left.append(True)
        self._end = (None, None, False)
        self._free_slot()  # wakes a thread that waits for a slot, so that it ends
        if patience and self.thread is not threading.current_thread():
            self.thread.join(patience)

    def __del__(self) -> None:
        if getattr(self, "_left", None) == []:  # None: Ctrl-C came while it was made
            self.leave()


def _read(
    source: Callable[[], Iterable[Any]], ready: queue.SimpleQueue[_Item], arrived: threading.Lock,
    slots: queue.SimpleQueue[None] | None, left: list[bool],
) -> None:  # fmt: skip
    """Runs the thread. It references no `Ahead`, so that deleting the last reference to one ends its thread."""
    last: _Item = (None, None, False)
    try:
        for sample in samples_of(source):
            if slots is not None:
                slots.get()
            if left:
                return
            ready.put((sample, None, True))
            with contextlib.suppress(RuntimeError):  # it is free already
                arrived.release()
    except BaseException as e:  # raised again in the thread that consumes
        last = (None, e, False)
    ready.put(last)
    with contextlib.suppress(RuntimeError):
        arrived.release()


@checked
def buffered(reader: Reader, size: int) -> Reader:
    """Read ahead in a thread, up to `size` samples.

    An error of the source is raised where its sample would have come. A pass that is left early, or open
    when the program ends, stops its thread at the next sample.

    Args:
        size: samples to keep ready; 0 for as many as come.

    Example:
        >>> list(buffered(lambda: range(4), 2)())
        [0, 1, 2, 3]
    """
    check_count("size", size, least=0)

    def ahead() -> Iterator[Any]:
        under_way = Ahead(reader, size)
        try:
            while True:
                sample, error, more = under_way.get()
                if error is not None:
                    raise error
                if not more:
                    return
                yield sample
        finally:
            under_way.leave()

    return ahead


@atexit.register
def _leave_all() -> None:
    """End the passes under way before Python ends their threads, which it would do anywhere, locks and files open."""
    passes = [ahead for ahead in list(_passes) if ahead.thread.is_alive()]  # not so in a forked child
    for ahead in passes:
        ahead.leave()
    until = time.monotonic() + PATIENCE
    for ahead in passes:
        ahead.thread.join(max(0.0, until - time.monotonic()))


@checked
def xmap_readers(mapper: OneMapper, reader: Reader, process_num: int, buffer_size: int, order: bool = False) -> Reader:
    """Apply a function to samples in several threads.

    Args:
        reader: the source; it is read by the thread that consumes.
        buffer_size: samples under way or ready at most.
        order: give the results in the source's order rather than as they are ready.

    Example:
        >>> list(xmap_readers(lambda x: x * x, lambda: range(5), 2, 4, order=True)())
        [0, 1, 4, 9, 16]
    """
    check_count("process_num", process_num)
    check_count("buffer_size", buffer_size)

    def mapped() -> Iterator[Any]:
        workers = ThreadPoolExecutor(process_num, "fluidnb reader")
        try:
            samples = samples_of(reader)
            under_way: deque[Future[Any]] = deque()
            ready: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()

            def start(n: int) -> int:
                jobs = [workers.submit(mapper, sample) for sample in islice(samples, n)]
                if order:
                    under_way.extend(jobs)
                else:
                    for job in jobs:
                        job.add_done_callback(ready.put)
                return len(jobs)

            waiting = start(buffer_size)
            while waiting:
                job = under_way.popleft() if order else ready.get()
                result = job.result()
                waiting += start(1) - 1
                yield result
        finally:
            workers.shutdown(wait=False, cancel_futures=True)

    return mapped
