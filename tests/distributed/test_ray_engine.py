"""Training by processes of Ray: the numbers of one process, also when roles are killed; nothing is left behind."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.distributed import RayEngine
from fluidnb.distributed.local import SharedBatches, split_batches
from fluidnb.distributed.ray_start import running_ray
from fluidnb.distributed.training import Shares, Training
from fluidnb.errors import EnforceNotMet, FluidError, OpValueError
from tests.distributed import faults
from tests.distributed.networks import (
    batches,
    built,
    collective,
    divided,
    fit_a_line,
    one_process,
    shared_table,
)
from tests.distributed.test_running_values import AVERAGES, normalized

pytest.importorskip("ray", reason="no Ray: pip install 'fluidnb[distributed]'")
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

ROLES = ("ray::ServerRole", "ray::TrainerRole")


def sgd() -> Any:
    return fluid.optimizer.SGD(0.1)


def adam() -> Any:
    return fluid.optimizer.Adam(0.01)


def processes(*names: str) -> list[int]:
    """Processes of this machine whose command begins with one of these names."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            command = (folder / "cmdline").read_bytes().split(b"\0")[0].decode() if folder.name.isdigit() else ""
        except OSError:
            continue
        if command.startswith(names):
            found.append(int(folder.name))
    return found


class Slow(SharedBatches):
    """Batches that take a while."""

    def __call__(self, trainer: int) -> Iterator[Any]:
        for feed in super().__call__(trainer):
            time.sleep(0.05)
            yield feed

    def among(self, trainers: int, first: int) -> Slow:
        return Slow(self.feeds[first:], trainers)


@pytest.fixture(scope="module", autouse=True)
def one_ray() -> Iterator[None]:
    """Ray runs once for all tests, by default as fluidnb starts it; no role outlives its engine."""
    with running_ray(os.environ.get("FLUIDNB_TEST_RAY")):
        yield
        end = time.monotonic() + 20  # a killed process takes a moment to end
        while processes(*ROLES) and time.monotonic() < end:
            time.sleep(0.1)
        assert not processes(*ROLES)


@pytest.mark.parametrize("network", [fit_a_line, shared_table])
def test_synchronous_training_equals_one_process(network: Any) -> None:
    feeds = batches(built(network, sgd)[0], 6)
    expected_losses, expected = one_process(built(network, sgd), feeds)
    parts = built(network, sgd)
    with RayEngine(divided(parts)) as engine:
        losses = engine.train(split_batches(feeds, 2), fetch_list=[parts[2]])
        parameters = engine.parameters()
    np.testing.assert_allclose(
        np.mean([[step[0].item() for step in row] for row in losses], axis=0), expected_losses, rtol=2e-5
    )
    for name, value in expected.items():
        np.testing.assert_allclose(parameters[name], value, rtol=1e-4, atol=2e-5, err_msg=name)


@pytest.mark.timeout(1800)  # of twenty kills, each with a new process
def test_killed_processes_lose_no_committed_step(request: pytest.FixtureRequest) -> None:
    count = 20 if request.config.getoption("--full") else 3  # the rest: python -m tests.distributed.faults
    roles = [faults.ROLES[(0, 2, 3, 1)[number % 4]] for number in range(count)]
    kills = faults.random_kills(random.Random(1), roles)
    faults.with_faults(kills)
    assert all(kill.good for kill in kills), kills


def linear() -> fluid.Variable:  # its gradients do not depend on the parameters, hence not on the order
    return fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [5]), 1))


