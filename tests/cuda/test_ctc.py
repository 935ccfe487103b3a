"""warpctc on the emulator beyond the cases of its OpTest: every dtype, labels that repeat, and what cannot be said."""

from __future__ import annotations

from collections.abc import Mapping
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

#: Labels that repeat side by side and further on, none at all, more than fit the time steps, no time steps.
STEPS, LABELS = [[9, 4, 2, 1, 0]], [[1, 1, 3, 1], [], [2, 2], [2], [3]]


def both_ways(inputs: Mapping[str, Any], **attrs: Any) -> None:
    scope = twins("warpctc", inputs, attrs, ["WarpCTCGrad", "Loss"])
    twins("warpctc", inputs, attrs, ["Loss"])
    kept = {slot: scope.find_var(f"{slot}@out").value.array for slot in ("WarpCTCGrad", "Loss")}
    loss = kept.pop("Loss")
    given = {s: v for s, v in inputs.items() if s != "Label"} | kept
    given["Loss@GRAD"] = numbers(*loss.shape, seed=2).astype(loss.dtype)
    twins("warpctc_grad", given, attrs, ["Logits@GRAD"])


def given(dtype: str, classes: int, index: Any = np.int64) -> dict[str, Any]:
    label = np.concatenate(LABELS).astype(index)[:, None]
    x = numbers(sum(STEPS[0]), classes, low=-3.0, high=3.0).astype(np_dtype(dtype))
    return {"Logits": value_of((x, STEPS)), "Label": value_of((label, [[len(words) for words in LABELS]]))}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("classes", "blank"), [(4, 0), (70, 69)])
def test_sequences_one_behind_the_other(dtype: str, classes: int, blank: int) -> None:
    both_ways(given(dtype, classes), blank=blank, norm_by_times=blank > 0)


@pytest.mark.parametrize("index", [np.int32, np.uint8])
def test_labels_of_another_dtype(index: Any) -> None:
    both_ways(given("float64", 5, index))


@pytest.mark.parametrize("blank", [1, 2])
def test_a_label_that_is_the_blank(blank: int) -> None:
    both_ways(given("float64", 5), blank=blank)


def test_threads_go_round_in_strides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "BLOCKS", 1)
    monkeypatch.setattr(grid, "THREADS", 32)
    words = np.random.default_rng(1).integers(1, 6, (70, 1))
    x = value_of((numbers(160, 60), [[90, 70]]))
    both_ways({"Logits": x, "Label": value_of((words, [[30, 40]]))})


@pytest.mark.parametrize("dtype", FLOATS)
def test_padded_sequences(dtype: str) -> None:
    label = np.zeros((5, 4), np.int32)
    for row, words in zip(label, LABELS, strict=True):
        row[: len(words)] = words
    lengths = {"LogitsLength": np.array(STEPS[0]), "LabelLength": np.array([len(words) for words in LABELS])}
    both_ways({"Logits": numbers(10, 5, 4).astype(np_dtype(dtype)), "Label": label, **lengths}, norm_by_times=True)


def test_numbers_that_are_none_cost_nothing() -> None:
    inputs = given("float64", 4)
    inputs["Logits"].array[3, 2] = np.nan
    both_ways(inputs)


def test_a_label_without_a_class_stops_the_kernel() -> None:
    with pytest.raises(EmulatorError, match="__trap"):
        emulated("warpctc", given("float64", 3), {}, ["Loss"])
