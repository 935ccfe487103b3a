"""Losses of probabilities, of trees and of samples on the emulator beyond the cases of their OpTests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fluidnb.op import Clock, OpDesc
from fluidnb.runtime import Scope
from fluidnb.testing.eager import Fresh
from fluidnb.values import LoDTensor, SelectedRows
from fluidnb.values.dtypes import np_dtype
from fluidnb_kernels import emulator
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.loss.bce_nll_kldiv import _BLOCKS
from tests.cuda.devices import OnDevice
from tests.cuda.operands import emulated, numbers, twins
from tests.cuda.twins import _run

pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())

CLASSES = np.random.default_rng(3).integers(0, 7, (300, 1))
IGNORED = np.where(np.arange(300)[:, None] % 5 == 2, -100, CLASSES)


def of(dtype: str, *shape: int, seed: int = 1, low: float = -1.0, high: float = 1.0) -> np.ndarray[Any, Any]:
    return numbers(*shape, seed=seed, low=low, high=high).astype(np_dtype(dtype))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("labels", [CLASSES, IGNORED])
def test_cross_entropy2(dtype: str, labels: np.ndarray[Any, Any]) -> None:
    x, g = of(dtype, 300, 7, low=0.05), of(dtype, 300, 1, seed=2)
    scope = twins("cross_entropy2", {"X": x, "Label": labels}, {}, ["Y", "XShape", "MatchX"])
    kept = {slot: scope.var(f"{slot}@out").value.array for slot in ("MatchX", "XShape")}
    twins("cross_entropy_grad2", {**kept, "Label": labels, "Y@GRAD": g}, {}, ["X@GRAD"])


@pytest.mark.parametrize("dtype", FLOATS[1:])
def test_what_is_all_but_impossible(dtype: str) -> None:
    """Logarithms of 0 count as -100; a gradient is divided by 1e-12 at least."""
    x, label = np.array([0.0, 1.0, 0.0, 1.0, 0.5]), np.array([0.0, 1.0, 1.0, 0.0, 0.25])
    given = {"X": x.astype(np_dtype(dtype)), "Label": label.astype(np_dtype(dtype))}
    twins("bce_loss", given, {}, ["Out"])
    twins("bce_loss_grad", {**given, "Out@GRAD": given["X"]}, {}, ["X@GRAD"])


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_teacher(dtype: str) -> None:
    label = np.array([-2.0, -1.0, 0.0, 0.5, 1.0, 1.5])[:, None].astype(np_dtype(dtype))
    attrs = {"soft_max_up_bound": 0.5, "soft_max_lower_bound": -0.25}
    for x in (of(dtype, 6, 1), 50 * of(dtype, 6, 1), np.array([[-0.25, 0.5, 0.25] * 2]).T.astype(np_dtype(dtype))):
        twins("teacher_student_sigmoid_loss", {"X": x, "Label": label}, attrs, ["Y"])
        given = {"X": x, "Label": label, "Y@GRAD": of(dtype, 6, 1)}
        twins("teacher_student_sigmoid_loss_grad", given, attrs, ["X@GRAD"])


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize(("dtype", "shape", "weighed"), [
    ("float32", (300, 7), True), ("float64", (300, 7), False), ("float16", (4, 7, 5, 15), True),
    ("bfloat16", (300, 7), True), ("float32", (2, 7, 15, 10), False), ("float32", (0, 7), True),
])  # fmt: skip
def test_nll_loss(dtype: str, shape: tuple[int, ...], weighed: bool, reduction: str) -> None:
    x, attrs = of(dtype, *shape, low=-3.0, high=-0.1), {"reduction": reduction, "ignore_index": 3}
    labels = CLASSES[: x.size // 7].reshape(shape[0], *shape[2:])
    given = {"X": x, "Label": labels} | ({"Weight": of(dtype, 7, low=0.5)} if weighed else {})
    total = twins("nll_loss", given, attrs, ["Out", "Total_weight"]).var("Total_weight@out").value.array
    g = of(dtype, *(labels.shape if reduction == "none" else (1,)), seed=5)
    twins("nll_loss_grad", {**given, "Total_weight": total, "Out@GRAD": g}, attrs, ["X@GRAD"])


def test_labels_that_all_are_ignored() -> None:
    given = {"X": of("float32", 3, 4), "Label": np.full(3, -100)}
    total = twins("nll_loss", given, {}, ["Out", "Total_weight"]).var("Total_weight@out").value.array
    g = np.ones(1, np.float32)
    attrs = {"ignore_index": -100, "reduction": "mean"}
    twins("nll_loss_grad", {**given, "Total_weight": total, "Out@GRAD": g}, attrs, ["X@GRAD"])


def test_many_labels_are_added_up_by_all_blocks() -> None:
    n = 256 * _BLOCKS + 77  # one more than its threads have at first
    label = np.arange(n) % 2
    twins("nll_loss", {"X": numbers(n, 2), "Label": label}, {"reduction": "mean"}, ["Out", "Total_weight"])


def test_labels_that_are_no_class_give_none() -> None:
    x, label = of("float32", 3, 4, low=0.1), np.array([[4], [1], [-1]])
    odd = [True, False, True]
    got = emulated("cross_entropy2", {"X": x, "Label": label}, {}, ["Y", "MatchX", "XShape"])
    assert np.isnan(got["Y"][:, 0]).tolist() == np.isnan(got["MatchX"][:, 0]).tolist() == odd
    got = emulated("nll_loss", {"X": x, "Label": label[:, 0]}, {"reduction": "none"}, ["Out", "Total_weight"])
    assert np.isnan(got["Out"]).tolist() == odd and np.isnan(got["Total_weight"]).all()
    tree = {"X": x, "W": of("float32", 3, 4), "Label": label}
    assert (
        np.isnan(emulated("hierarchical_sigmoid", tree, {"num_classes": 4}, ["Out", "PreOut"])["Out"][:, 0]).tolist()
        == odd
    )
    words = {"Input": x, "Label": label, "Weight": of("float32", 4, 4)}
    attrs = {"num_total_classes": 4, "num_neg_samples": 2}
    got = emulated("nce", words, attrs, ["Cost", "SampleLogits", "SampleLabels"])
    assert np.isnan(got["Cost"][:, 0]).tolist() == odd
    got = emulated("sample_logits", {"Logits": x, "Labels": label}, {"num_samples": 2}, LOGITS)
    assert np.isnan(got["SampledLogits"][:, 0]).tolist() == np.isnan(got["Probabilities"][:, 0]).tolist() == odd


LOGITS = ["Samples", "Probabilities", "LogitsDim", "LabelsDim", "SampledLogits", "SampledLabels"]
STEPS = ("X@GRAD", "W@GRAD", "Bias@GRAD")


def both(type: str, inputs: dict[str, Any], outs: tuple[str, ...], attrs: dict[str, Any], sparse: str = "") -> Scope:
    """Run a gradient both ways; the one in rows must have the same rows, and the sums of `sparse` as a whole."""
    twins(type, inputs, attrs, [s for s in outs if s != sparse])
    if not sparse:
        return twins(type, inputs, attrs, outs)
    scopes = []
    for memory in (Fresh(Clock(1)), OnDevice(Clock(1))):
        scope = Scope()
        for slot, value in inputs.items():
            scope.var(slot).value = LoDTensor(value.copy())
        _run(OpDesc(type, {s: [s] for s in inputs}, {sparse: ["rows"]}, {**attrs, "is_sparse": True}), scope, memory)
        scopes.append(scope)
    want, got = (s.var("rows").value for s in scopes)
    assert isinstance(got, SelectedRows) and got.rows() == want.rows() and got.height() == want.height()
    values = [np.asarray(rows.value) for rows in (got, want)]
    assert values[0].dtype == values[1].dtype
    np.testing.assert_allclose(values[0], values[1], rtol=1e-5, atol=1e-5)
    return scopes[0]


@pytest.mark.parametrize(("dtype", "rows", "width", "classes"), [
    ("float32", 40, 33, 21), ("float64", 9, 300, 2), ("float16", 5, 4, 6), ("bfloat16", 5, 4, 6), ("float32", 0, 4, 6),
])  # fmt: skip
@pytest.mark.parametrize("bias", [True, False])
def test_the_tree_of_classes(dtype: str, rows: int, width: int, classes: int, bias: bool) -> None:
    given = {"X": of(dtype, rows, width), "W": of(dtype, classes, width, seed=2)}
    given["Label"] = np.arange(rows)[:, None] % classes
    if bias:
        given["Bias"] = of(dtype, classes, 1, seed=3)
    attrs = {"num_classes": classes}
    pre = twins("hierarchical_sigmoid", given, attrs, ["Out", "PreOut", "W_Out"]).var("PreOut@out").value.array
    given |= {"PreOut": pre, "Out@GRAD": of(dtype, rows, 1, seed=4)}
    wanted = STEPS if bias else STEPS[:2]
    both("hierarchical_sigmoid_grad", given, wanted, attrs)
    if dtype.startswith("float32"):
        both("hierarchical_sigmoid_grad", given, wanted, attrs, "W@GRAD")


@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_a_tree_of_ones_own(kind: str) -> None:
    """Ways of many lengths, an empty one, one node twice on a way, and logits beyond the bounds."""
    table = np.array([[0, 2, -1, -1], [-1, -1, -1, -1], [3, 3, 1, 0], [4, -2, -1, -1]], kind)
    codes = np.array([[1, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0], [1, 1, 1, 1]], kind)
    given = {"X": 60 * of("float64", 4, 3), "W": of("float64", 5, 3, seed=2), "Label": np.zeros((4, 1), np.int64)}
    given |= {"PathTable": table, "PathCode": codes}
    pre = twins("hierarchical_sigmoid", given, {}, ["Out", "PreOut"]).var("PreOut@out").value.array
    given |= {"PreOut": pre, "Out@GRAD": of("float64", 4, 1, seed=4)}
    both("hierarchical_sigmoid_grad", given, STEPS[:2], {})
    both("hierarchical_sigmoid_grad", given, STEPS[:2], {}, "W@GRAD")


@pytest.mark.parametrize("sampler", [0, 1, 2])
@pytest.mark.parametrize("fixed", [[], [9, 0, 9, 11]])
@pytest.mark.parametrize("dtype", FLOATS)
def test_noise(sampler: int, fixed: list[int], dtype: str) -> None:
    given = {
        "Input": of(dtype, 11, 35),
        "Label": np.arange(22).reshape(11, 2) % 12,
        "Weight": of(dtype, 12, 35, seed=2),
    }
    if sampler:
        given |= {"Bias": of(dtype, 12, seed=3), "SampleWeight": of(dtype, 11, 1, seed=4, low=0.5)}
    if sampler == 2:
        given["CustomDistProbs"] = of(dtype, 12, seed=5, low=0.05)
    attrs = {
        "num_total_classes": 12, "num_neg_samples": 4, "sampler": sampler, "custom_neg_classes": fixed, "seed": 3,
    }  # fmt: skip
    scope = twins("nce", given, attrs, ["Cost", "SampleLogits", "SampleLabels"])
    for slot in ("SampleLogits", "SampleLabels"):
        given[slot] = scope.var(f"{slot}@out").value.array
    given["Cost@GRAD"] = of(dtype, 11, 1, seed=6)
    attrs = {name: value for name, value in attrs.items() if name != "sampler" or value}  # left out, it is 0
    outs = ("Input@GRAD", "Weight@GRAD", *(("Bias@GRAD",) if sampler else ()))
    both("nce_grad", given, outs, attrs)
    if dtype == "float32":
        both("nce_grad", given, outs, attrs, "Weight@GRAD")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("once", [True, False])
@pytest.mark.parametrize(("classes", "count"), [(400, 90), (8, 8), (1, 1)])
def test_sampled_logits(dtype: str, once: bool, classes: int, count: int) -> None:
    labels = np.random.default_rng(1).integers(0, classes, (7, 3))
    given = {"Logits": of(dtype, 7, classes), "Labels": labels}
    for remove in (True, False):
        attrs = {"num_samples": count, "uniq": once, "remove_accidental_hits": remove, "seed": 5}
        scope = twins("sample_logits", given, attrs, LOGITS)
    kept = {s: scope.var(f"{s}@out").value.array for s in ("LogitsDim", "LabelsDim", "Samples")}
    kept["SampledLogits@GRAD"] = of(dtype, 7, 3 + count, seed=2)
    twins("sample_logits_grad", kept, {}, ["Logits@GRAD"])


def test_a_chance_of_nothing() -> None:
    given = {
        "Logits": numbers(2, 3), "Labels": np.array([[0], [1]]), "CustomizedSamples": np.array([[0, 2], [1, 1]]),
        "CustomizedProbabilities": np.array([[0.0, 0.5], [1.0, np.inf]]),
    }  # fmt: skip
    twins("sample_logits", given, {"num_samples": 1, "use_customized_samples": True}, LOGITS)
