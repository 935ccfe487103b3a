"""A debug session in roles that are processes of Ray: lines typed here step there, and change no number."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.dap import ScriptSources
from fluidnb.debug import Session
from fluidnb.distributed import RayEngine, split_batches
from fluidnb.distributed.ray_start import running_ray
from fluidnb.errors import FluidError
from fluidnb.terminal.commands import run_command, view
from fluidnb.viz.base.styled_text import plain
from fluidnb.viz.session.html import session_html
from fluidnb_magics.widgets.panel import Panel
from tests.dap.client import Direct
from tests.distributed.networks import batches, built, collective, divided, fit_a_line, one_process

pytest.importorskip("ray", reason="no Ray: pip install 'fluidnb[distributed]'")
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"


def sgd() -> Any:
    return fluid.optimizer.SGD(0.1)


@pytest.fixture(scope="module", autouse=True)
def one_ray() -> Iterator[None]:
    """Ray runs once for all tests."""
    with running_ray(None):
        yield


class Watched:
    """A training by processes in a thread, which ends with the ``with``, a session, and lines typed into it.

    Args:
        divide: see `networks`.

    Attributes:
        feeds: of all steps; afterwards of those that were made.
    """

    def __init__(self, divide: Any) -> None:
        self.feeds, self._over = batches(built(fit_a_line, sgd)[0], 4000), False
        self.engine, self.session = RayEngine(divide(built(fit_a_line, sgd)), deadline=120.0), Session()
        self.error: BaseException | None = None
        self.parameters: dict[str, Any] = {}
        self.thread = threading.Thread(target=self._train)

    def _train(self) -> None:
        feeds = self.feeds

        def slow(trainer: int) -> Iterator[Any]:
            for feed in split_batches(feeds, 2)(trainer):
                time.sleep(0.05)
                yield feed

        try:
            rows = self.engine.train(slow, [], stop=lambda: self._over)
            self.feeds = feeds[: len(rows[0])]
            self.parameters = self.engine.parameters()
        except BaseException as e:
            self.error = e

    def __enter__(self) -> Watched:
        self.engine.__enter__()
        self.thread.start()
        while (self.engine.states.get("trainer:1") or {}).get("step") in (None, 0):
            if self.error is not None:
                self.engine.__exit__(None, None, None)
                raise self.error
            time.sleep(0.05)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.session.close()
        self._over = True
        self.thread.join()
        self.engine.__exit__(None, None, None)
        if error is not None and self.error is not None:
            raise self.error from error  # why the training ended

    def check_parameters(self) -> None:
        """The training ended with the parameters of one process."""
        assert self.error is None
        _, expected = one_process(built(fit_a_line, sgd), self.feeds)
        for name, value in expected.items():
            np.testing.assert_allclose(self.parameters[name], value, rtol=1e-4, atol=2e-5, err_msg=name)

    def type(self, line: str) -> str:
        """The output of a line at the prompt."""
        return plain(run_command(self.session, line))


def test_a_trainer_and_a_server_are_stepped_and_the_numbers_stay() -> None:
    with Watched(divided) as watched:
        text = watched.type("attach trainer1")
        assert "▶ 0  fc_0.tmp_0 = mul(" in text
        assert "→ trainer1" in watched.type("roles") and "paused here" in watched.type("roles")
        time.sleep(1.0)  # states are renewed meanwhile
        before = watched.engine.states["trainer:1"]
        watched.type("step 2")
        assert "at step 2" in plain(view(watched.session)) or "step 2" in watched.type("where")
        assert "fc_0.tmp_0" in watched.type("names")
        assert "float32" in watched.type("print fc_0.w_0")
        assert "elementwise" in session_html(watched.session)
        with pytest.raises(FluidError, match="has no value"):
            watched.type("print nothing")
        time.sleep(1.0)
        assert watched.engine.states["trainer:1"]["step"] == before["step"]  # type: ignore[index]
        text = watched.type("attach pserver0")
        assert "listen_and_serv" in text
        watched.type("step")
        assert "sgd" in watched.type("where")
        assert watched.type("attach trainer0") and "paused here" in watched.type("roles")
    watched.check_parameters()


def test_a_panel_shows_and_steps_a_role() -> None:
    def shows(panel: Panel, *words: str) -> bool:
        """Whether a panel comes to show these words in what a page gets."""
        end = time.monotonic() + 120  # Ray, three roles and this process share the cores
        while time.monotonic() < end:
            text = f"{panel.position} {panel.listing} {panel.scope} {panel.opened} {panel.stops} {panel.role}"
            if all(word in text for word in words):
                return True
            time.sleep(0.05)
        raise AssertionError(f"{words} not in {text}; {problems}, {watched.error}")

    with Watched(divided) as watched:
        panel, problems = Panel(watched.session), list[str]()
        panel.report = problems.append  # type: ignore[assignment, method-assign]
        panel.handle({"do": "attach", "role": "trainer1"})
        assert shows(panel, "'state': 'paused'", "mul", "trainer1", "fc_0.w_0")
        panel.handle({"do": "move", "word": "step"})
        panel.handle({"do": "open", "name": "fc_0.tmp_0"})
        assert shows(panel, "'here': (0, 1)", "'name': 'fc_0.tmp_0'")
        panel.handle({"do": "move", "word": "back"})
        assert shows(panel, "'here': (0, 0)")
        panel.handle({"do": "break", "text": "op send"})
        assert shows(panel, "op send")
        panel.handle({"do": "move", "word": "continue"})
        assert shows(panel, "'reason': 'breakpoint op send'")
        panel.handle({"do": "edit", "name": "fc_0.b_0", "text": "nothing + 1"})
        while not problems:
            time.sleep(0.05)
        assert "nothing" in problems.pop()
        assert "fc_0.tmp_0" in panel.static()["text/html"] and "send" in panel.static()["text/plain"]
        panel.handle({"do": "attach", "role": "pserver0"})
        assert shows(panel, "listen_and_serv", "pserver0")
        watched.session.role.leave()  # type: ignore[union-attr]
        assert shows(panel, "'state': 'idle'") and panel.role == ""
        assert not problems
        panel.close()
    assert watched.error is None


def test_an_editor_shows_and_steps_a_role() -> None:
    with Watched(divided) as watched:
        c = Direct(watched.session, ScriptSources(lambda: watched.session.program))
        c.ask("setFunctionBreakpoints", breakpoints=[{"name": "send"}])  # before it is in a role
        assert "→ trainer1" in c.ask("evaluate", expression="attach trainer1", context="repl")["result"]
        c.ask("configurationDone")
        c.event("stopped")
        frame = c.frames()[0]
        assert frame["name"] == "block 0: 0 mul" and frame["source"]["name"] == "program.fluid" and frame["line"] > 0
        assert {"x", "fc_0.w_0"} <= {row["name"] for row in c.scope("mul: inputs")}
        c.move("next")
        assert c.frames()[0]["name"] == "block 0: 1 elementwise_add"
        c.move("stepBack")
        assert c.frames()[0]["name"] == "block 0: 0 mul"
        assert c.move("continue")["reason"] == "function breakpoint"
        assert "float32" in c.ask("evaluate", expression="fc_0.w_0", context="repl")["result"]
        assert "nothing" in c.refused("evaluate", expression="nothing + 1", context="repl")
        assert "→ pserver0" in c.ask("evaluate", expression="attach pserver0", context="repl")["result"]
        c.event("stopped")
        assert "listen_and_serv" in c.frames()[0]["name"]
        watched.session.role.leave()  # type: ignore[union-attr]
        c.event("continued")
    assert watched.error is None


def test_nobody_is_late_while_a_person_looks_and_a_killed_role_is_named() -> None:
    with Watched(collective) as watched:
        watched.type("attach trainer0")
        watched.engine.deadline = 5.0
        time.sleep(8.0)  # longer than the deadline
        assert watched.error is None
        watched.engine.deadline = 120.0
        with pytest.raises(FluidError, match="There is no role trainer7"):
            watched.type("attach trainer7")
        os.kill(watched.engine.states["trainer:0"]["pid"], signal.SIGKILL)  # type: ignore[index]
        with pytest.raises(FluidError, match="process of trainer0 has ended|No debug session"):
            for _ in range(100):
                watched.type("where")
                time.sleep(0.1)
    watched.check_parameters()
