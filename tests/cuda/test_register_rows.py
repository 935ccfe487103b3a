"""Rows that kernels hold in registers: of every length for which there is a way, and beside those that they leave."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fluidnb.op import Binder, Clock, OpDesc
from fluidnb.runtime import Scope
from fluidnb.runtime.compile.lowering import LoweredOp
from fluidnb.testing.eager import Fresh
from fluidnb_kernels import emulator
from fluidnb_kernels.activation.softmax import ROWS
from fluidnb_kernels.cuda.register_rows import held_rows
from tests.cuda.operands import numbers, twins

pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())

#: A warp holds up to 256 or 1024 elements, a block up to 2048 or 8192; float64 has the smaller ones.
LENGTHS = [63, 64, 68, 250, 256, 260, 1024, 1028, 2048, 2052, 8192, 8196]
DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])


def softmax(x: Any) -> None:
    out = twins("softmax", {"X": x}, {}, ["Out"]).find_var("Out@out").value
    g = numbers(*x.shape, seed=2).astype(x.dtype)
    twins("softmax_grad", {"Out": np.asarray(out), "Out@GRAD": g}, {}, ["X@GRAD"])


def layer_norm(x: Any, scale: bool = True, bias: bool = True) -> None:
    given = {"X": x}
    if scale:
        given["Scale"] = numbers(x.shape[1], seed=3).astype(x.dtype)
    if bias:
        given["Bias"] = numbers(x.shape[1], seed=4).astype(x.dtype)
    scope = twins("layer_norm", given, {}, ["Y", "Mean", "Variance"])
    kept = {slot: np.asarray(scope.find_var(f"{slot}@out").value) for slot in ("Mean", "Variance")}
    g = numbers(*x.shape, seed=5).astype(x.dtype)
    twins("layer_norm_grad", {**given, **kept, "Y@GRAD": g}, {}, ["X@GRAD", *(f"{s}@GRAD" for s in given if s != "X")])


@pytest.mark.parametrize("n", LENGTHS)
def test_rows_of_any_length(n: int) -> None:
    x = 3 * numbers(3 if n > 1024 else 11, n).astype(np.float32)
    softmax(x)
    layer_norm(x)


@DTYPES
@pytest.mark.parametrize("n", [72, 264, 2056])
def test_every_dtype(dtype: Any, n: int) -> None:
    softmax(numbers(3, n).astype(dtype))
    layer_norm(numbers(3, n).astype(dtype))


@pytest.mark.parametrize(("scale", "bias"), [(False, False), (True, False), (False, True)])
def test_without_scale_or_bias(scale: bool, bias: bool) -> None:
    layer_norm(numbers(5, 128), scale, bias)


def test_numbers_that_are_none() -> None:
    x = numbers(6, 128).astype(np.float32)
    x[0, 3], x[1, 5], x[2, 7], x[3] = np.nan, np.inf, -np.inf, -np.inf
    x[4, 9] = 200
    softmax(x)


def test_a_mean_far_from_zero() -> None:
    layer_norm(1000 + numbers(2, 1024))
    x = (1000 + np.arange(1024) % 2).astype(np.float32).reshape(1, 1024)
    scope = twins("layer_norm", {"X": x}, {}, ["Y", "Mean", "Variance"])
    np.testing.assert_allclose(np.asarray(scope.find_var("Variance@out").value), 0.25, 1e-3)


def test_which_rows_are_held() -> None:
    binder = Binder(LoweredOp(OpDesc("softmax", {}, {}, {}), 0, 0), Fresh(Clock(1)), Scope())
    x = np.zeros(1 << 14, np.float32)

    def name(n: int, array: Any, rows: int = 4) -> str:
        del binder.calls[:]
        done = held_rows(binder, ROWS, "softmax", rows, n, (array, array), array, array)
        return binder.calls[0][0].name if binder.calls else str(done)

    assert [name(n, x) for n in (60, 66, 8196)] == ["False"] * 3
    assert name(64, x[1:]) == "False"
    assert name(64, x, rows=0) == "True"
    assert [name(n, x) for n in (256, 260)] == ["softmax<float, 4, 2>", "softmax<float, 4, 8>"]
    assert [name(n, x) for n in (2048, 2052)] == ["softmax<float, 4, 2>", "softmax<float, 4, 8>"]
    assert name(2048, x.view(np.float64)) == "softmax<double, 2, 4>"
    assert name(2050, x.view(np.float64)) == "False"