@pytest.mark.parametrize("victim", ["ps:0", "trainer:1"])
def test_asynchronous_training_counts_each_gradient_once_whatever_is_killed(victim: str, tmp_path: Path) -> None:
    feeds = batches(built(linear, sgd)[0], 40)
    shares = [feed for trainer in range(2) for feed in split_batches(feeds, 2)(trainer)]
    _, expected = one_process(built(linear, sgd), shares)

    def slow(trainer: int) -> Iterator[Any]:
        for feed in split_batches(feeds, 2)(trainer):
            time.sleep(0.05)
            yield feed

    with RayEngine(divided(built(linear, sgd), sync_mode=False), checkpoints=tmp_path) as engine:
        with sent_when(engine, victim, 5, signal.SIGKILL) as sent:
            engine.train(slow)
        assert sent and engine.events
        parameters = engine.parameters()
    for name, value in expected.items():
        np.testing.assert_allclose(parameters[name], value, rtol=1e-4, err_msg=name)


@contextlib.contextmanager
def sent_when(engine: RayEngine, role: str, step: int, number: signal.Signals) -> Iterator[list[int]]:
    """Send a signal to the process of a role when it has done some steps; gives the processes that got one."""
    over, sent = threading.Event(), []

    def work() -> None:
        while not over.wait(0.01):
            state = engine.states.get(role)
            if state is not None and (state["step"] or 0) >= step:
                sent.append(state["pid"])
                os.kill(state["pid"], number)
                return

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield sent
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("victim", ["ps:1", "trainer:0"])
def test_a_stopped_process_is_named_by_deadline(victim: str) -> None:
    feeds = batches(built(fit_a_line, sgd)[0], 1) * 10000
    start = time.monotonic()
    with pytest.raises(EnforceNotMet, match=f"{victim} does not answer for [2-9]. s") as caught:  # noqa: SIM117
        with RayEngine(divided(built(fit_a_line, sgd)), deadline=20) as engine:
            with sent_when(engine, victim, 3, signal.SIGSTOP) as sent:
                engine.train(split_batches(feeds, 2))
    assert time.monotonic() - start < 500
    assert "answers of ps:0" in str(caught.value)
    with contextlib.suppress(ProcessLookupError):  # Ray runs for other tests: its own start ends stopped processes
        os.kill(sent[0], signal.SIGCONT)
    end = time.monotonic() + 60
    while Path(f"/proc/{sent[0]}").exists() and time.monotonic() < end:
        time.sleep(0.1)
    assert not Path(f"/proc/{sent[0]}").exists()


def test_a_reader_that_hangs_is_named_by_deadline() -> None:
    feeds = batches(built(fit_a_line, sgd)[0], 4)

    def reader(trainer: int) -> Iterator[Any]:
        yield from split_batches(feeds[:2], 2)(trainer)
        if trainer == 1:
            time.sleep(600)
        yield from split_batches(feeds[2:], 2)(trainer)

    with pytest.raises(EnforceNotMet, match="trainer:1 has sent no gradients for 30 s"):  # noqa: SIM117
        with RayEngine(divided(built(fit_a_line, sgd)), deadline=30) as engine:
            engine.train(reader)


def test_values_survive_processes_that_end_after_the_training() -> None:
    feeds = batches(built(normalized, sgd)[0], 3)
    with RayEngine(divided(built(normalized, sgd)), every=2) as engine:
        engine.train(split_batches(feeds, 2))
        before = engine.parameters()
        for role in ("ps:0", "trainer:0"):
            os.kill(engine.states[role]["pid"], signal.SIGKILL)  # type: ignore[index]
        after = engine.parameters()
    assert set(AVERAGES) <= before.keys()
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_a_second_call_and_a_resumed_training_continue(tmp_path: Path) -> None:
    feeds = batches(built(fit_a_line, sgd)[0], 9)
    _, expected = one_process(built(fit_a_line, sgd), feeds)
    with RayEngine(divided(built(fit_a_line, sgd)), checkpoints=tmp_path, every=2) as engine:
        for part in (feeds[:2], feeds[2:5]):
            engine.train(split_batches(part, 2))
    with RayEngine(divided(built(fit_a_line, sgd)), checkpoints=tmp_path, every=2, resume=True) as engine:
        rows = engine.train(split_batches(feeds, 2), fetch_list=[])
        parameters = engine.parameters()
    assert [row is None for row in rows[0]] == [True] * 5 + [False] * 4
    for name, value in expected.items():
        np.testing.assert_allclose(parameters[name], value, rtol=1e-4, atol=2e-5, err_msg=name)


