"""Trainers and parameter servers on CUDAPlace: tensors reach the host to be sent, and the device when received."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.distributed import LocalEngine, split_batches
from tests.distributed.networks import (
    batches,
    built,
    collective,
    divided,
    fit_a_line,
    one_process,
    word2vec,
)  # fmt: skip


def small_words(is_distributed: bool = False) -> fluid.Variable:
    """The words model with few words: the emulator is slow."""
    return word2vec(words=20, is_distributed=is_distributed)


def small_table() -> fluid.Variable:
    """The same with rows of the table on all servers."""
    return small_words(is_distributed=True)


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
@pytest.mark.parametrize("divide", [divided, collective])
@pytest.mark.parametrize("network", [fit_a_line, small_words])
def test_training_equals_one_process_on_the_host(
    cuda: fluid.CUDAPlace, network: Any, divide: Any, optimizer: str
) -> None:
    check(cuda, network, divide, lambda: getattr(fluid.optimizer, optimizer)(0.1))


def test_a_table_on_several_servers(cuda: fluid.CUDAPlace) -> None:
    check(cuda, small_table, divided, lambda: fluid.optimizer.SGD(0.1))


def test_sparse_gradients_of_slices(cuda: fluid.CUDAPlace) -> None:
    check(cuda, small_words, lambda parts: divided(parts, min_block_size=64), lambda: fluid.optimizer.SGD(0.1))


def check(cuda: fluid.CUDAPlace, network: Any, divide: Any, optimizer: Any) -> None:
    feeds = batches(built(network, optimizer)[0], 3)
    expected_losses, expected = one_process(built(network, optimizer), feeds)
    parts = built(network, optimizer)
    with LocalEngine(divide(parts), place=cuda) as engine:
        losses = engine.train(split_batches(feeds, 2), fetch_list=[parts[2]])
        parameters = engine.parameters()
    means = np.mean([[step[0].item() for step in row] for row in losses], axis=0)
    np.testing.assert_allclose(means, expected_losses, rtol=1e-4)
    for name, value in expected.items():
        np.testing.assert_allclose(parameters[name], value, rtol=1e-3, atol=1e-5, err_msg=name)
