"""Reductions, softmax, losses and norms on the emulator beyond the cases of their OpTests: lines of every length and
layout, pieces of long lines, half precision, numbers that are none, labels that are none."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fluidnb.op import OpDesc, check_desc, get_op, make_grad
from fluidnb.op.binder import Binder
from fluidnb.op.rng import Clock
from fluidnb.runtime import Scope
from fluidnb.runtime.compile.lowering import LoweredOp
from fluidnb.values import LoDTensor
from fluidnb_kernels import emulator
from fluidnb_kernels.cuda import axis_reduction
from fluidnb_kernels.cuda.axis_reduction import groups
from fluidnb_kernels.cuda.line_grid import BLOCKS, COLUMNS, WARPS, way_of
from fluidnb_kernels.reduce.reduction_kernels import CUDA
from tests.cuda.twins import OnDevice, run_twins
from tests.tools.sampling import sample

pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())

#: A line for a warp, for a block, for eight threads; beside each other; through the middle; with gaps between.
SHAPES: dict[str, tuple[tuple[int, ...], list[int]]] = {
    "warp": ((3, 70), [1]), "block": ((2, 1100), [1]), "short": ((35, 5), [1]), "columns": ((20, 37), [0]),
    "middle": ((2, 11, 7), [1]), "both_ends": ((3, 4, 5), [0, 2]), "three": ((2, 3, 2, 3, 4), [0, 2, 4]),
    "one": ((4, 1), [1]), "none": ((0, 3), [0]), "nothing": ((3, 0), [0]),
}  # fmt: skip


def numbers(shape: Any, dtype: Any = np.float32, seed: int = 0) -> np.ndarray[Any, Any]:
    """Numbers of either sign, none of them 0 or equal to another."""
    size = int(np.prod(shape))
    drawn = np.random.default_rng(seed + size).permutation(size) + 0.5
    return ((drawn - size / 2.3) / max(size, 1) * 3).reshape(shape).astype(dtype)


def both(type: str, inputs: dict[str, Any], outs: tuple[str, ...], attrs: dict[str, Any], grad: bool = True) -> Scope:
    """Run an operator and its gradient with numpy and on the emulator."""
    desc = OpDesc(type, {s: [s.lower()] for s in inputs}, {s: [f"{s.lower()}_out"] for s in outs}, attrs)
    check_desc(get_op(type), desc)
    scope = Scope()
    for slot, array in inputs.items():
        scope.var(slot.lower()).value = LoDTensor(np.asarray(array))
    run_twins(desc, scope)
    for made in make_grad(desc) if grad else ():
        for names in made.ins.values():
            for name in names:
                if scope.find_var(name) is None:
                    array = scope.find_var(name.removesuffix("@GRAD")).value.array
                    scope.var(name).value = LoDTensor(numbers(array.shape, array.dtype, 5))
        run_twins(made, scope)
    return scope


def on_device(type: str, inputs: dict[str, Any], out: str, attrs: dict[str, Any]) -> np.ndarray[Any, Any]:
    """One output of an operator that only the emulator runs."""
    scope = Scope()
    for slot, array in inputs.items():
        scope.var(slot).value = LoDTensor(np.asarray(array))
    outs = {s: [s] for s in get_op(type).outputs}
    desc = OpDesc(type, {s: [s] for s in inputs}, outs, attrs)
    for function, args, kw in Binder(LoweredOp(desc, 0, 0), OnDevice(Clock(1)), scope).bind():
        function(*args, **kw)
    return np.asarray(scope.find_var(out).value)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("type", ["reduce_sum", "reduce_mean", "frobenius_norm"])
def test_layouts(type: str, shape: str) -> None:
    size, dims = SHAPES[shape]
    both(type, {"X": numbers(size)}, ("Out",), {"dim": dims})


@pytest.mark.parametrize("shape", [name for name, (size, _) in SHAPES.items() if 0 not in size])
@pytest.mark.parametrize("type", ["reduce_prod", "logsumexp"])
def test_layouts_of_what_needs_an_element(type: str, shape: str) -> None:
    size, dims = SHAPES[shape]
    both(type, {"X": numbers(size)}, ("Out",), {"axis" if type == "logsumexp" else "dim": dims})


@pytest.mark.parametrize("type", ["reduce_max", "reduce_min"])
@pytest.mark.parametrize("shape", ["warp", "block", "short", "columns", "three"])
def test_extremes(type: str, shape: str) -> None:
    size, dims = SHAPES[shape]
    both(type, {"X": numbers(size)}, ("Out",), {"dim": dims})


@pytest.mark.parametrize("type", ["reduce_all", "reduce_any"])
def test_truth(type: str) -> None:
    x = np.random.default_rng(3).random((40, 3)) < (0.03 if type == "reduce_any" else 0.97)
    both(type, {"X": x}, ("Out",), {"dim": [0]}, grad=False)
    both(type, {"X": x}, ("Out",), {"reduce_all": True}, grad=False)


@pytest.mark.parametrize("shape", [(20_000,), (3, 9000), (400, 3), (2, 500, 3)], ids=str)
@pytest.mark.parametrize("type", ["reduce_mean", "logsumexp", "frobenius_norm", "reduce_min"])
def test_long_lines_are_folded_in_pieces(type: str, shape: tuple[int, ...]) -> None:
    dims = [0] if len(shape) == 1 or shape[0] == 400 else [1]
    steps = list(axis_reduction._steps(shape, dims))
    assert len(steps) == 2 and steps[0][1] == shape[dims[0]] > steps[0][2]
    dtype = np.float64
    both(type, {"X": numbers(shape, dtype)}, ("Out",), {"axis" if type == "logsumexp" else "dim": dims})


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["float16", "bfloat16"])
@pytest.mark.parametrize("type", sample(["reduce_sum", "reduce_mean", "reduce_max", "frobenius_norm", "logsumexp"], 3))
def test_half_precision_keeps_sums_in_single(type: str, dtype: type) -> None:
    both(type, {"X": numbers((9000,), dtype)}, ("Out",), {"axis" if type == "logsumexp" else "dim": [0]}, grad=False)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["float16", "bfloat16"])
@pytest.mark.parametrize(
    "type", sample(["softmax", "log_softmax", "norm", "reduce_sum", "p_norm", "cumsum", "mean"], 3)
)
def test_gradients_in_half_precision(type: str, dtype: type) -> None:
    outs = ("Norm", "Out") if type == "norm" else ("Out",)
    both(type, {"X": numbers((6, 21), dtype)}, outs, {"axis": 1} if type == "norm" else {})


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["float16", "bfloat16"])
@pytest.mark.parametrize(
    ("type", "slots", "outs", "attrs"),
    sample(
        [
            ("huber_loss", "XY", ("Residual", "Out"), {"delta": 1.0}),
            ("modified_huber_loss", "XY", ("IntermediateVal", "Out"), {}),
            ("smooth_l1_loss", "XY", ("Diff", "Out"), {}),
            ("rank_loss", ("Label", "Left", "Right"), ("Out",), {}),
            ("margin_rank_loss", ("X1", "X2", "Label"), ("Activated", "Out"), {"margin": 0.1}),
            ("label_smooth", "X", ("Out",), {"epsilon": 0.1}),
        ],
        3,
    ),
)
def test_losses_in_half_precision(type: str, slots: Any, outs: tuple[str, ...], attrs: Any, dtype: type) -> None:
    given = {slot: numbers((9, 5), dtype, seed) for seed, slot in enumerate(slots)}
    both(type, given, outs, attrs, grad=False)


def test_more_elements_than_32_bits_count() -> None:
    g, dx = numbers((6,), np.float64), np.zeros((2, 5, 3))
    counts = np.int64(5), np.int64(3), np.int64(dx.size)
    two, none = np.float64(2), np.float64(0)
    CUDA["spread<s::share, double, long long>"]((1,), (32,), 0, dx, g, g, dx, two, none, *counts)
    np.testing.assert_array_equal(dx, np.repeat(g.reshape(2, 1, 3) / 2, 5, 1))


@pytest.mark.parametrize("dtype", [np.int32, np.int64], ids=["int32", "int64"])
@pytest.mark.parametrize("type", ["reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "cumsum"])
def test_whole_numbers(type: str, dtype: type) -> None:
    x = np.random.default_rng(1).integers(-9, 10, (7, 40)).astype(dtype)
    both(type, {"X": x}, ("Out",), {"axis": 1} if type == "cumsum" else {"dim": [1]}, grad=False)


@pytest.mark.parametrize("type", ["reduce_sum", "reduce_max", "reduce_min", "logsumexp", "softmax", "log_softmax"])
def test_numbers_that_are_none(type: str) -> None:
    x = numbers((5, 40))
    x[1, 7], x[2, 3], x[3, 9], x[4] = np.nan, np.inf, -np.inf, -np.inf
    key = {"logsumexp": {"axis": [1]}, "softmax": {}, "log_softmax": {}}.get(type, {"dim": [1]})
    both(type, {"X": x}, ("Out",), key, grad=False)


@pytest.mark.parametrize("shape", ["warp", "block", "short", "columns", "middle"])
@pytest.mark.parametrize("type", ["softmax", "log_softmax"])
def test_softmax(type: str, shape: str) -> None:
    size, dims = SHAPES[shape]
    both(type, {"X": 3 * numbers(size)}, ("Out",), {"axis": dims[0]})


def test_softmax_holds_at_its_lowest() -> None:
    x = np.array([[0.0, -63.0, -64.0, -65.0, -1000.0] + [-200.0] * 30])
    out = on_device("softmax", {"X": x}, "Out", {})
    np.testing.assert_allclose(out[0], np.exp(np.maximum(x[0], -64)), rtol=1e-12)
    for label in ([[4]], [[1]]):
        both("softmax_with_cross_entropy", {"Logits": x, "Label": np.array(label)}, ("Softmax", "Loss"), {})


@pytest.mark.parametrize("dtype", [np.float32, np.float16], ids=["float32", "float16"])
@pytest.mark.parametrize("shape", ["warp", "block", "short", "columns", "middle"])
@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
def test_softmax_with_cross_entropy(soft: bool, shape: str, dtype: type) -> None:
    size, (axis,) = SHAPES[shape]
    x = 3 * numbers(size, np.float64)
    kept = tuple(1 if i == axis else n for i, n in enumerate(size))
    labels = np.random.default_rng(4).integers(0, size[axis], kept)
    labels[(0,) * len(size)] = -100
    if soft:
        labels = (np.exp(-x) / np.exp(-x).sum(axis, keepdims=True)).astype(dtype)
    attrs = {"axis": axis, "soft_label": soft}
    both(
        "softmax_with_cross_entropy", {"Logits": x.astype(dtype), "Label": labels}, ("Softmax", "Loss"), attrs,
        grad=dtype is np.float32,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", [np.int32, np.int64], ids=["int32", "int64"])
@pytest.mark.parametrize("classes", [3, 70, 1100])
def test_cross_entropy(classes: int, dtype: type) -> None:
    x = np.abs(numbers((5, classes))) + 0.01
    x[1] = 0  # its logarithm counts as a number
    labels = np.array([[0], [classes - 1], [1], [-100], [2]], dtype)
    both("cross_entropy", {"X": x, "Label": labels}, ("Y",), {})
    both("cross_entropy", {"X": x, "Label": np.maximum(labels, 0)}, ("Y",), {"ignore_index": 1})
    both("cross_entropy", {"X": x, "Label": np.full((5, classes), 1 / classes, x.dtype)}, ("Y",), {"soft_label": True})


@pytest.mark.parametrize(
    ("type", "x", "out"),
    [("cross_entropy", "X", "Y"), ("softmax_with_cross_entropy", "Logits", "Loss"), ("bpr_loss", "X", "Y")],
)
def test_a_label_that_is_no_class_shows_in_its_row(type: str, x: str, out: str) -> None:
    given = {x: np.full((3, 4), 0.25), "Label": np.array([[1], [4], [-7]])}
    assert np.isnan(on_device(type, given, out, {})).ravel().tolist() == [False, True, True]


@pytest.mark.parametrize("classes", [3, 70, 1100])
def test_bpr(classes: int) -> None:
    labels = np.array([[0], [classes - 1], [1]])
    both("bpr_loss", {"X": numbers((3, classes)), "Label": labels}, ("Y",), {})


@pytest.mark.parametrize("reduction", ["none", "mean", "sum", "batchmean"])
def test_kldiv(reduction: str) -> None:
    target = np.maximum(numbers((50, 200)), 0)
    both("kldiv_loss", {"X": numbers((50, 200)), "Target": target}, ("Loss",), {"reduction": reduction})


@pytest.mark.parametrize("normalize", [False, True])
def test_sigmoid_cross_entropy(normalize: bool) -> None:
    labels = np.random.default_rng(2).integers(-1, 2, (70, 71)).astype(np.float32)
    attrs = {"normalize": normalize, "ignore_index": -1}
    both("sigmoid_cross_entropy_with_logits", {"X": 9 * numbers((70, 71)), "Label": labels}, ("Out",), attrs)


def test_labels_of_another_dtype() -> None:
    labels = np.random.default_rng(2).random((40, 1))
    both("hinge_loss", {"Logits": numbers((40, 1)), "Labels": labels}, ("Loss",), {}, grad=False)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("width", [3, 70, 1100])
def test_smooth_l1(width: int, weights: bool) -> None:
    given = {"X": numbers((4, width)), "Y": numbers((4, width), seed=1)}
    if weights:
        given |= {"InsideWeight": numbers((4, width), seed=2), "OutsideWeight": numbers((4, width), seed=3)}
    both("smooth_l1_loss", given, ("Diff", "Out"), {"sigma": 1.5})


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0, 0.5, np.inf, -np.inf])
@pytest.mark.parametrize("shape", [(3, 70), (5, 3, 9), (9000,)], ids=str)
def test_p_norm(shape: tuple[int, ...], p: float) -> None:
    axis = 1 if len(shape) > 1 else 0
    both("p_norm", {"X": numbers(shape, np.float64)}, ("Out",), {"porder": p, "axis": axis})


@pytest.mark.parametrize("shape", ["warp", "block", "short", "columns", "middle"])
def test_norm(shape: str) -> None:
    size, (axis,) = SHAPES[shape]
    both("norm", {"X": numbers(size)}, ("Norm", "Out"), {"axis": axis, "epsilon": 0.5})


@pytest.mark.parametrize("type", ["mean", "squared_l2_norm", "l1_norm"])
@pytest.mark.parametrize("size", [1, 31, 10_001])
def test_of_everything(type: str, size: int) -> None:
    both(type, {"X": numbers((size,), np.float64)}, ("Out",), {})


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape", ["warp", "block", "short", "columns", "middle"])
def test_cumsum(shape: str, reverse: bool, exclusive: bool) -> None:
    size, (axis,) = SHAPES[shape]
    attrs = {"axis": axis, "exclusive": exclusive, "reverse": reverse}
    both("cumsum", {"X": numbers(size, np.float64)}, ("Out",), attrs)


def test_lines_are_worked_at_in_every_way() -> None:
    assert {name: way_of(shape[dims[0]], 1) for name, (shape, dims) in SHAPES.items() if len(shape) == 2} == {
        "warp": WARPS, "block": BLOCKS, "short": COLUMNS, "columns": WARPS, "one": COLUMNS, "none": COLUMNS,
        "nothing": COLUMNS,
    }  # fmt: skip
    assert groups((2, 3, 4, 5), (1, 2)) == [(2, False), (12, True), (5, False)]
