"""Trainers without servers as processes of Ray: the numbers of one process; a process that has ended is named."""

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
from fluidnb.distributed import RayEngine, split_batches
from fluidnb.distributed.ray_start import running_ray
from fluidnb.errors import FluidError
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
from tests.distributed.test_ray_engine import adam, processes

pytest.importorskip("ray", reason="no Ray: pip install 'fluidnb[distributed]'")
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

ROLES = ("ray::GroupRole", "ray::MemberRole")


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


def test_a_killed_trainer_is_named_and_the_others_do_not_hang() -> None:
    parts = built(fit_a_line, adam)
    feeds = batches(parts[0], 400)

    def slow(trainer: int) -> Iterator[Any]:
        for feed in split_batches(feeds, 2)(trainer):
            time.sleep(0.05)
            yield feed

    def kill() -> None:
        time.sleep(2)
        os.kill(processes("ray::MemberRole")[0], signal.SIGKILL)

    began = time.monotonic()
    with pytest.raises(FluidError, match=r"trainer:[01] has ended"), RayEngine(collective(parts)) as engine:
        killer = threading.Thread(target=kill)
        killer.start()
        try:
            engine.train(slow)
        finally:
            killer.join()
    assert time.monotonic() - began < 60


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
