"""Counts, whole tensors compared, and what follows their sizes on the emulator beyond the cases of their OpTests."""

from __future__ import annotations

import numpy as np
import pytest

from fluidnb.op import EMPTY, OpDesc
from fluidnb.runtime import Scope
from fluidnb.values import LoDTensor, SelectedRows
from fluidnb.values.dtypes import np_dtype
from fluidnb_kernels import emulator
from tests.cuda.operands import emulated, in_place, numbers, twins
from tests.cuda.twins import run_twins

pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())

FLOATS = ("float32", "float64", "float16", "bfloat16")


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "int64"])
@pytest.mark.parametrize("ends", [{}, {"min": -2, "max": 3}, {"min": 40, "max": 50}])
def test_histogram(dtype: str, ends: dict[str, int]) -> None:
    x = {"X": numbers(700, low=-4, high=5).astype(np_dtype(dtype))}
    for bins in (1, 7, 9000):
        twins("histogram", x, {"bins": bins, **ends}, ["Out"])


def test_histograms_of_what_has_no_ranges() -> None:
    for x in ([], [2.0, 2.0], [np.nan, 1.0]):
        twins("histogram", {"X": np.array(x)}, {"bins": 3}, ["Out"])
    out = emulated("histogram", {"X": np.array([1.0, np.inf])}, {"bins": 3}, ["Out"])["Out"]
    assert out.sum() <= 1


@pytest.mark.parametrize("dtype", FLOATS)
def test_clip_by_norm(dtype: str) -> None:
    x = numbers(30, 41).astype(np_dtype(dtype))
    for longest in (0.5, 1000.0):
        scope = twins("clip_by_norm", {"X": x}, {"max_norm": longest}, ["Out"])
    inside = in_place("clip_by_norm", {"X": x}, {"max_norm": longest}, {"Out": "X"})
    want = np.asarray(scope.find_var("Out@out").value)
    np.testing.assert_array_equal(np.asarray(inside.find_var("X").value), want)
    twins("clip_by_norm", {"X": x[:0]}, {"max_norm": 1.0}, ["Out"])


@pytest.mark.parametrize("dtype", FLOATS)
def test_moving_averages(dtype: str) -> None:
    slots = ["Out", "OutScale", "OutState", "OutAccum"]
    states = {"InAccum": np.array([2.0], np_dtype(dtype)), "InState": np.array([1.5], np_dtype(dtype))}
    for x in (numbers(5, 70), numbers(0, 3), np.array([1.0, np.nan])):
        given = {"X": x.astype(np_dtype(dtype)), **states}
        twins("moving_average_abs_max_scale", given, {}, slots)
    twins("moving_average_abs_max_scale", {"X": given["X"]}, {"is_test": True}, ["Out", "OutScale"])
    places = {"OutAccum": "InAccum", "OutState": "InState", "OutScale": EMPTY}
    twins("moving_average_abs_max_scale", given, {"moving_rate": 0.5}, places)
    twins("stright_throuth_estimator_grad", {"Out@GRAD": given["X"]}, {}, ["X@GRAD"])


@pytest.mark.parametrize("dtype", FLOATS)
def test_dpsgd(dtype: str) -> None:
    t = np_dtype(dtype)
    for shape in ((1031,), (0, 3)):
        given = {"Param": numbers(*shape), "Grad": numbers(*shape, seed=2), "LearningRate": np.array([0.1])}
        twins("dpsgd", {slot: x.astype(t) for slot, x in given.items()}, {"clip": 2.0}, ["ParamOut"])


@pytest.mark.parametrize(("rows", "k"), [(700, 1), (33, 5), (0, 2), (4, 0)])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_accuracy(rows: int, k: int, dtype: str) -> None:
    rng = np.random.default_rng(rows)
    given = {
        "Out": numbers(rows, k).astype("float32"), "Indices": rng.integers(0, 6, (rows, k)),
        "Label": rng.integers(0, 6, (rows, 1)).astype(dtype),
    }  # fmt: skip
    twins("accuracy", given, {}, ["Accuracy", "Correct", "Total"])


