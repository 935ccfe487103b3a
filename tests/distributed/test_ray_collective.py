"""Trainers without servers as processes of Ray: the numbers of one process, also when they are killed."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.distributed import RayEngine, split_batches
from fluidnb.distributed.ray_start import running_ray
from fluidnb.errors import FluidError
from tests.distributed import faults
from tests.distributed.networks import (
    batches,
    built,
    collective,
    fit_a_line,
    lenet,
    one_process,
    sentences,
    sentiment,
    word2vec,
)  # fmt: skip
from tests.distributed.test_ray_engine import adam, processes, sent_when

pytest.importorskip("ray", reason="no Ray: pip install 'fluidnb[distributed]'")
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

ROLES = ("ray::GroupRole", "ray::TrainerRole")


@pytest.fixture(scope="module", autouse=True)
def one_ray() -> Iterator[None]:
    """Ray runs once for all tests; no role outlives its engine."""
    with running_ray(None):
        yield
        end = time.monotonic() + 20  # a killed process takes a moment to end
        while processes(*ROLES) and time.monotonic() < end:
            time.sleep(0.1)
        assert not processes(*ROLES)


@pytest.mark.parametrize("network", [fit_a_line, lenet, word2vec, sentiment])
def test_training_equals_one_process(network: Any) -> None:
    feeds = sentences(6) if network is sentiment else batches(built(network, adam)[0], 6)
    expected_losses, expected = one_process(built(network, adam), feeds)
    parts = built(network, adam)
    losses: list[float] = []
    with RayEngine(collective(parts)) as engine:
        for part in (feeds[:4], feeds[4:]):
            rows = engine.train(split_batches(part, 2), fetch_list=[parts[2]])
            losses += list(np.mean([[step[0].item() for step in row] for row in rows], axis=0))
        parameters = engine.parameters()
    np.testing.assert_allclose(losses, expected_losses, rtol=2e-5)
    for name, value in expected.items():
        np.testing.assert_allclose(parameters[name], value, rtol=1e-4, atol=2e-5, err_msg=name)


@pytest.mark.timeout(1800)  # of twenty kills, each with a new process
def test_killed_processes_end_with_the_parameters_of_a_run_without_faults(request: pytest.FixtureRequest) -> None:
    roles = ["trainer:1", "group", "trainer:0"] * (7 if request.config.getoption("--full") else 1)
    kills = faults.random_kills(random.Random(2), roles)
    faults.with_faults(kills, collective)
    assert all(kill.good for kill in kills), kills


def test_a_stopped_trainer_is_named_by_deadline() -> None:
    feeds = batches(built(fit_a_line, adam)[0], 1) * 10000
    with pytest.raises(FluidError, match=r"trainer:1 (does not answer|did not come)"):  # noqa: SIM117
        with RayEngine(collective(built(fit_a_line, adam)), deadline=20) as engine:
            with sent_when(engine, "trainer:1", 3, signal.SIGSTOP) as sent:
                engine.train(split_batches(feeds, 2))
    with contextlib.suppress(ProcessLookupError):
        os.kill(sent[0], signal.SIGCONT)


def test_parameters_survive_a_process_that_ends_after_the_training(tmp_path: Path) -> None:
    parts = built(fit_a_line, adam)
    feeds = batches(parts[0], 3)
    _, expected = one_process(built(fit_a_line, adam), feeds)
    with RayEngine(collective(parts), checkpoints=tmp_path, every=2) as engine:
        engine.train(split_batches(feeds, 2))
        os.kill(engine.states["trainer:0"]["pid"], signal.SIGKILL)  # type: ignore[index]
        parameters = engine.parameters()
    with RayEngine(collective(built(fit_a_line, adam)), checkpoints=tmp_path, resume=True) as engine:
        assert engine.train(split_batches(feeds, 2), fetch_list=[]) == [[None] * 3] * 2
        resumed = engine.parameters()
    for name, value in expected.items():
        np.testing.assert_allclose(parameters[name], value, rtol=1e-4, atol=2e-5, err_msg=name)
        assert np.array_equal(parameters[name], resumed[name])


def test_steps_are_reported_and_all_trainers_stop_after_the_same() -> None:
    parts = built(fit_a_line, adam)
    feeds, reports = batches(parts[0], 1) * 5000, []
    initial = {"fc_0.w_0": np.full((13, 1), 7.0, "float32")}
    with RayEngine(collective(parts), initial=initial) as engine:
        rows = engine.train(
            split_batches(feeds, 2), [parts[2]], lambda *row: reports.append(row), lambda: len(reports) >= 10
        )
        assert {"fc_0.w_0_moment1_0", "learning_rate_0"} <= engine.values().keys()
    assert 5 <= len(rows[0]) == len(rows[1]) < 5000 and None not in rows[0]
    assert sorted(reports)[: len(rows[0])] == [(0, step, row) for step, row in enumerate(rows[0])]
    assert rows[0][0][0].item() > 100  # by the initial weights


def test_a_trainer_that_ends_early_is_named() -> None:
    parts = built(fit_a_line, adam)
    feeds = batches(parts[0], 3)
    with pytest.raises(FluidError, match="trainer:1 has ended after 2 steps"), RayEngine(collective(parts)) as engine:
        engine.train(lambda trainer: feeds[: 3 - trainer])


def test_an_error_of_a_trainer_reaches_the_caller() -> None:
    parts = built(fit_a_line, adam)
    with pytest.raises(FluidError, match="not fed"), RayEngine(collective(parts)) as engine:
        engine.train(lambda trainer: [{"y": np.ones((4, 1), "float32")}])


def test_other_batches_on_a_trainer_fail_on_all() -> None:
    parts = built(fit_a_line, adam)
    feeds = batches(parts[0], 2)

    def reader(trainer: int) -> Iterator[Any]:
        yield feeds[0]
        if trainer:
            raise fluid.core.EnforceNotMet("the disk is gone")
        yield feeds[1]

    with pytest.raises(FluidError, match="the disk is gone"), RayEngine(collective(parts)) as engine:
        engine.train(reader)
