"""Chains of tags on the emulator beyond the cases of their OpTests: every dtype, more tags than threads, padding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fluidnb.testing.values import value_of
from fluidnb.values.dtypes import np_dtype
from fluidnb_kernels import emulator
from fluidnb_kernels.cuda import grid
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.emulator.raw import EmulatorError
from tests.cuda.operands import emulated, numbers, twins

pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())

KEPT = ["Alpha", "EmissionExps", "TransitionExps"]


def both_ways(inputs: dict[str, Any]) -> None:
    scope = twins("linear_chain_crf", inputs, {}, [*KEPT, "LogLikelihood"])
    kept = {slot: scope.find_var(f"{slot}@out").value for slot in [*KEPT, "LogLikelihood"]}
    cost = kept.pop("LogLikelihood").array
    g = numbers(*cost.shape, seed=3).astype(cost.dtype)
    for wanted in (["Emission@GRAD", "Transition@GRAD"], ["Emission@GRAD"], ["Transition@GRAD"]):
        twins("linear_chain_crf_grad", {**inputs, **kept, "LogLikelihood@GRAD": g}, {}, wanted)


def given(dtype: str, tags: int, index: Any = np.int64) -> dict[str, Any]:
    lengths, label = [[4, 0, 1, 6]], np.random.default_rng(2).integers(0, tags, (11, 1)).astype(index)
    return {
        "Emission": value_of((numbers(11, tags, high=3.0).astype(np_dtype(dtype)), lengths)),
        "Transition": numbers(tags + 2, tags, seed=2).astype(np_dtype(dtype)),
        "Label": value_of((label, lengths)),
    }


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("tags", [1, 5, 40])
def test_sequences_one_behind_the_other(dtype: str, tags: int) -> None:
    both_ways(given(dtype, tags))


@pytest.mark.parametrize("index", [np.int32, np.uint8])
def test_labels_of_another_dtype(index: Any) -> None:
    both_ways(given("float64", 3, index))


def test_threads_go_round_in_strides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "BLOCKS", 1)
    monkeypatch.setattr(grid, "THREADS", 32)
    both_ways(given("float64", 70))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_padded_sequences(dtype: str) -> None:
    label = np.random.default_rng(2).integers(0, 4, (3, 5, 1))
    label[1] = 99  # behind the end of a sequence nobody looks
    both_ways({
        "Emission": numbers(3, 5, 4).astype(dtype), "Transition": numbers(6, 4, seed=2).astype(dtype), "Label": label,
        "Length": np.array([[2], [0], [5]]),
    })  # fmt: skip


def test_a_tag_that_there_is_none_of_stops_the_kernel() -> None:
    inputs = given("float64", 3)
    inputs["Label"].array[2] = 3
    with pytest.raises(EmulatorError, match="__trap"):
        emulated("linear_chain_crf", inputs, {}, ["LogLikelihood"])


def test_sequences_without_rows() -> None:
    x, label = value_of((np.zeros((0, 3)), [[0, 0]])), value_of((np.zeros((0, 1), np.int64), [[0, 0]]))
    both_ways({"Emission": x, "Transition": numbers(5, 3), "Label": label})
