"""All private names of ipykernel and ipywidgets that fluidnb uses; where one is missing, nothing breaks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")
Message = dict[str, Any]


def answer_anywhere(widget: Any) -> None:
    """Let a widget respond while a cell is still running.

    ipykernel 7.4 ties a comm to the (sub)shell that published on it last: a widget of a cell would respond on the busy
    main shell. The front end chooses, for all messages: when the tie was taken off after each of ours instead, a pause
    that came between was lost, one of thirty.
    """
    comm = getattr(widget, "comm", None)
    if hasattr(comm, "_reply_subshell_for"):
        vars(comm)["_reply_subshell_for"] = lambda data, chosen: chosen


class DebugChannel:
    """The debug channel of a kernel: requests of the front end, and events of the debugger.

    Only the kernel object and its debugger are changed, never their classes; `detach` restores them.
    """

    #: Attributes that a kernel and its debugger must have; those of ipykernel 6.29 to 7.4 do.
    NEEDS = ("do_debug_request", "session", "iopub_socket", "_topic")
    DEBUGGER_NEEDS = ("is_started", "stopped_threads", "breakpoint_list", "event_callback")

    def __init__(self, kernel: Any) -> None:
        self._kernel, self._debugger = kernel, kernel.debugger
        self._before: dict[str, Any] = {}
        self._callback = self._debugger.event_callback

    @classmethod
    def of(cls, kernel: Any) -> DebugChannel | None:
        """The debug channel of a kernel; None without one: a terminal, another kernel, no debugpy, missing names."""
        debugger = getattr(kernel, "debugger", None)
        has_names = all(hasattr(kernel, name) for name in cls.NEEDS)
        return cls(kernel) if has_names and all(hasattr(debugger, name) for name in cls.DEBUGGER_NEEDS) else None

    def attach(self, respond: Callable[[Message], Awaitable[Any]], on_event: Callable[[Message], object]) -> None:
        """Calls ``respond`` in place of `request_python`, and ``on_event`` after each event of Python's debugger."""
        self._before = {name: value for name, value in vars(self._kernel).items() if name == "do_debug_request"}

        def forward(event: Message) -> None:
            self._callback(event)
            on_event(event)

        self._python = self._kernel.do_debug_request
        self._kernel.do_debug_request = respond
        self._debugger.event_callback = forward

    def detach(self) -> None:
        """Undo `attach`."""
        vars(self._kernel).pop("do_debug_request", None)
        vars(self._kernel).update(self._before)
        self._debugger.event_callback = self._callback

    async def request_python(self, request: Message) -> Any:
        """The response of the kernel's own debugger."""
        return await self._python(request)

    def change_port(self) -> None:
        """Let the Python debugger choose another port when it is started next."""
        client: Any = getattr(self._debugger, "debugpy_client", None)
        if hasattr(client, "debugpy_port") and hasattr(client, "disconnect_tcp_socket"):
            client.disconnect_tcp_socket()
            client.debugpy_port = -1

    async def meanwhile(self, waiting: Awaitable[T]) -> T:
        """Wait for something while the kernel handles other requests of the front end.

        ipykernel handles one request at a time, and its messages belong to the request that it began last.
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

    def post_to_python(self, request: Message) -> None:
        """Send a request to the kernel's debugger, from any thread, without waiting for the response."""
        loop = getattr(getattr(self._kernel, "control_thread", None), "io_loop", None)
        if loop is not None:
            loop.add_callback(self._python, request)

    def send(self, event: Message) -> None:
        """Sends an event to the front end, from any thread."""
        kernel = self._kernel
        if kernel.session is not None:
            kernel.session.send(kernel.iopub_socket, "debug_event", event, ident=kernel._topic("debug_event"))

    @property
    def started(self) -> bool:
        """Whether a front end has switched its debugger on."""
        return bool(self._debugger.is_started)

    @property
    def python_is_paused(self) -> bool:
        """Whether a Python thread is paused at a breakpoint."""
        return bool(self._debugger.stopped_threads)

    @property
    def breakpoints(self) -> dict[str, list[Message]]:
        """The breakpoints of the Python debugger: file -> each with its line."""
        return {file: list(points) for file, points in self._debugger.breakpoint_list.items()}
