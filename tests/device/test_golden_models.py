"""Recorded training runs of real Paddle on CUDAPlace: losses and parameters like Paddle's, both walkers alike."""

from __future__ import annotations

import pytest

import fluidnb as fluid
from tests.runtime.test_models import MODELS, compare
from tests.tools.sampling import sample

#: They take the emulator half a minute each.
SLOW = ["digits_lenet", "sentiment_dynamic_rnn", "seq2seq_attention"]
QUICK = [name for name in MODELS if name not in SLOW]


@pytest.mark.parametrize("name", [*sample(QUICK, 1), *(pytest.param(name, marks=pytest.mark.full) for name in SLOW)])
def test_like_paddle_and_the_same_bits_by_both_walkers(name: str, cuda: fluid.CUDAPlace) -> None:
    compare(name, cuda)
