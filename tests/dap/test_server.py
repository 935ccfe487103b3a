"""The debug adapter on a socket: tokens, a single client, malformed bytes, runs that wait for it."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.dap import client
from fluidnb.dap.host import Host
from fluidnb.dap.server import LOOPBACK, Server
from fluidnb.dap.wire import MOST
from fluidnb.debug.session import Session, Stopped
from fluidnb.errors import EnforceNotMet, OpValueError
from fluidnb.program import hooks
from tests.dap import programs
from tests.dap.client import PATIENCE
from tests.dap.programs import ROW
from tests.dap.sockets import OPENED, TOKEN, Wire


@pytest.fixture(autouse=True)
def all_closed() -> Iterator[None]:
    """Close the clients of a test at its end."""
    yield
    while OPENED:
        OPENED.pop().close()


@pytest.fixture
def session() -> Iterator[Session]:
    """The counting program at its first operator."""
    loss = programs.counting()
    d = fluid.debug(feed={"x": ROW}, fetch_list=[loss])
    yield d
    d.close()


@pytest.fixture
def server(session: Session) -> Iterator[Server]:
    """A server for it."""
    with Server(Host(lambda: session, TOKEN), TOKEN) as started:
        yield started


def test_a_client_steps(server: Server, session: Session) -> None:
    c = Wire(server.port).begin()
    thread = c.event("stopped")["threadId"]
    assert c.ask("next", threadId=thread)["success"]
    assert c.event("stopped")["description"] == "after 1 operator" and session.snapshot.at == 1
    assert c.ask("disconnect")["success"] and c.rest() == []


def test_a_token_in_the_first_request_is_enough(server: Server) -> None:
    c = Wire(server.port)
    assert c.ask("initialize", adapterID="fluidnb", token=TOKEN)["success"]
    assert c.ask("threads")["success"]
    c.close()


@pytest.mark.parametrize("shown", [{"token": "wrong"}, {"token": ""}, {"token": 7}, {"token": None}, {}])
def test_a_wrong_token_ends_the_connection_and_tells_nothing(server: Server, session: Session, shown: Any) -> None:
    c = Wire(server.port)
    assert c.ask("initialize", adapterID="fluidnb")["success"]
    refused = c.ask("attach", **shown)
    assert not refused["success"] and "oken" in refused["message"]
    assert c.rest() == [] and c.events == []
    assert session.breakpoints == () and server.host.ready == []
    Wire(server.port).begin().event("stopped")


@pytest.mark.parametrize("command", ["threads", "stackTrace", "evaluate", "setBreakpoints", "terminate", "dance"])
def test_nothing_is_answered_before_the_token(server: Server, command: str) -> None:
    c = Wire(server.port)
    refused = c.ask(command, threadId=1, expression="1", source={}, breakpoints=[])
    assert not refused["success"] and "token comes first" in refused["message"] and c.rest() == []


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /a:b HTTP/1.1\r\nContent-Length: 13\r\n\r\n{\"seq\": 1234}",
        b"Origin: http://example.com\r\nContent-Length: 2\r\n\r\n{}",
        b"Content-Length: 2\r\nOrigin: null\r\n\r\n{}",
        b"Content-Length: many\r\n\r\n{}",
        b"Content-Length: -5\r\n\r\n{}",
        b"Content-Length: %d\r\n\r\n{}" % (MOST + 1),
        b"Content-Length: 99999999999999999999999\r\n\r\n{}",
        b"Content-Length: 2\r\n\r\n[]",
        b"Content-Length: 4\r\n\r\n{,,}",
        b"Content-Length: 3\r\n\r\n\xff\xfe\xfd",
        b"Content-Length: 20000\r\n\r\n" + b"[" * 20000,
        b"\r\n\r\n",
        b"a" * 5000,
        b"X-A: 1\r\n" * 100,
    ],
)
@pytest.mark.parametrize("known", [False, True])
def test_what_is_no_message_ends_that_connection_alone(
    server: Server, session: Session, data: bytes, known: bool
) -> None:
    c = Wire(server.port)
    if known:
        c.begin()
    c.socket.sendall(data)
    last = [m for m in c.rest() if m["type"] == "response"]
    assert [m["success"] for m in last] == [False] and last[0]["message"]
    other = Wire(server.port).begin()
    thread = other.event("stopped")["threadId"]
    assert other.ask("next", threadId=thread)["success"] and other.event("stopped")
    assert session.snapshot.at == 1


def test_a_client_that_vanishes_in_the_middle_of_a_request_leaves_the_session_to_the_next(
    server: Server, session: Session
) -> None:
    first = Wire(server.port).begin()
    thread = first.event("stopped")["threadId"]
    first.ask("setFunctionBreakpoints", breakpoints=[{"name": "mean"}])
    first.socket.sendall(b'Content-Length: 500\r\n\r\n{"seq": 9, "type": "req')
    first.close()
    second = Wire(server.port).begin()
    second.event("stopped")
    second.ask("setFunctionBreakpoints", breakpoints=[{"name": "while"}])
    assert second.ask("next", threadId=thread)["success"]
    assert second.event("stopped")["description"] == "after 1 operator"
    assert second.ask("continue", threadId=thread)["success"]
    assert second.event("stopped")["reason"] == "function breakpoint" and session.snapshot.op.type == "while"
    assert [b.text for b in session.breakpoints] == ["op while"]


def test_a_client_that_goes_while_its_request_is_under_way(server: Server, session: Session) -> None:
    first = Wire(server.port).begin()
    first.send("continue", threadId=first.event("stopped")["threadId"])
    first.close()
    second = Wire(server.port).begin()
    while second.event("stopped")["description"] != "the end":
        pass
    assert session.results[0] == [3.0]


def test_a_second_client_is_refused_until_the_first_has_left(server: Server, session: Session) -> None:
    first = Wire(server.port).begin()
    first.event("stopped")
    second = Wire(server.port)
    assert second.ask("initialize", adapterID="fluidnb")["success"]
    refused = second.ask("attach", token=TOKEN)
    assert not refused["success"] and "Another editor is attached" in refused["message"] and second.rest() == []
    assert first.ask("threads")["success"]
    assert first.ask("disconnect")["success"]
    Wire(server.port).begin().event("stopped")


def test_connections_without_a_token_are_few_and_short(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_PATIENCE", 0.2)
    silent = [Wire(server.port) for _ in range(20)]
    assert [wire.rest() for wire in silent] == [[]] * 20
    Wire(server.port).begin().event("stopped")


def test_a_client_that_does_not_read_holds_nobody_up(server: Server, session: Session) -> None:
    deaf = Wire(server.port).begin()
    for _ in range(3):
        session.step(5)
        session.restart()
    assert session.snapshot.at == 0
    assert deaf.event("stopped")


def test_closing_gives_the_port_back(session: Session) -> None:
    before = hooks.debug_prompt
    server = Server(Host(lambda: session, TOKEN), TOKEN, _free_port())
    c = Wire(server.port).begin()
    with pytest.raises(OpValueError, match=f"Nothing can listen on port {server.port}"):
        Server(Host(lambda: session, TOKEN), TOKEN, server.port)
    server.close()
    assert server.closed and hooks.debug_prompt is before
    assert [m["event"] for m in c.rest()] in ([], ["stopped"])
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((LOOPBACK, server.port))
    again = Server(Host(lambda: session, TOKEN), TOKEN, server.port)
    assert again.port == server.port and not session.closed
    again.close()


def test_between_the_runs_of_a_script_nothing_stands_still(session: Session) -> None:
    session.continue_()
    with Server(Host(lambda: session, TOKEN, stays=True, interrupt=lambda: None), TOKEN) as server:
        c = Wire(server.port).begin()
        assert c.ask("threads")["success"] and c.events == []
        session.restart()
        assert c.event("stopped")["description"] == "the beginning of the run"


def test_without_a_session_there_is_nothing_to_join() -> None:
    with Server(Host(lambda: None, TOKEN), TOKEN) as server:
        c = Wire(server.port)
        c.ask("initialize", adapterID="fluidnb")
        refused = c.ask("attach", token=TOKEN)
        assert "no debug session" in refused["message"] and c.rest() == []


def test_what_it_prints_is_a_launch_json(server: Server) -> None:
    first, _, *rest = server.text("Fluid: net").splitlines()
    assert first == f"debug adapter at 127.0.0.1:{server.port}, token in {server.token_file}"
    assert TOKEN not in server.text("Fluid: net")
    assert server.token_file.read_text() == TOKEN
    modes = [path.stat().st_mode & 0o777 for path in (server.token_file, server.token_file.parent)]
    assert modes == [0o600, 0o700]
    server.close()
    assert not server.token_file.exists()
    (entry,) = json.loads("\n".join(rest))["configurations"]
    assert entry == server.configuration("Fluid: net") and entry["type"] == "fluidnb"


# ---- runs that wait for clients


class Running:
    """A thread with ``exe.run`` of the counting program, attached to a session."""

    def __init__(self, runs: int = 1) -> None:
        self.loss = programs.counting()
        self.session = Session(fluid.default_main_program()).__enter__()
        self.server = Server(Host(lambda: self.session, TOKEN), TOKEN)
        self.given: list[Any] = []
        self.runs = runs
        self._scope, self._program = fluid.global_scope(), fluid.default_main_program()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            for _ in range(self.runs):
                self.given.append(
                    fluid.Executor().run(self._program, {"x": ROW}, [self.loss], scope=self._scope)[0].tolist()
                )
        except BaseException as error:
            self.given.append(error)

    def start(self) -> None:
        """Begin to run."""
        self._thread.start()

    def over(self) -> list[Any]:
        """The results of the runs."""
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        return self.given


@pytest.fixture
def running() -> Iterator[Running]:
    """A program before its two runs."""
    made = Running(runs=2)
    yield made
    made.session.close()
    made.server.close()


def test_runs_go_on_from_stop_to_stop_and_back_into_the_run_before(running: Running) -> None:
    c = Wire(running.server.port).begin(stopOnEntry=True)
    c.ask("setFunctionBreakpoints", breakpoints=[{"name": "mean"}])
    running.start()
    first = c.event("stopped")
    assert first["reason"] == "entry"
    c.ask("continue", threadId=first["threadId"])
    assert c.event("stopped")["reason"] == "function breakpoint" and running.session.snapshot.run == 0
    c.ask("continue", threadId=first["threadId"])
    assert c.event("stopped")["reason"] == "function breakpoint" and running.session.snapshot.run == 1
    c.ask("reverseContinue", threadId=first["threadId"])
    assert c.event("stopped") and running.session.snapshot.run == 0
    c.ask("setFunctionBreakpoints", breakpoints=[])
    c.ask("continue", threadId=first["threadId"])
    assert running.over() == [[3.0], [3.0]]


def test_a_run_whose_client_leaves_goes_on(running: Running) -> None:
    c = Wire(running.server.port).begin(stopOnEntry=True)
    running.start()
    c.event("stopped")
    assert c.ask("disconnect")["success"]
    assert running.over() == [[3.0], [3.0]]


def test_a_run_whose_client_vanishes_stands_still_where_it_was(running: Running) -> None:
    c = Wire(running.server.port).begin(stopOnEntry=True)
    running.start()
    c.event("stopped")
    c.close()
    (error,) = running.over()
    assert isinstance(error, Stopped) and running.session.snapshot.at == 0
    assert running.session.continue_().state == "done"


def test_a_client_ends_a_run(running: Running) -> None:
    c = Wire(running.server.port).begin(stopOnEntry=True)
    running.start()
    c.event("stopped")
    assert c.ask("terminate")["success"]
    (error,) = running.over()
    assert isinstance(error, Stopped) and "has ended the run" in str(error)
    assert c.ask("threads")["success"]


def test_a_run_that_fails_raises_when_it_is_tried_again() -> None:
    y = layers.reshape(layers.data("x", shape=[2]), [-1, 3])
    program, scope = fluid.default_main_program(), fluid.global_scope()
    given: list[BaseException] = []

    def run() -> None:
        try:
            fluid.Executor().run(program, {"x": ROW}, [y], scope=scope)
        except EnforceNotMet as error:
            given.append(error)

    with Session(program) as session, Server(Host(lambda: session, TOKEN), TOKEN) as server:
        c = Wire(server.port).begin()
        c.ask("setExceptionBreakpoints", filters=["error"])
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        stopped = c.event("stopped")
        assert stopped["reason"] == "exception" and not given
        c.ask("continue", threadId=stopped["threadId"])
        thread.join(PATIENCE)
        assert len(given) == 1 and "reshape" in str(given[0])
        c.ask("setExceptionBreakpoints", filters=[])
        run()  # nobody wants to stop there
        assert len(given) == 2
    session.close()


def _free_port() -> int:
    """A free port outside the system's ephemeral range, so that no other test gets it meanwhile."""
    for port in random.sample(range(20_000, 30_000), 100):
        with contextlib.suppress(OSError), socket.create_server((LOOPBACK, port)):
            return port
    raise AssertionError("no port is free")


def _until(holds: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    rest = threading.Event()
    for _ in range(PATIENCE * 100):
        if holds():
            return
        rest.wait(0.01)
    raise AssertionError("it never held")
