"""Beam searches on the emulator beyond the cases of their OpTests: every dtype, equal scores, and many candidates."""

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
from tests.cuda.operands import emulated, twins

pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())

OUTPUTS = ["selected_ids", "selected_scores", "parent_idx"]
SOURCES = [[3, 0, 1, 2]]


def step(dtype: str, width: int, seed: int = 1, known: bool = True, words: bool = True) -> dict[str, Any]:
    """Few different scores, so that many are equal; some rows have ended, both of the last source among them."""
    rng = np.random.default_rng(seed)
    count = sum(SOURCES[0])
    scores = rng.integers(1, 6, (count, width)).astype(np_dtype(dtype)) / np_dtype(dtype).type(8)
    inputs = {
        "pre_ids": np.array([[1], [0], [2], [3], [0], [0]]),
        "scores": value_of((scores, [*SOURCES, [1] * count])),
    }
    if known:
        inputs["pre_scores"] = rng.integers(1, 6, (count, 1)).astype(np_dtype(dtype)) / np_dtype(dtype).type(8)
    if words:
        inputs["ids"] = rng.integers(0, 9, (count, width))
    return inputs


def settings(beam_size: int, **more: Any) -> dict[str, Any]:
    return {"level": 0, "beam_size": beam_size, "end_id": 0, **more}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("beam_size", [1, 3, 40])
@pytest.mark.parametrize("known", [True, False])
def test_the_best_in_order(dtype: str, beam_size: int, known: bool) -> None:
    for words in True, False:
        twins("beam_search", step(dtype, 7, beam_size, known, words), settings(beam_size), OUTPUTS)


@pytest.mark.parametrize("dtype", FLOATS)
def test_scores_of_words(dtype: str) -> None:
    twins("beam_search", step(dtype, 4), settings(3, is_accumulated=False), OUTPUTS)
    twins("beam_search", step(dtype, 4), settings(2, level=1), OUTPUTS)


def test_more_candidates_than_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    twins("beam_search", step("float32", 300), settings(70), OUTPUTS)
    monkeypatch.setattr(grid, "BLOCKS", 1)
    tree = {"Ids": np.arange(1200).reshape(2, 200, 3), "Parents": np.arange(1200).reshape(2, 200, 3) % 3}
    twins("gather_tree", tree, {}, ["Out"])


def test_operands_of_other_dtypes() -> None:
    inputs = step("float32", 4)
    changed = {"pre_ids": np.int32, "pre_scores": np.float64, "ids": np.int32}
    twins("beam_search", inputs | {s: inputs[s].astype(d) for s, d in changed.items()}, settings(3), OUTPUTS)


def test_scores_that_are_no_numbers_come_last() -> None:
    inputs = step("float64", 4)
    inputs["scores"].array[:3] = [[np.nan, np.inf, -np.inf, 0.0], [-0.0] * 4, [0.0, np.nan, -np.inf, np.nan]]
    for beam_size in 2, 6, 20:
        twins("beam_search", inputs, settings(beam_size), OUTPUTS)


def test_where_all_have_ended_nothing_is_kept() -> None:
    inputs = step("float32", 3) | {"pre_ids": np.zeros((6, 1), np.int64)}
    assert twins("beam_search", inputs, settings(2), OUTPUTS).find_var("parent_idx@out").value.array.shape == (0,)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_sentences(dtype: Any) -> None:
    rng = np.random.default_rng(1)
    ids, parents = rng.integers(0, 90, (5, 3, 4)).astype(dtype), rng.integers(-4, 4, (5, 3, 4)).astype(np.int32)
    twins("gather_tree", {"Ids": ids, "Parents": parents}, {}, ["Out"])
    twins("gather_tree", {"Ids": ids[:0], "Parents": parents[:0]}, {}, ["Out"])


def test_a_parent_that_there_is_none_of_stops_the_kernel() -> None:
    ids = np.zeros((2, 1, 3), np.int64)
    with pytest.raises(EmulatorError, match="__trap"):
        emulated("gather_tree", {"Ids": ids, "Parents": ids + 3}, {}, ["Out"])
