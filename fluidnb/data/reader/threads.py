"""Reader decorators with threads: reading ahead, and mapping by several workers."""

from __future__ import annotations

import atexit
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from fluidnb.data.reader.decorators import Reader, check_count, check_mapper, check_reader

_Ready: TypeAlias = "queue.Queue[tuple[Any, BaseException | None, bool]]"

#: Seconds that the end of the program waits for the threads that read ahead; one whose source hangs is left behind.
PATIENCE = 2.0
#: The threads that read ahead, and how each is told that its pass was left.
_reading: WeakKeyDictionary[threading.Thread, tuple[threading.Event, _Ready]] = WeakKeyDictionary()


def buffered(reader: Reader, size: int) -> Reader:
    """Read ahead in a thread, up to `size` samples.

    An error of the source is raised where its sample would have come. A pass that is left early, or open
    when the program ends, stops its thread at the next sample.

    Args:
        reader: the source.
        size: samples to keep ready; 0 for as many as come.

    Returns:
        A reader.

    Example:
        >>> list(buffered(lambda: range(4), 2)())
        [0, 1, 2, 3]
    """
    check_reader(reader)
    check_count("size", size, least=0)

    def ahead() -> Iterator[Any]:
        ready: _Ready = queue.Queue(size)
        left = threading.Event()

        def read() -> None:
            last: tuple[Any, BaseException | None, bool] = (None, None, False)
            try:
                for sample in reader():
                    ready.put((sample, None, True))
                    if left.is_set():
                        return
            except BaseException as e:  # raised again in the thread that consumes
                last = (None, e, False)
            ready.put(last)

        thread = threading.Thread(target=read, name="fluidnb reader", daemon=True)
        _reading[thread] = left, ready
        thread.start()
        try:
            while True:
                sample, error, more = ready.get()
                if error is not None:
                    raise error
                if not more:
                    return
                yield sample
        finally:
            _leave(left, ready)

    return ahead


def _leave(left: threading.Event, ready: _Ready) -> None:
    left.set()
    while not ready.empty():  # lets a thread that waits for room go on and see that it is over
        ready.get_nowait()


@atexit.register
def _leave_all() -> None:
    """End the passes under way before Python ends their threads, which it would do anywhere, locks and files open."""
    threads = {thread: how for thread, how in list(_reading.items()) if thread.is_alive()}  # not so in a forked child
    for how in threads.values():
        _leave(*how)
    until = time.monotonic() + PATIENCE
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))


def xmap_readers(
    mapper: Callable[[Any], Any], reader: Reader, process_num: int, buffer_size: int, order: bool = False
) -> Reader:
    """Apply a function to samples in several threads.

    Args:
        mapper: takes a sample.
        reader: the source; it is read by the thread that consumes.
        process_num: how many threads.
        buffer_size: samples under way or ready at most.
        order: give the results in the source's order rather than as they are ready.

    Returns:
        A reader.

    Raises:
        OpTypeError: `mapper` cannot be called.
        Exception: what `mapper` raised, while reading.

    Example:
        >>> list(xmap_readers(lambda x: x * x, lambda: range(5), 2, 4, order=True)())
        [0, 1, 4, 9, 16]
    """
    check_mapper(mapper)
    check_reader(reader)
    check_count("process_num", process_num)
    check_count("buffer_size", buffer_size)

    def mapped() -> Iterator[Any]:
        workers = ThreadPoolExecutor(process_num, "fluidnb reader")
        try:
            samples = iter(reader())
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