def classes(count: int, n: int, dtype: str = "int64") -> dict[str, np.ndarray]:
    """Predictions and labels."""
    rng = np.random.default_rng(n)
    return {slot: rng.integers(0, count, n).astype(dtype) for slot in ("Predictions", "Labels")}


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize(("count", "n"), [(5, 700), (5000, 300), (3, 0)])
def test_mean_iou(count: int, n: int, dtype: str) -> None:
    slots = {slot: slot for slot in ("OutMeanIou", "OutWrong", "OutCorrect")}
    twins("mean_iou", classes(count, n, dtype), {"num_classes": count}, slots)
    for slot in slots:
        twins("mean_iou", classes(count, n, dtype), {"num_classes": count}, slots | {slot: EMPTY})


def test_mean_iou_goes_on_from_batches_before() -> None:
    scope, names = Scope(), {"Predictions": ["p"], "Labels": ["l"]}
    given = dict(zip("pl", classes(4, 90).values(), strict=True))
    for slot, dtype, size in (("InMeanIou", "float32", 1), ("InWrongs", "int32", 4), ("InCorrects", "int32", 4)):
        names[slot] = [f"{slot}{i}" for i in range(2)]
        given |= {name: np.arange(i, i + size).astype(dtype) for i, name in enumerate(names[slot])}
    for name, array in given.items():
        scope.var(name).value = LoDTensor(array)
    outs = {slot: [slot] for slot in ("OutMeanIou", "OutWrong", "OutCorrect")}
    run_twins(OpDesc("mean_iou", names, outs, {"num_classes": 4}), scope)


@pytest.mark.parametrize("slot", ["Predictions", "Labels"])
@pytest.mark.parametrize("strange", [-1, 4])
def test_a_class_that_there_is_not_makes_the_mean_nan(slot: str, strange: int) -> None:
    given = classes(4, 90)
    given[slot][7] = strange
    out = emulated("mean_iou", given, {"num_classes": 4}, ["OutMeanIou", "OutWrong", "OutCorrect"])
    assert np.isnan(out["OutMeanIou"]).all() and 0 < out["OutCorrect"].sum() < 90


@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "int64"])
def test_allclose(dtype: str) -> None:
    x = numbers(700, low=0, high=90).astype(np_dtype(dtype))
    for change in (0, 1, 30):
        y = x.copy()
        y[-1] += change
        for attrs in ({}, {"rtol": "0.25"}, {"atol": "1.5"}):
            twins("allclose", {"Input": x, "Other": y}, attrs, ["Out"])
    twins("allclose", {"Input": x[:0], "Other": x[:0]}, {}, ["Out"])
    for given in ("float32", "float64"):
        tolerance = {"Rtol": np.array([0.5], given), "Atol": np.array([2.0], given)}
        twins("allclose", {"Input": x, "Other": y, **tolerance}, {}, ["Out"])


@pytest.mark.parametrize(
    ("one", "other"), [(np.inf, np.inf), (np.inf, -np.inf), (np.nan, np.nan), (1.0, np.nan), (1, np.inf)]
)
def test_what_is_no_number_is_close_or_not(one: float, other: float) -> None:
    given = {"Input": np.array([2.0, one]), "Other": np.array([2.0, other])}
    for nans in (True, False):
        twins("allclose", given, {"equal_nan": nans}, ["Out"])


@pytest.mark.parametrize("dtype", [*FLOATS, "bool", "uint8", "int8", "int16", "int32", "int64"])
def test_equal_all(dtype: str) -> None:
    x = (np.arange(700) % 2).astype(np_dtype(dtype))
    y = x.copy()
    twins("equal_all", {"X": x, "Y": y}, {}, ["Out"])
    y[500] = 1 - x[500].astype("int32")
    twins("equal_all", {"X": x, "Y": y}, {}, ["Out"])
    twins("equal_all", {"X": x, "Y": x.astype("float64")}, {}, ["Out"])
    twins("equal_all", {"X": x[:0], "Y": x[:0]}, {}, ["Out"])
    twins("equal_all", {"X": x, "Y": x[:1]}, {}, ["Out"])


@pytest.mark.parametrize("dtype", FLOATS)
def test_gradients_in_rows_are_shortened_too(dtype: str) -> None:
    desc = OpDesc("clip_by_norm", {"X": ["x"]}, {"Out": ["out"]}, {"max_norm": 0.5})
    for ids, width in (((1, 3, 1), 70), ((), 3)):
        values = numbers(len(ids), width).astype(np_dtype(dtype))
        scope = Scope()
        scope.var("x").value = SelectedRows(ids, 4, LoDTensor(values))
        run_twins(desc, scope)
