"""Training by processes of Ray: the numbers of one process, also when roles are killed; nothing is left behind."""

from __future__ import annotations

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
from fluidnb.distributed.local import split_batches
from fluidnb.errors import FluidError
from tests.distributed.networks import batches, built, divided, fit_a_line, lenet, one_process, shared_table

ray = pytest.importorskip("ray", reason="no Ray: pip install 'fluidnb[distributed]'")
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


@pytest.fixture(scope="module", autouse=True)
def one_ray() -> Iterator[None]:
    """Ray runs once for all tests; no role outlives its engine."""
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    end = time.monotonic() + 20  # a killed process takes a moment to end
    while processes(*ROLES) and time.monotonic() < end:
        time.sleep(0.1)
    assert not processes(*ROLES)
    ray.shutdown()


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


@pytest.mark.parametrize("victims", [ROLES[:1], ROLES[1:]])
def test_killed_processes_restart_and_the_result_is_the_same(victims: tuple[str, ...]) -> None:
    feeds = batches(built(lenet, adam)[0], 40)
    _, expected = one_process(built(lenet, adam), feeds)
    parts, draw, over = built(lenet, adam), random.Random(len(victims[0])), threading.Event()
    killed = []

    def kill() -> None:
        for _ in range(3):
            if over.wait(1.5):
                return
            running = processes(*victims)
            if running:
                killed.append(draw.choice(running))
                os.kill(killed[-1], signal.SIGKILL)

    def slow(trainer: int) -> Iterator[Any]:
        for feed in split_batches(feeds, 2)(trainer):
            time.sleep(0.1)
            yield feed

    with RayEngine(divided(parts)) as engine:
        killer = threading.Thread(target=kill)
        killer.start()
        engine.train(slow)
        over.set()
        killer.join()
        parameters = engine.parameters()
    assert killed and engine.events
    for name, value in expected.items():
        np.testing.assert_allclose(parameters[name], value, rtol=1e-3, atol=1e-4, err_msg=name)


def test_an_error_of_a_trainer_reaches_the_caller() -> None:
    parts = built(fit_a_line, adam)
    with pytest.raises(FluidError, match="not fed"), RayEngine(divided(parts)) as engine:
        engine.train(lambda trainer: [{"y": np.ones((4, 1), "float32")}])


def test_a_cluster_that_is_not_there() -> None:
    from fluidnb.distributed.ray_start import check_reachable

    with pytest.raises(FluidError, match="No Ray cluster answers at 127.0.0.1:1"):
        check_reachable("127.0.0.1:1")
