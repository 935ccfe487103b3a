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
from fluidnb.debug import Session
from fluidnb.distributed import RayEngine, split_batches
from fluidnb.distributed.ray_start import running_ray
from fluidnb.errors import FluidError
from fluidnb.terminal.commands import run_command, view
from fluidnb.viz.base.styled_text import plain
from fluidnb.viz.session.html import session_html
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
    """A training by processes in a thread, a session, and lines typed into it."""

    def __init__(self, divide: Any, deadline: float = 120.0) -> None:
        self.feeds = batches(built(fit_a_line, sgd)[0], 120)  # so that it still runs when the session attaches
        self.engine, self.session = RayEngine(divide(built(fit_a_line, sgd)), deadline=deadline), Session()
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
            self.engine.train(slow)
            self.parameters = self.engine.parameters()
        except BaseException as e:
            self.error = e

    def __enter__(self) -> Watched:
        self.engine.__enter__()
        self.thread.start()
        while (self.engine.states.get("trainer:1") or {}).get("step") in (None, 0):
            time.sleep(0.05)
        return self

    def __exit__(self, *error: object) -> None:
        self.session.close()
        self.thread.join()
        self.engine.__exit__(None, None, None)

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
    assert watched.error is None
    _, expected = one_process(built(fit_a_line, sgd), watched.feeds)
    for name, value in expected.items():
        np.testing.assert_allclose(watched.parameters[name], value, rtol=1e-4, atol=2e-5, err_msg=name)


def test_nobody_is_late_while_a_person_looks_and_a_killed_role_is_named() -> None:
    with Watched(collective, deadline=5.0) as watched:
        watched.type("attach trainer0")
        time.sleep(8.0)  # longer than the deadline
        assert watched.error is None
        with pytest.raises(FluidError, match="There is no role trainer7"):
            watched.type("attach trainer7")
        os.kill(watched.engine.states["trainer:0"]["pid"], signal.SIGKILL)  # type: ignore[index]
        with pytest.raises(FluidError, match="process of trainer0 has ended|No debug session"):
            for _ in range(100):
                watched.type("where")
                time.sleep(0.1)
        watched.engine.deadline = 120.0
    assert watched.error is None
    _, expected = one_process(built(fit_a_line, sgd), watched.feeds)
    for name, value in expected.items():
        np.testing.assert_allclose(watched.parameters[name], value, rtol=1e-4, atol=2e-5, err_msg=name)
