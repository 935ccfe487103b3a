"""All private names of ipykernel and ipywidgets that fluidnb uses; where one is missing, nothing breaks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")
Message = dict[str, Any]


def answer_anywhere(widget: Any) -> None:
    """Let a widget answer while its cell, or another one, is still running.

    ipykernel 7.4 ties a comm to the (sub)shell that published on it last, so that a widget which a cell made would
    answer on the busy main shell; without that tie the front end chooses. Where the name is missing, nothing happens.

    Args:
        widget: a widget with a comm.
    """
    comm = getattr(widget, "comm", None)
    if comm is not None:
        vars(comm).pop("_reply_subshell_id", None)


class DebugChannel:
    """The debug channel of a kernel: requests of the front end, and events of the debugger.

    Only the kernel object and its debugger are changed, never their classes; `give_back` takes all of it back.

    Args:
        kernel: a kernel for which `of` gave a channel.
    """

    #: What a kernel and its debugger must have; ipykernel 6.29 to 7.4 do.
    NEEDS = ("do_debug_request", "session", "iopub_socket", "_topic")
    DEBUGGER_NEEDS = ("is_started", "stopped_threads", "breakpoint_list", "event_callback")

    def __init__(self, kernel: Any) -> None:
        self._kernel, self._debugger = kernel, kernel.debugger
        self._before: dict[str, Any] = {}
        self._callback = self._debugger.event_callback

    @classmethod
    def of(cls, kernel: Any) -> DebugChannel | None:
        """The debug channel of a kernel.

        Args:
            kernel: a kernel, or None in a terminal.

        Returns:
            The channel; None where there is none: another kernel, no debugpy, or names that are gone.

        Example:
            >>> DebugChannel.of(None) is None
            True
        """
        debugger = getattr(kernel, "debugger", None)
        there = all(hasattr(kernel, name) for name in cls.NEEDS)
        return cls(kernel) if there and all(hasattr(debugger, name) for name in cls.DEBUGGER_NEEDS) else None

    def borrow(self, answer: Callable[[Message], Awaitable[Any]], hear: Callable[[Message], object]) -> None:
        """Redirects the front end's requests and the Python debugger's events to a handler.

        Args:
            answer: called with each request, in the thread of the control channel; `ask_python` is what it replaces.
            hear: called with each event of the Python debugger after the front end was told, in the same thread.
        """
        self._before = {name: value for name, value in vars(self._kernel).items() if name == "do_debug_request"}

        def tell(event: Message) -> None:
            self._callback(event)
            hear(event)

        self._python = self._kernel.do_debug_request
        self._kernel.do_debug_request = answer
        self._debugger.event_callback = tell

    def give_back(self) -> None:
        """Make everything as it was before `borrow`."""
        vars(self._kernel).pop("do_debug_request", None)
        vars(self._kernel).update(self._before)
        self._debugger.event_callback = self._callback

    async def ask_python(self, request: Message) -> Any:
        """What the kernel itself answers.

        Args:
            request: the request.

        Returns:
            The response.
        """
        return await self._python(request)

    async def meanwhile(self, waiting: Awaitable[T]) -> T:
        """Wait for something while the kernel answers other requests of the front end.

        ipykernel answers one request at a time, and its messages belong to the request that it began last.

        Args:
            waiting: what is waited for.

        Returns:
            Its result.
        """
        kernel = self._kernel
        lock = getattr(kernel, "_control_lock", None)
        if lock is None or not lock.locked() or not hasattr(kernel, "_control_parent_ident"):
            return await waiting
        parent, ident = kernel.get_parent("control"), kernel._control_parent_ident
        lock.release()
        try:
            return await waiting
        finally:
            await lock.acquire()
            kernel.set_parent(ident, parent, channel="control")

    def ask_python_soon(self, request: Message) -> None:
        """Sends a request to the kernel, from any thread, without waiting for the response.

        Args:
            request: the request.
        """
        loop = getattr(getattr(self._kernel, "control_thread", None), "io_loop", None)
        if loop is not None:
            loop.add_callback(self._python, request)

    def tell(self, event: Message) -> None:
        """Sends an event to the front end, from any thread.

        It is told for itself, as the answer to no request: which request a thread of its own would answer differs
        between versions, and a front end asks for the variables anew after each answer to a cell.

        Args:
            event: the event.
        """
        kernel = self._kernel
        if kernel.session is not None:
            kernel.session.send(kernel.iopub_socket, "debug_event", event, ident=kernel._topic("debug_event"))

    @property
    def started(self) -> bool:
        """Whether a front end has switched its debugger on."""
        return bool(self._debugger.is_started)

    @property
    def python_stands(self) -> bool:
        """Whether a Python thread is paused at a breakpoint."""
        return bool(self._debugger.stopped_threads)

    @property
    def breakpoints(self) -> dict[str, list[Message]]:
        """The breakpoints of the Python debugger: file -> each with its line."""
        return {file: list(points) for file, points in self._debugger.breakpoint_list.items()}
