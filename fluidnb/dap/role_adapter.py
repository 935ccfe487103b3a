"""A debug adapter whose session is in a role of another process: an adapter there answers, and its events come here."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from fluidnb.dap.references import BASE
from fluidnb.dap.sources import ScriptSources
from fluidnb.debug.session import Role, Session

if TYPE_CHECKING:
    from fluidnb.dap.adapter import Adapter

Message = dict[str, Any]

#: Seconds between two looks at the events of a role, and for a request to be done.
_EACH, _SOON = 0.1, 0.3
#: Requests that set something: a session takes it along to other roles.
SETTINGS = (
    "initialize", "setBreakpoints", "setFunctionBreakpoints", "setDataBreakpoints", "setExceptionBreakpoints",
    "configurationDone",
)  # fmt: skip

#: In the process of a role: the adapters of its session, by the ids of those that ask them.
_adapters: dict[str, _AdapterThere] = {}


class RoleAdapter:
    """Sends requests of a client to the process of a role, until the session leaves it.

    Args:
        role: the role.
        session: the session here.
        settings: earlier requests of the client that set something.
        emit: called with each event; the number of the message is the receiver's.
    """

    def __init__(
        self, role: Role, session: Session, settings: Iterable[Message], emit: Callable[[Message], None]
    ) -> None:
        self.role, self._session, self._emit = role, session, emit
        self._id, self._asking = uuid.uuid4().hex, threading.Lock()
        self._settings = list(settings)  # those that the adapter there does not know yet
        threading.Thread(target=self._follow, name="fluid-role-adapter", daemon=True).start()

    def answer(self, message: Message | None, send: Callable[[Message], None]) -> None:
        """Let the adapter there answer a request, and pass on its events, after the response.

        Args:
            message: the request; None to look for events only.
            send: called with the response.
        """
        with self._asking:
            while self._settings:
                self._ask(self._settings[0], lambda response: None)
                del self._settings[0]
            self._ask(message, send)

    def _ask(self, message: Message | None, send: Callable[[Message], None]) -> None:
        """Query the adapter there; send its response, then its events."""
        there = self.role.there
        assert there is not None
        response, events = there(answer, self._id, message)
        if response is not None:
            send(response)
        for event in events:
            self._emit(event)

    def _follow(self) -> None:
        """Pass on events while the session is in the role."""
        try:
            while self._session.role is self.role and not self._session.closed:
                self.answer(None, lambda response: None)
                time.sleep(_EACH)
        except Exception as error:  # the role has ended, or its process
            self._emit({"type": "event", "event": "output", "body": {"category": "stderr", "output": f"{error}\n"}})
        continued = {"threadId": BASE, "allThreadsContinued": True}
        self._emit({"type": "event", "event": "continued", "body": continued})


class _AdapterThere:
    """The adapter in the process of a role."""

    def __init__(self, session: Session) -> None:
        from fluidnb.dap.adapter import Adapter

        self.session, self._events = session, list[Message]()
        self._adapter: Adapter = Adapter(self._events.append, session, ScriptSources(lambda: session.program))

    def answer(self, message: Message | None) -> tuple[Message | None, list[Message]]:
        """Answer a request; the response, and the events since the last answer."""
        response = None
        if message is not None:
            response = self._adapter.handle(message)
            self.session.settle(_SOON)
        seen = self._events[:]
        del self._events[: len(seen)]  # the worker thread may add others meanwhile
        return response, [event for event in seen if event["event"] != "initialized"]


def answer(session: Session, adapter: str, message: Message | None) -> tuple[Message | None, list[Message]]:
    """Runs in the process of a role: the response of the adapter there, and its events.

    Args:
        session: the one in the role.
        adapter: the id of the adapter that asks.
        message: the request; None for events only.
    """
    there = _adapters.get(adapter)
    if there is None or there.session is not session:
        there = _adapters[adapter] = _AdapterThere(session)
    return there.answer(message)