@pytest.mark.parametrize("divide", [divided, collective])
def test_trainers_join_and_leave_and_one_is_killed(divide: Any, tmp_path: Path) -> None:
    feeds = batches(built(fit_a_line, adam)[0], 60, rows=12)
    expected_losses, expected = one_process(built(fit_a_line, adam), feeds)
    parts, changes, over = built(fit_a_line, adam), {5: 3, 25: 1}, threading.Event()
    with RayEngine(divide(parts)) as engine:

        def report(trainer: int, step: int, values: list[Any]) -> None:
            for at in [at for at in changes if step >= at]:
                engine.resize(changes.pop(at))

        def kill() -> None:
            while not over.wait(0.01):
                state = engine.states.get("trainer:2")  # the one that has joined
                if state is not None and state["step"]:
                    os.kill(state["pid"], signal.SIGKILL)
                    return

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            rows = engine.train(Slow(feeds, 2), [parts[2]], report)
        finally:
            over.set()
            killer.join()
        with fluid.scope_guard(fluid.Scope()):
            if divide is divided:  # this process receives from the servers
                fluid.io.save_persistables(fluid.Executor(), str(tmp_path), engine.transpiler.get_trainer_program())
                assert (tmp_path / "fc_0.w_0_moment1_0").exists()
        parameters = engine.parameters()
    counts = [sum(row[step] is not None for row in rows) for step in range(60)]
    assert len(rows) == 3 and counts[0] == 2 and 3 in counts and counts[-1] == 1
    assert [event for event in engine.events if "trainers from step" in event] and "trainer:2 has restarted" in str(
        engine.events
    )
    for step, expected_loss in enumerate(expected_losses):
        if counts[step] == (2 if step < 5 else 1):
            loss = np.mean([row[step][0].item() for row in rows if row[step] is not None])
            np.testing.assert_allclose(loss, expected_loss, rtol=2e-5)
    for name, value in expected.items():
        np.testing.assert_allclose(parameters[name], value, rtol=1e-4, atol=2e-5, err_msg=name)


def test_a_watched_training_gets_another_trainer() -> None:
    parts, steps = built(fit_a_line, adam), 400
    feeds = batches(parts[0], steps, rows=12)
    expected_losses, expected = one_process(built(fit_a_line, adam), feeds)
    small = [{name: value[:4] for name, value in feeds[0].items()}]  # two trainers could share it, three cannot
    training = Training(divided(parts), Shares([*feeds, *small], dict, 2), [parts[2].name], "ray")
    training.start()
    try:
        while not training.losses() and not training.wait(0.01):
            pass
        with pytest.raises(OpValueError, match="A batch of 12 cannot be shared equally by 5 trainers"):
            training.resize(5)
        training.resize(3)
    finally:
        if not training.wait(300):
            training.stop()
    training.raise_error()
    assert training.plan.trainers == 3 and training.left_out == 4
    assert [len(rows) for rows in training.steps[:2]] == [steps, steps] and 0 < len(training.steps[2]) < steps
    np.testing.assert_allclose(np.ravel(training.losses()), expected_losses, rtol=2e-5)
    for name, value in expected.items():
        np.testing.assert_allclose(training.values[name], value, rtol=1e-4, atol=2e-5, err_msg=name)


def test_another_version_on_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fluid, "__version__", "0.0.1")
    with pytest.raises(EnforceNotMet, match="ps:0 runs another version of fluidnb"):
        RayEngine(divided(built(fit_a_line, sgd))).__enter__()


def test_an_error_of_a_trainer_reaches_the_caller() -> None:
    parts = built(fit_a_line, adam)
    with pytest.raises(FluidError, match="not fed"), RayEngine(divided(parts)) as engine:
        engine.train(lambda trainer: [{"y": np.ones((4, 1), "float32")}])
