"""Products of matrices and vectors on the emulator beyond the cases of their OpTests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fluidnb.values.dtypes import np_dtype
from fluidnb_kernels import emulator
from fluidnb_kernels.cuda.gemm import launch
from tests.cuda.operands import emulated, numbers, twins

pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())

HALVES = ("float16", "bfloat16")
Shape = tuple[int, ...]


def both_ways(type: str, inputs: dict[str, Any], attrs: dict[str, Any], outs: list[str]) -> None:
    """An operator and its gradient."""
    scope = twins(type, inputs, attrs, ["Out"])
    shape = np.asarray(scope.find_var("Out@out").value).shape
    g = numbers(*shape, seed=8).astype(next(iter(inputs.values())).dtype)
    twins(f"{type}_grad", {**inputs, "Out@GRAD": g}, attrs, outs)


BATCHES: list[tuple[Shape, Shape]] = [
    ((3, 4), (4, 2)), ((5, 3, 4), (5, 4, 2)), ((5, 3, 4), (4, 2)), ((3, 4), (5, 4, 2)), ((1, 3, 4), (5, 4, 2)),
    ((2, 1, 3, 4), (3, 4, 2)), ((2, 3, 3, 4), (2, 1, 4, 2)), ((2, 1, 2, 1, 3, 4), (3, 1, 2, 4, 2)), ((4,), (5, 4, 2)),
    ((5, 3, 4), (4,)), ((4,), (4,)), ((2, 3, 3, 4), (1, 1, 4, 2)), ((0, 3, 4), (4, 2)), ((3, 0), (0, 2)),
    ((2, 3, 0), (0, 2)), ((3, 4), (0, 4, 2)),
]  # fmt: skip


@pytest.mark.parametrize("down", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize(("x", "y"), BATCHES)
def test_batches_that_broadcast(x: Shape, y: Shape, down: tuple[bool, bool]) -> None:
    down = (len(x) > 1 and down[0], len(y) > 1 and down[1])
    if down[0]:
        x = (*x[:-2], x[-1], x[-2])
    if down[1]:
        y = (*y[:-2], y[-1], y[-2])
    inputs = {"X": numbers(*x), "Y": numbers(*y, seed=2)}
    both_ways("matmul", inputs, dict(zip(("transpose_X", "transpose_Y"), down, strict=True)) | {"alpha": 0.5},
              ["X@GRAD", "Y@GRAD"])  # fmt: skip


def test_a_batch_that_meets_one_matrix_is_one_product(monkeypatch: pytest.MonkeyPatch) -> None:
    launches = []
    monkeypatch.setattr("fluidnb_kernels.cuda.gemm.launch", lambda *args: (launches.append(args), launch(*args)))
    inputs = {"X": numbers(5, 3, 4), "Y": numbers(4, 2)}
    emulated("matmul", inputs, {}, ["Out"])
    emulated("matmul_grad", {**inputs, "Out@GRAD": numbers(5, 3, 2)}, {}, ["X@GRAD", "Y@GRAD"])
    assert [[a.shape for a in args[:2]] for args in launches] == [
        [(15, 4), (4, 2)], [(15, 2), (4, 2)], [(15, 4), (15, 2)],
    ]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", *HALVES])
def test_precisions(dtype: str) -> None:
    inputs = {"X": numbers(3, 5, 70).astype(np_dtype(dtype)), "Y": numbers(70, 66, seed=2).astype(np_dtype(dtype))}
    twins("matmul_v2", inputs, {}, ["Out"])
    # the gradient of a matrix that a batch meets is a sum over that batch
    short = {"X": inputs["X"][0, :, :8].copy(), "Y": numbers(3, 8, 6).astype(np_dtype(dtype))}
    grad = numbers(3, 5, 6).astype(np_dtype(dtype))
    twins("matmul_v2_grad", {**short, "Out@GRAD": grad}, {}, ["X@GRAD", "Y@GRAD"])


@pytest.mark.parametrize("given", [("DDX", "DDY"), ("DDX",), ("DDY",)])
def test_gradients_of_gradients(given: tuple[str, ...]) -> None:
    inputs = {"X": numbers(2, 3, 4), "Y": numbers(4, 5, seed=2), "DOut": numbers(2, 3, 5, seed=3)}
    for slot in given:
        inputs[slot] = numbers(*inputs[slot[-1]].shape, seed=4)
    twins("matmul_grad_grad", inputs, {"alpha": 2.0}, ["DDOut", "DX", "DY"])
    twins("mul_grad_grad", inputs, {"x_num_col_dims": 2}, ["DDOut", "DX", "DY"])


def test_mul_of_tensors_and_of_nothing() -> None:
    for x, y in (((2, 3, 4), (12, 5)), ((2, 3, 4), (3, 4, 5)), ((0, 4), (4, 5)), ((3, 0), (0, 5))):
        inputs = {"X": numbers(*x), "Y": numbers(*y, seed=2)}
        both_ways("mul", inputs, {"y_num_col_dims": len(y) - 1}, ["X@GRAD", "Y@GRAD"])


@pytest.mark.parametrize("shape", [(3, 5), (1, 5), (3, 1), (5,), (1,)])
def test_addmm(shape: Shape) -> None:
    inputs = {"X": numbers(3, 4), "Y": numbers(4, 5, seed=2), "Input": numbers(*shape, seed=3)}
    both_ways("addmm", inputs, {"Alpha": 0.5, "Beta": 2.0}, ["Input@GRAD", "X@GRAD", "Y@GRAD"])


@pytest.mark.parametrize("dtype", ["float32", *HALVES])
def test_matrices_and_vectors(dtype: str) -> None:
    t = np_dtype(dtype)
    both_ways("mv", {"X": numbers(3, 70).astype(t), "Vec": numbers(70).astype(t)}, {}, ["X@GRAD", "Vec@GRAD"])
    inputs = {"X": numbers(3, 4).astype(t), "Y": numbers(4, 5).astype(t), "Input": numbers(5).astype(t)}
    both_ways("addmm", inputs, {"Beta": 0.25}, ["Input@GRAD"])


@pytest.mark.parametrize(("x", "y"), [((3,), (4,)), ((2, 3), (4, 5)), ((2,), (3, 1, 2)), ((2, 3, 1, 2), (2, 2, 3, 2))])
def test_kronecker(x: Shape, y: Shape) -> None:
    both_ways("kron", {"X": numbers(*x), "Y": numbers(*y, seed=2)}, {}, ["X@GRAD", "Y@GRAD"])


@pytest.mark.parametrize("dtype", ["float64", "int64", *HALVES])
def test_cross(dtype: str) -> None:
    for shape, attrs in (((3, 5), {}), ((70, 3), {}), ((2, 3, 3), {"dim": -1}), ((0, 3), {})):
        inputs = {"X": numbers(*shape, high=9).astype(np_dtype(dtype)), "Y": numbers(*shape, seed=2, high=9)}
        inputs["Y"] = inputs["Y"].astype(np_dtype(dtype))
        twins("cross", inputs, attrs, ["Out"])
        if dtype == "float64":
            both_ways("cross", inputs, attrs, ["X@GRAD", "Y@GRAD"])


@pytest.mark.parametrize("dtype", ["float32", "int64", *HALVES])
@pytest.mark.parametrize("shape", [(5000,), (3, 70), (40, 3), (0, 3), (3, 0)])
def test_dot(shape: Shape, dtype: str) -> None:
    inputs = {slot: numbers(*shape, seed=i, high=3).astype(np_dtype(dtype)) for i, slot in enumerate("XY")}
    twins("dot", inputs, {}, ["Out"])
    if dtype != "int64":
        g = numbers(*(shape[:-1] or (1,))).astype(np_dtype(dtype))
        twins("dot_grad", {**inputs, "Out@GRAD": g}, {}, ["X@GRAD", "Y@GRAD"])


@pytest.mark.parametrize("dtype", ["float32", *HALVES])
@pytest.mark.parametrize(("rows", "others"), [(40, 40), (40, 1), (1, 1), (0, 1), (0, 0)])
def test_rows_that_are_compared(rows: int, others: int, dtype: str) -> None:
    t = np_dtype(dtype)
    inputs = {"X": numbers(rows, 3, 7).astype(t), "Y": numbers(others, 3, 7, seed=2).astype(t)}
    g = {"Out@GRAD": numbers(rows, 1, seed=3).astype(t)}
    scope = twins("cos_sim", inputs, {}, ["Out", "XNorm", "YNorm"])
    made = {slot: np.asarray(scope.find_var(f"{slot}@out").value) for slot in ("Out", "XNorm", "YNorm")}
    twins("cos_sim_grad", {**inputs, **made, **g}, {}, ["X@GRAD", "Y@GRAD"])
    scope = twins("squared_l2_distance", inputs, {}, ["Out", "sub_result"])
    gap = {"sub_result": np.asarray(scope.find_var("sub_result@out").value)}
    twins("squared_l2_distance_grad", {**inputs, **gap, **g}, {}, ["X@GRAD", "Y@GRAD"])


def test_long_rows_are_compared() -> None:
    inputs = {"X": numbers(2, 3000), "Y": numbers(1, 3000, seed=2)}
    twins("cos_sim", inputs, {}, ["Out"])
    twins("squared_l2_distance", inputs, {}, ["Out"])


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0, np.inf, -np.inf])
def test_dist(p: float) -> None:
    for x, y in (((3, 4), (3, 4)), ((3, 4), (4,)), ((3, 1, 2), (4, 1)), ((40, 70), (1,))):
        inputs = {"X": numbers(*x), "Y": numbers(*y, seed=2)}
        out = np.asarray(twins("dist", inputs, {"p": p}, ["Out"]).find_var("Out@out").value)
        twins("dist_grad", {**inputs, "Out": out, "Out@GRAD": numbers(1)}, {"p": p}, ["X@GRAD", "Y@GRAD"])


@pytest.mark.parametrize("dtype", ["float32", *HALVES])
def test_feature_maps_circles_and_bilinear_products(dtype: str) -> None:
    t = np_dtype(dtype)
    maps = {"X": numbers(2, 3, 4, 5).astype(t), "Y": numbers(2, 4, 4, 5, seed=2).astype(t)}
    both_ways("fsp", maps, {}, ["X@GRAD", "Y@GRAD"])
    for m, k in ((7, 7), (70, 3), (2, 1)):
        rows = {"X": numbers(3, m).astype(t), "Y": numbers(3, k, seed=2).astype(t)}
        both_ways("conv_shift", rows, {}, ["X@GRAD", "Y@GRAD"])
    pair = {"X": numbers(4, 3).astype(t), "Y": numbers(4, 20, seed=2).astype(t)}
    weights = {"Weight": numbers(5, 3, 20, seed=3).astype(t), "Bias": numbers(1, 5, seed=4).astype(t)}
    slopes = ["X@GRAD", "Y@GRAD", "Weight@GRAD", "Bias@GRAD"]
    both_ways("bilinear_tensor_product", pair | weights, {}, slopes)


def test_bilinear_products_of_nothing() -> None:
    pair = {"X": numbers(0, 3), "Y": numbers(0, 2), "Weight": numbers(5, 3, 2)}
    both_ways("bilinear_tensor_product", pair, {}, ["X@GRAD", "Y@GRAD", "Weight@GRAD"])
