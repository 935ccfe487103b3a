"""Operators over sequences on the emulator beyond the cases of their OpTests: lengths that take a warp, a block and
many blocks, sequences without rows, every dtype, and whole numbers."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fluidnb.op import EMPTY, OpDesc
from fluidnb.runtime import Scope
from fluidnb.values import LoDTensor
from fluidnb_kernels import emulator
from fluidnb_kernels.emulator.raw import EmulatorError
from fluidnb_kernels.sequence import row_maps
from tests.cuda.operands import emulated, numbers, twins
from tests.cuda.twins import run_twins

pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())

FLOATS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
#: Lengths that a thread, a warp and a block take, with sequences without rows.
SHORT, LONG, LONGEST = [3, 0, 16, 1], [40, 0, 1, 300], [1100, 7, 0]
name_of: Any = lambda d: np.dtype(d).name  # noqa: E731


def of(lengths: list[int], *width: int, dtype: Any = np.float32, seed: int = 1) -> LoDTensor:
    """Sequences of numbers."""
    return LoDTensor(numbers(sum(lengths), *width, seed=seed).astype(dtype), (level(lengths),))


def words(lengths: list[int], most: int, dtype: Any = np.int64) -> LoDTensor:
    """Sequences of words."""
    return LoDTensor(np.random.default_rng(1).integers(0, most, (sum(lengths), 1)).astype(dtype), (level(lengths),))


def level(lengths: list[int]) -> tuple[int, ...]:
    return (0, *np.cumsum(lengths).tolist())


@pytest.mark.parametrize("dtype", FLOATS, ids=name_of)
@pytest.mark.parametrize(("lengths", "width"), [(SHORT, 5), (SHORT, 300), (LONG, 1), (LONG, 33), (LONGEST, 1)], ids=str)
@pytest.mark.parametrize("kind", ["SUM", "SQRT", "MAX", "LAST"])
def test_pools(kind: str, lengths: list[int], width: int, dtype: Any) -> None:
    x, attrs = of(lengths, width, dtype=dtype), {"pooltype": kind, "pad_value": 0.25}
    scope = twins("sequence_pool", {"X": x}, attrs, ["Out", "MaxIndex"])
    g, index = numbers(len(lengths), width).astype(dtype), scope.find_var("MaxIndex@out").value
    inputs = {"X": x, "Out@GRAD": g} | ({"MaxIndex": index} if kind == "MAX" else {})
    twins("sequence_pool_grad", inputs, attrs, ["X@GRAD"])


def test_the_first_of_several_highest_and_numbers_that_are_none() -> None:
    x = np.array([[1, 2], [3, 2], [3, np.nan], [-np.inf, np.nan], [-np.inf, 9]], np.float32)
    scope = twins("sequence_pool", {"X": LoDTensor(x, ((0, 3, 5),))}, {"pooltype": "MAX"}, ["Out", "MaxIndex"])
    assert scope.find_var("MaxIndex@out").value.array.tolist() == [[1, 2], [3, 3]]


def test_sums_by_threads_of_their_own_and_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_maps, "_BUSY", 64)
    for width in (31, 32):
        twins("sequence_pool", {"X": of(LONG, width)}, {"pooltype": "AVERAGE"}, ["Out"])
    monkeypatch.setattr(row_maps, "_MOST", 1)
    twins("sequence_pool", {"X": of(LONG, 70)}, {"pooltype": "MAX"}, ["Out", "MaxIndex"])


@pytest.mark.parametrize("dtype", FLOATS, ids=name_of)
@pytest.mark.parametrize("lengths", [SHORT, LONG, LONGEST], ids=str)
def test_softmax(lengths: list[int], dtype: Any) -> None:
    x, g = of(lengths, 1, dtype=dtype), of(lengths, 1, dtype=dtype, seed=2)
    out = twins("sequence_softmax", {"X": x}, {}, ["Out"]).find_var("Out@out").value
    twins("sequence_softmax_grad", {"X": x, "Out": out, "Out@GRAD": g}, {}, ["X@GRAD"])


def test_softmax_of_infinite_numbers() -> None:
    x = np.array([[np.inf], [1], [-np.inf], [2], [500], [-500]], np.float32)
    twins("sequence_softmax", {"X": LoDTensor(x, ((0, 2, 4, 6),))}, {}, ["Out"])


@pytest.mark.parametrize("dtype", [*FLOATS, np.int64, np.uint8, bool], ids=name_of)
@pytest.mark.parametrize("width", [1, 3, 16, 300])
def test_rows_of_every_width(width: int, dtype: Any) -> None:
    x, y = of([2, 0, 3], width, dtype=dtype), of([3, 4, 0], width, dtype=dtype)
    rows = LoDTensor(x.array[:3])
    twins("sequence_expand", {"X": rows, "Y": y}, {}, ["Out"])
    twins("sequence_expand_as", {"X": rows, "Y": y}, {}, ["Out"])
    twins("sequence_reverse", {"X": x}, {}, ["Y"])
    for fill in (np.ones(1), np.arange(width)):
        given = {"X": x, "PadValue": fill.astype(dtype)}
        out = twins("sequence_pad", given, {"padded_length": 4}, ["Out", "Length"]).find_var("Out@out").value.array
        twins("sequence_pad_grad", {"X": x, "Out@GRAD": out}, {"padded_length": 4}, ["X@GRAD"])
    twins("sequence_unpad", {"X": out, "Length": np.array([4, 0, 1])}, {}, ["Out"])
    twins("sequence_unpad_grad", {"X": out, "Out@GRAD": of([4, 0, 1], width, dtype=dtype)}, {}, ["X@GRAD"])
    flat = {"X": numbers(3, 4), "Length": np.array([4, 0, 1])}
    twins("sequence_unpad", flat, {}, ["Out"])
    twins("sequence_unpad_grad", {**flat, "Out@GRAD": of([4, 0, 1], 1, dtype=np.float64)}, {}, ["X@GRAD"])
    part = {"X": x, "Offset": np.array([[1], [0], [0]]), "Length": np.array([[1], [0], [2]])}
    out = twins("sequence_slice", part, {}, ["Out"]).find_var("Out@out").value
    twins("sequence_slice_grad", {**part, "Out@GRAD": out}, {}, ["X@GRAD"])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8], ids=name_of)
@pytest.mark.parametrize("width", [1, 3, 16, 300])
def test_sequences_after_each_other(width: int, dtype: Any) -> None:
    xs, scope = [of([2, 0, 3], width, dtype=dtype), of([1, 4, 0], width, dtype=dtype, seed=2)], Scope()
    names = [f"x{i}" for i in range(len(xs))]
    for name, x in zip(names, xs, strict=True):
        scope.var(name).value = x
    run_twins(OpDesc("sequence_concat", {"X": names}, {"Out": ["out"]}), scope)
    slopes = {"X@GRAD": [f"{name}@GRAD" for name in names]}
    run_twins(OpDesc("sequence_concat_grad", {"X": names, "Out@GRAD": ["out"]}, slopes), scope)
    assert np.array_equal(scope.find_var("x1@GRAD").value.array, xs[1].array)


@pytest.mark.parametrize("dtype", FLOATS, ids=name_of)
def test_gradients_of_copies(dtype: Any) -> None:
    x, y, g = numbers(3, 6).astype(dtype), of([2, 0, 30], 1), of([2, 30], 6, dtype=dtype)
    for type in ("sequence_expand_grad", "sequence_expand_as_grad"):
        twins(type, {"X": x, "Y": y, "Out@GRAD": LoDTensor(g.array)}, {}, ["X@GRAD"])
    sequences = LoDTensor(x, ((0, 1, 3),))
    times, g = of([2, 3], 1), of([1, 1, 2, 2, 2], 6, dtype=dtype)
    twins("sequence_expand_grad", {"X": sequences, "Y": times, "Out@GRAD": g}, {}, ["X@GRAD"])


@pytest.mark.parametrize("dtype", [np.float32, np.float16], ids=name_of)
@pytest.mark.parametrize(("start", "count", "trained"), [(-1, 3, True), (0, 2, False), (-2, 1, True), (1, 2, True)])
def test_filters_over_neighbours(start: int, count: int, trained: bool, dtype: Any) -> None:
    x, g = of(SHORT, 4, dtype=dtype), of(SHORT, 3, dtype=dtype, seed=2)
    inputs = {"X": x, "Filter": numbers(count * 4, 3, seed=3).astype(dtype)}
    if trained:
        around = max(-start, 0) + max(start + count - 1, 0)
        inputs["PaddingData"] = numbers(around, 4, seed=4).astype(dtype)
    attrs = {"contextStart": start, "contextLength": count, "paddingTrainable": trained}
    twins("sequence_conv", inputs, attrs, ["Out"])
    slopes = [f"{slot}@GRAD" for slot in inputs]
    twins("sequence_conv_grad", {**inputs, "Out@GRAD": g}, attrs, slopes)


@pytest.mark.parametrize("dtype", FLOATS, ids=name_of)
@pytest.mark.parametrize(("lengths", "width"), [(SHORT, 1), (LONG, 5), (SHORT, 300)], ids=str)
def test_rows_that_look_ahead(lengths: list[int], width: int, dtype: Any) -> None:
    inputs = {"X": of(lengths, width, dtype=dtype), "Filter": numbers(3, width, seed=2).astype(dtype)}
    g = of(lengths, width, dtype=dtype, seed=3)
    twins("row_conv", inputs, {}, ["Out"])
    twins("row_conv_grad", {**inputs, "Out@GRAD": g}, {}, ["X@GRAD", "Filter@GRAD"])


@pytest.mark.parametrize("shape", [(3, 4, 5), (2, 40, 3), (0, 3, 2), (2, 0, 3)], ids=str)
def test_batches_of_rows_that_look_ahead(shape: tuple[int, ...]) -> None:
    inputs = {"X": numbers(*shape), "Filter": numbers(3, shape[-1], seed=2)}
    twins("row_conv", inputs, {}, ["Out"])
    twins("row_conv_grad", {**inputs, "Out@GRAD": numbers(*shape, seed=3)}, {}, ["X@GRAD", "Filter@GRAD"])


@pytest.mark.parametrize("dtype", FLOATS, ids=name_of)
def test_positions(dtype: Any) -> None:
    attrs = {"alpha": 0.5, "beta": 2.0}
    for x in (of(SHORT, 6, dtype=dtype), numbers(2, 40, 10).astype(dtype), np.zeros((0, 3, 2), dtype)):
        twins("add_position_encoding", {"X": x}, attrs, ["Out"])
        twins("add_position_encoding_grad", {"X": x, "Out@GRAD": x}, attrs, ["X@GRAD"])


@pytest.mark.parametrize("dtype", [0, 2, 3, 5, 6, 4], ids=["bool", "int32", "int64", "float32", "float64", "float16"])
@pytest.mark.parametrize("index", [np.int32, np.int64, np.uint8], ids=name_of)
def test_masks(index: Any, dtype: int) -> None:
    x = np.array([[3, 0], [40, 7]], index)
    twins("sequence_mask", {"X": x}, {"out_dtype": dtype}, ["Y"])
    twins("sequence_mask", {"X": x, "MaxLenTensor": np.array([5])}, {"out_dtype": dtype}, ["Y"])


@pytest.mark.parametrize("dtype", [np.int32, np.int64], ids=name_of)
@pytest.mark.parametrize("lengths", [SHORT, [70, 0, 33]], ids=str)
def test_words(lengths: list[int], dtype: Any) -> None:
    x = words(lengths, 4, dtype)
    twins("sequence_enumerate", {"X": x}, {"win_size": 5, "pad_value": -7}, ["Out"])
    for tokens in ([], [1], [2, 0], [0, 1, 2, 3]):
        twins("sequence_erase", {"X": x}, {"tokens": tokens}, ["Out"])
    for merge in (True, False):
        twins("ctc_align", {"Input": x}, {"blank": 1, "merge_repeated": merge}, ["Output"])
    twins("ctc_align", {"Input": LoDTensor(np.zeros_like(x.array), x.lod_)}, {}, ["Output"])


@pytest.mark.parametrize("dtype", [np.int32, np.int64], ids=name_of)
@pytest.mark.parametrize("merge", [True, False])
def test_labels_in_a_rectangle(merge: bool, dtype: Any) -> None:
    x = np.random.default_rng(2).integers(0, 3, (4, 75)).astype(dtype)
    given = {"Input": x, "InputLength": np.array([[75], [0], [33], [90]], dtype)}
    attrs = {"merge_repeated": merge, "padding_value": -1}
    twins("ctc_align", given, attrs, ["Output", "OutputLength"])
    twins("ctc_align", given, attrs, {"Output": EMPTY, "OutputLength": "counts"})


@pytest.mark.parametrize("dtype", [*FLOATS, np.int32, np.int64], ids=name_of)
@pytest.mark.parametrize("index", [np.int32, np.int64], ids=name_of)
def test_updates(index: Any, dtype: Any) -> None:
    ids = words(LONG, 40, index)
    updates = LoDTensor((numbers(len(ids.array), 1) * 9).astype(dtype), ids.lod_)
    x = (numbers(4, 40, seed=2) * 9).astype(dtype)
    twins("sequence_scatter", {"X": x, "Ids": ids, "Updates": updates}, {}, ["Out"])
    if np.issubdtype(dtype, np.floating):
        inputs = {"Ids": ids, "Updates": updates, "Out@GRAD": x}
        twins("sequence_scatter_grad", inputs, {}, ["X@GRAD", "Updates@GRAD"])


def test_a_column_outside_stops_the_kernel() -> None:
    ids = LoDTensor(np.array([[2]]), ((0, 1),))
    updates = LoDTensor(np.ones((1, 1), np.float32), ((0, 1),))
    with pytest.raises(EmulatorError, match="__trap"):
        emulated("sequence_scatter", {"X": np.zeros((1, 2), np.float32), "Ids": ids, "Updates": updates}, {}, ["Out"])


@pytest.mark.parametrize("width", [1, 8])
def test_nothing_at_all(width: int) -> None:
    x = of([0, 0], width)
    for kind in ("SUM", "MAX", "FIRST"):
        twins("sequence_pool", {"X": x}, {"pooltype": kind, "pad_value": 3.0}, ["Out", "MaxIndex"])
    twins("sequence_pool_grad", {"X": x, "Out@GRAD": np.ones((2, width), np.float32)}, {"pooltype": "LAST"}, ["X@GRAD"])
    twins("sequence_expand", {"X": np.zeros((2, width), np.float32), "Y": x}, {}, ["Out"])
    twins("sequence_reverse", {"X": x}, {}, ["Y"])
    weight = np.ones((2, width), np.float32)
    twins("row_conv_grad", {"X": x, "Filter": weight, "Out@GRAD": x}, {}, ["X@GRAD", "Filter@GRAD"])
    filters = {"Filter": np.ones((width, 2), np.float32)}
    attrs = {"contextLength": 1}
    twins("sequence_conv_grad", {"X": x, **filters, "Out@GRAD": of([0, 0], 2)}, attrs, ["X@GRAD", "Filter@GRAD"])
