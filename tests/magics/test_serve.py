"""``%fluid serve``: editors join the debug session of a shell."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

from IPython.core.error import UsageError

from fluidnb.dap.server import Server
from fluidnb.debug.session import current
from tests.dap.client import PATIENCE
from tests.dap.sockets import Wire
from tests.magics.conftest import Session

NET = """%%fluid net
x = layers.data("x", shape=[2])
h = layers.scale(x, scale=3.0)
"""
RUN = "out = fluid.Executor().run(feed={'x': np.ones((1, 2), 'float32')}, fetch_list=[h])[0].tolist()"


def join(session: Session) -> tuple[Wire, Server]:
    """A client of what ``%fluid serve`` prints, and the server."""
    found = re.search(r"debug adapter at 127\.0\.0\.1:(\d+), token in (\S+)", session.run("%fluid serve"))
    server = session.bench.server
    assert found is not None and server is not None and server.port == int(found[1])
    return Wire(server.port).begin(Path(found[2]).read_text()), server


def test_a_run_of_a_cell_waits_for_the_editor(session: Session) -> None:
    session.run(NET)
    editor, server = join(session)
    assert "token" in session.run("%fluid serve")  # once more: the same server
    editor.ask("setFunctionBreakpoints", breakpoints=[{"name": "scale"}])
    seen: list[Any] = []

    def act() -> None:
        thread = editor.event("stopped")["threadId"]
        seen.append(editor.ask("stackTrace", threadId=thread)["body"]["stackFrames"][0]["name"])
        seen.append(editor.ask("setExpression", expression="x", value="x + 1")["body"]["value"])
        editor.ask("continue", threadId=thread)

    acting = threading.Thread(target=act, daemon=True)
    acting.start()
    session.run(RUN)
    acting.join(PATIENCE)
    assert seen == ["block 0: 0 scale", "float32[1, 2]  [2, 2]"] and session.names["out"] == [[6.0, 6.0]]
    assert "the server is stopped" in session.run("%fluid serve --stop")
    assert server.closed and session.bench.server is None
    editor.close()


def test_magics_move_the_editor_and_a_session_that_ends_tells_it(session: Session) -> None:
    session.run(NET)
    session.run("%fluid debug --feed x=np.ones((1,2),'float32')")
    editor, _ = join(session)
    assert editor.event("stopped")["reason"] == "entry"
    session.run("%fluid step")
    assert editor.event("stopped")["description"] == "the end"
    session.run("%fluid back")
    assert editor.event("stopped")["description"] == "after 1 step back"
    session.run("%fluid debug off")
    editor.event("terminated")
    session.run("%fluid serve --stop")
    editor.close()


def test_what_makes_no_sense(session: Session) -> None:
    session.run(NET)
    error, _ = session.fail("%fluid serve --stop")
    assert isinstance(error, UsageError) and "No server is running" in str(error)
    editor, server = join(session)
    error, _ = session.fail(f"%fluid serve --port {server.port + 1}")
    assert f"already runs on port {server.port}" in str(error)
    session.run("%unload_ext fluidnb")
    assert server.closed
    made = current()
    assert made is not None
    made.close()
    editor.close()
