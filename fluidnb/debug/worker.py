"""Requests of a debug session, done one after another: by a thread, or inline where no thread can start."""

from __future__ import annotations

import contextvars
import queue
import threading
import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol

from fluidnb.errors import FluidError
from fluidnb.runtime.interrupt import pausing_instead


class Request:
    """A call, and a future of its result.

    Attributes:
        done: whether the future has its result.
    """

    def __init__(self, call: Callable[[], Any], pause: Pause | None = None) -> None:
        self.future: Future[Any] = Future()
        self.done, self._going = False, threading.Lock()  # held until it is done
        self._going.acquire()
        self.future.add_done_callback(self._end)
        self._call, self._pause = call, pause

    def wait(self, seconds: float) -> bool:
        """Whether it is done within some seconds.

        Ctrl-C may come at any moment in here: a lock is taken in one call of C. In `Future.result` it comes between
        two lines of a Condition now and then, which then releases a lock that it does not hold: a RuntimeError.
        """
        return self.done or self._going.acquire(timeout=seconds)

    def _end(self, _: Future[Any]) -> None:
        self.done = True
        self._going.release()

    def run(self) -> None:
        """Make the call, and set the future."""
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            result, error = self._call(), None
        except BaseException as e:
            e.__traceback__ = None if isinstance(e, FluidError) else e.__traceback__
            result, error = None, e
        if self._pause is not None:
            self._pause.end(self.future)  # before the answer: a pause that comes after it is for the next request
        if error is None:
            self.future.set_result(result)
        else:
            self.future.set_exception(error)


class Pause:
    """A pause that is wanted; it is for all requests that are not done.

    Args:
        wanted: set until the program has paused.
    """

    def __init__(self, wanted: threading.Event) -> None:
        self._wanted, self._lock = wanted, threading.Lock()
        self.last: Future[Any] = Future()  # of the request that was put last
        self.last.set_result(None)

    def want(self) -> None:
        """Let the program pause, unless every request is done."""
        if not self.last.done():
            self._wanted.set()

    def put(self, request: Request, put: Callable[[Request], None]) -> None:
        """Put a request behind the others."""
        with self._lock:  # what was put last is what comes last
            if self.last.done():
                self._wanted.clear()
            self.last = request.future
            put(request)

    def end(self, future: Future[Any]) -> None:
        """Forget the pause with the last request: one that came meanwhile is for those behind, too."""
        with self._lock:
            if self.last is future:
                self._wanted.clear()


class Worker(Protocol):
    """Does requests in the order in which they were put."""

    inline: bool

    @property
    def busy_here(self) -> bool:
        """Whether the caller is inside a request, as an observer is."""

    def put(self, request: Request) -> None:
        """Add a request."""

    def work(self) -> None:
        """Do what was put, unless something else does it."""

    def end(self) -> None:
        """Do nothing more after what was put."""


def worker_of(pause: Callable[[], None], inline: bool) -> Worker:
    """A thread; where none can start, or with ``inline``, the caller.

    Args:
        pause: what Ctrl-C calls while the main thread is inside a request.
    """
    if inline:
        return InlineWorker(pause)
    try:
        return ThreadWorker()
    except RuntimeError:  # Python in a browser has no threads
        return InlineWorker(pause)


class ThreadWorker:
    """A thread that does the requests."""

    inline = False

    def __init__(self) -> None:
        self._inbox: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        context = contextvars.copy_context()  # front ends read the current cell from it
        self._thread = threading.Thread(target=context.run, args=(_work, self._inbox), name="fluid-debug", daemon=True)
        # A Python debugger must not stop it: it answers while that one stops every other thread.
        vars(self._thread).update(pydev_do_not_trace=True)
        # Before the start: an interrupt may come in the middle of it, and nothing else would end the thread.
        self._end = weakref.finalize(self, self._inbox.put, None)
        self._thread.start()

    @property
    def busy_here(self) -> bool:
        """Whether the caller is inside a request."""
        return threading.current_thread() is self._thread

    def put(self, request: Request) -> None:
        """Add a request."""
        self._inbox.put(request)

    def work(self) -> None:
        """Nothing: the thread works by itself."""

    def end(self) -> None:
        """Let the thread end."""
        self._end()


class InlineWorker:
    """Does requests in the thread of the caller; what observers put follows the request that called them."""

    inline = True

    def __init__(self, pause: Callable[[], None]) -> None:
        self._pause = pause
        self._waiting: deque[Request] = deque()
        self._lock = threading.Lock()
        self._thread: int | None = None  # the one that works

    @property
    def busy_here(self) -> bool:
        """Whether the caller is inside a request."""
        return self._thread == threading.get_ident()

    def put(self, request: Request) -> None:
        """Add a request."""
        self._waiting.append(request)

    def work(self) -> None:
        """Do what was put, unless a request is being done."""
        with pausing_instead(self._pause):
            while (request := self._next()) is not None:
                try:
                    request.run()
                finally:
                    self._thread = None

    def _next(self) -> Request | None:
        """The next request, which is the caller's to do; None if there is none, or another one is being done."""
        with self._lock:
            if self._thread is not None or not self._waiting:
                return None
            self._thread = threading.get_ident()
            return self._waiting.popleft()

    def end(self) -> None:
        """Nothing: nothing runs by itself."""


def _work(inbox: queue.SimpleQueue[Request | None]) -> None:
    """Do one request after another, until the session is gone."""
    while (request := inbox.get()) is not None:
        request.run()
        del request  # nothing of the session is kept while waiting
