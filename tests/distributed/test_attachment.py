"""A debug session in the roles of a training: steps there, moves from role to role, and changes no number."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.dap import ScriptSources
from fluidnb.debug import Session
from fluidnb.distributed.connection import Connection
from fluidnb.distributed.local import LocalEngine, split_batches
from fluidnb.distributed.shard import Shard
from fluidnb.distributed.training import Shares, Training
from fluidnb.errors import FluidError, NotFound
from fluidnb.terminal.commands import run_command, view
from fluidnb.viz.base.styled_text import plain
from fluidnb.viz.saved_page.page import read_page
from fluidnb.viz.session.html import session_html
from tests.dap.client import Direct
from tests.distributed.networks import batches, built, collective, divided, fit_a_line, one_process, shared_table


def momentum() -> Any:
    return fluid.optimizer.Momentum(0.01, 0.9)


class Watched:
    """A training whose batches come one by one, a session, and lines typed into it."""

    def __init__(self, network: Any = fit_a_line, optimizer: Any = momentum, **how: Any) -> None:
        self.parts = built(network, optimizer)
        self.feeds = batches(self.parts[0], 8)
        self.allowed = threading.Semaphore(0)
        transpiler = divided(self.parts, **how)
        self.training = Training(transpiler, Shares(self._batches(), dict, 2), [self.parts[2].name])
        self.session = Session(self.parts[0])
        self.training.start()
        while not self.training._up.is_set():
            time.sleep(0.01)

    def _batches(self) -> Iterator[Any]:
        for feed in self.feeds:
            while not self.allowed.acquire(timeout=0.05):
                if self.training.stopped:
                    return
            yield feed

    def give(self, count: int) -> None:
        """Let the trainers have so many more batches."""
        self.allowed.release(count)

    def type(self, line: str) -> str:
        """The output of a line at the prompt."""
        return plain(run_command(self.session, line))

    def end(self) -> None:
        """Stop all roles, and close the session."""
        self.training.stop()
        assert self.training.wait(20)
        if not self.session.closed:
            self.session.close()

    def attach(self, role: str) -> str:
        """Attach, and let the role begin a run meanwhile."""
        threading.Timer(0.2, self.give, (1,)).start()
        return self.type(f"attach {role}")


@pytest.fixture
def watched() -> Iterator[Watched]:
    """A training with two trainers and two servers."""
    made = Watched()
    yield made
    made.end()
    assert not [t.name for t in threading.enumerate() if t.name.startswith("fluidnb ")]


def test_a_trainer_stops_at_its_next_step_and_the_others_wait(watched: Watched) -> None:
    shown = watched.attach("trainer1")
    assert "▶ 0  fc_0.tmp_0 = mul(" in shown
    watched.give(3)
    time.sleep(0.3)
    states = {role.name: role.state for role in watched.training.roles()}
    assert states["trainer1"] == "paused" and len(watched.training.losses()) == 0
    assert "→ trainer1  paused here" in watched.type("roles")
    assert "float32[4, 1]" in watched.type("next") and "float32[4, 13]" in watched.type("scope")
    assert "run 1" in watched.type("continue"), "the next training step, at its first operator"
    assert len(watched.training.losses()) == 1


def test_the_update_of_a_server_is_stepped_forwards_and_back(watched: Watched) -> None:
    watched.give(1)
    assert "listen_and_serv" in watched.type("attach pserver1")
    watched.give(1)
    shown = watched.type("step")
    assert "block 1, iteration 0" in shown and "sum(" in shown
    merged = [float(np.asarray(watched.session["fc_0.w_0@GRAD.trainer_0"]).sum()) for _ in range(2)]
    assert merged[0] == merged[1] != 0
    assert "momentum" in watched.type("step 2") and "wrote" in watched.type("step")
    assert "listen_and_serv" in watched.type("back 4")
    assert "sum(" in watched.type("step"), "the same gradients come again"
    watched.type("break op momentum")
    watched.give(3)
    assert "breakpoint op momentum" in watched.type("continue")
    assert "iteration 1" in watched.type("continue")


@pytest.mark.parametrize("network", [fit_a_line, shared_table])
def test_steps_back_and_moves_between_roles_change_no_number(network: Any, request: pytest.FixtureRequest) -> None:
    optimizer = momentum if network is fit_a_line else (lambda: fluid.optimizer.SGD(0.1))
    request.addfinalizer((seen := Watched(network, optimizer)).end)
    expected_losses, expected = one_process(built(network, optimizer), seen.feeds)
    seen.attach("trainer0")
    for line in ("next", "next", "restart", "continue", "next", "back", "continue"):
        if line == "continue":
            seen.give(1)
        seen.type(line)
    seen.attach("pserver0")
    for line in ("step 3", "back 3", "step 2", "next", "back 2"):
        seen.type(line)
    seen.attach("pserver1")
    for line in ("step 2", "back 2", "step 3"):
        seen.type(line)
    seen.attach("trainer1")
    for line in ("step 4", "back 2", "next"):
        seen.type(line)
    assert not seen.training.over and len(seen.training.losses()) < 7
    seen.give(8)
    seen.session.close()
    assert seen.training.wait(60) and seen.training.error is None
    np.testing.assert_allclose([row[0] for row in seen.training.losses()], expected_losses, rtol=2e-5)
    for name, value in expected.items():
        np.testing.assert_allclose(seen.training.values[name], value, rtol=1e-4, atol=2e-5, err_msg=name)


def test_stepping_back_over_a_sent_step_sends_it_once_more_not_twice(watched: Watched) -> None:
    watched.attach("trainer0")
    watched.give(7)
    watched.type("until send_barrier")
    for _ in range(2):
        watched.type("step")
        watched.type("back")
    watched.type("step")
    watched.session.close()
    assert watched.training.wait(60) and watched.training.error is None
    expected_losses, _ = one_process(built(fit_a_line, momentum), watched.feeds)
    np.testing.assert_allclose([row[0] for row in watched.training.losses()], expected_losses, rtol=2e-5)


def test_stepping_back_over_a_reduction_gives_its_result_again() -> None:
    parts = built(fit_a_line, momentum)
    feeds = batches(parts[0], 4)
    allowed, session = threading.Semaphore(0), Session(parts[0])

    def reader(trainer: int) -> Iterator[Any]:
        for feed in split_batches(feeds, 2)(trainer):
            assert allowed.acquire(timeout=60)
            yield feed

    with LocalEngine(collective(parts), deadline=2) as engine:
        thread = threading.Thread(target=engine.train, args=(reader,))
        thread.start()
        threading.Timer(0.2, allowed.release, (2,)).start()
        run_command(session, "attach trainer0")
        time.sleep(3)  # no deadline counts while a person looks
        run_command(session, "until allreduce")
        for line in ("step", "back", "step", "back 2", "step 2"):
            run_command(session, line)
        allowed.release(6)
        session.close()
        thread.join(60)
        parameters = engine.parameters()
    _, expected = one_process(built(fit_a_line, momentum), feeds)
    for name, value in expected.items():
        np.testing.assert_allclose(parameters[name], value, rtol=1e-4, atol=2e-5, err_msg=name)


def test_a_barrier_that_runs_again_sends_the_same_gradients() -> None:
    sent: list[Any] = []
    connection = Connection(0, True, lambda endpoint, method, *args, **check: sent.append(args))
    connection.begin_step()
    connection.send("ps:0", "g", np.ones(1))
    for _ in range(2):
        connection.send_barrier(["ps:0"])
    assert sent[0] == sent[1] and list(sent[0][-1]) == ["g"]
    connection.begin_step()
    connection.send_barrier(["ps:0"])
    assert sent[2][2:] == (1, {})


def test_gradients_of_a_step_that_the_server_updates_by_are_not_taken_again() -> None:
    shard = Shard("ps:0", trainers=1, sync=True)
    shard.publish({"w": np.zeros(1)}, False)
    shard.push(0, 0, 0, {"g": np.ones(1)})
    assert shard.take(lambda: None) is not None
    shard.push(0, 0, 0, {"g": np.ones(1)})
    assert shard.state()["complete"] == []


def test_a_program_that_has_begun_is_not_interrupted() -> None:
    shard = Shard("ps:0", trainers=1, sync=True)
    shard.publish({"w": np.zeros(1)}, False)
    shard.interrupt()
    shard.has_begun()
    shard.push(0, 0, 0, {"g": np.ones(1)})
    assert shard.take(lambda: None) is not None and not shard.begins_again()


def test_a_stop_lets_a_paused_role_run_on(watched: Watched) -> None:
    watched.attach("pserver0")
    watched.training.stop()
    assert watched.training.wait(30) and watched.training.error is None
    with pytest.raises(NotFound, match="No training by several roles runs"):
        watched.type("attach trainer0")


def test_unknown_roles_are_refused(watched: Watched) -> None:
    with pytest.raises(NotFound, match="There is no role trainer7"):
        watched.type("attach trainer7")
    with pytest.raises(NotFound, match='Did you mean "pserver1"'):
        watched.type("attach pserver1x")
    with pytest.raises(FluidError, match="attach needs a role"):
        watched.type("attach")


def test_a_role_that_has_ended_is_named() -> None:
    parts = built(fit_a_line, momentum)
    with LocalEngine(divided(parts)) as engine:
        engine.train(lambda trainer: batches(parts[0], 1, rows=2))
        session = Session(parts[0])
        with pytest.raises(NotFound, match="trainer0 has ended"):
            run_command(session, "attach trainer0")
        session.close()


class Elsewhere:
    """A role whose session is another one, as in another process."""

    name = "trainer0"

    def __init__(self, session: Session) -> None:
        self.session = session

    def there(self, function: Any, *args: Any) -> Any:
        return function(self.session, *args)

    def wait(self) -> None:
        """It is paused."""

    def leave(self) -> None:
        """It runs on."""


def test_lines_typed_into_a_role_of_another_process_run_there(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = built(fit_a_line, momentum)
    scope = fluid.Scope()
    fluid.Executor().run(parts[1], scope=scope)
    session, other = Session(parts[0]), Session(parts[0], batches(parts[0], 1)[0], scope=scope)
    session.role = Elsewhere(other)
    assert "elementwise_add" in plain(run_command(session, "step")) and other.snapshot.at == 1
    assert session.snapshot.state == "idle"
    assert plain(view(session)) == plain(view(other)) and session_html(session) == session_html(other)
    assert "float32" in plain(run_command(session, "print fc_0.tmp_0"))
    with pytest.raises(NotFound, match="No training by several roles runs"):
        run_command(session, "roles")  # of the engine of this process
    assert "1 step" in read_page(session).facts, "of the other process"
    c = Direct(session, ScriptSources(lambda: parts[0]))
    c.ask("configurationDone")
    c.event("stopped")
    assert c.frames()[0]["name"] == "block 0: 1 elementwise_add"
    assert c.ask("evaluate", expression="v['fc_0.tmp_0'].shape[0]", context="repl")["result"] == "8"
    assert "nothing" in c.refused("evaluate", expression="nothing", context="repl")
    c.move("next")
    assert other.snapshot.at == 2 and session.snapshot.state == "idle"
    session.role = None
    c.event("continued")
    for each in (session, other):
        each.close()
