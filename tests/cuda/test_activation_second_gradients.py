"""Gradients of activations' gradients on the emulator: every dtype, odd sizes, addresses that are not aligned."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fluidnb.op import get_op
from fluidnb_kernels import emulator
from fluidnb_kernels.activation.table import CUDA_AGAIN
from tests.cuda.operands import numbers, twins
from tests.tools.sampling import sample

pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())

#: name -> the slot that its gradient reads, and what the gradient of that reads beside it.
ROWS = {
    "exp": ("Out", "grad_out"), "leaky_relu": ("X", ""), "log": ("X", "grad_out"), "relu": ("Out", ""),
    "rsqrt": ("Out", "grad_x"), "sigmoid": ("Out", "fwd_grad_out"), "sqrt": ("Out", "grad_x"),
    "square": ("X", "grad_out"), "tanh": ("Out", "grad_out"), "abs": ("X", ""), "brelu": ("X", ""),
    "relu6": ("Out", ""), "hard_sigmoid": ("Out", ""), "hard_shrink": ("X", ""), "softshrink": ("X", ""),
    "thresholded_relu": ("X", ""), "reciprocal": ("Out", "grad_out"), "sin": ("X", "grad_out"),
    "cos": ("X", "grad_out"),
}  # fmt: skip


def run_again(name: str, size: int, dtype: Any, wanted: slice = slice(None)) -> None:
    """Run the gradient of a gradient both ways."""
    slot, given = ROWS[name]
    slots = [slot, "grad_x@GRAD", *([given] if given else [])]
    operands = {s: numbers(size, seed=i, low=0.5, high=2.0).astype(dtype) for i, s in enumerate(slots)}
    back = f"{given}@GRAD" if given not in ("", "grad_x") else "grad_out@GRAD"
    outputs = [back, f"{slot}@GRAD"] if given else [back]
    attrs = {name: attr.default for name, attr in get_op(name).attrs.items()}
    suffix = "_double_grad" if name in ("abs", "sin", "cos") else "_grad_grad"
    twins(name + suffix, operands, attrs, outputs[wanted])


@pytest.mark.parametrize("name", ROWS)
def test_odd_sizes(name: str) -> None:
    run_again(name, 1027, np.float32)
    run_again(name, 0, np.float32)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64], ids=["float16", "bfloat16", "float64"])
@pytest.mark.parametrize("name", sample(list(ROWS), 3))
def test_other_dtypes(name: str, dtype: Any) -> None:
    run_again(name, 37, dtype)


DTYPES = pytest.mark.parametrize(
    "dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64], ids=["float16", "bfloat16", "float32", "float64"]
)


@DTYPES
def test_elu(dtype: Any) -> None:
    x = numbers(1027, low=-1.5, high=1.0).astype(dtype)
    out = np.where(x > 0, x, 0.5 * np.expm1(x)).astype(dtype)
    given = {"grad_x@GRAD": numbers(1027, seed=2).astype(dtype), "grad_out": numbers(1027, seed=3).astype(dtype)}
    twins("elu_grad_grad", {"X": x, "Out": out, **given}, {"alpha": 0.5}, ["grad_out@GRAD", "X@GRAD"])


@DTYPES
@pytest.mark.parametrize("factor", [2.5, 1.0, 0.0, -1.0])
def test_pow(factor: float, dtype: Any) -> None:
    slots, outputs = ("X", "grad_x@GRAD", "grad_out"), ["grad_out@GRAD", "X@GRAD"]
    given = {slot: numbers(37, seed=i, low=0.5, high=2.0).astype(dtype) for i, slot in enumerate(slots)}
    twins("pow_double_grad", given, {"factor": factor}, outputs)
    twins("pow_double_grad", given | {"FactorTensor": np.array([factor], dtype)}, {}, outputs)


@DTYPES
@pytest.mark.parametrize("missing", [(), ("DDX",), ("DDScale", "DDBias"), ("Scale", "DDScale", "DDBias")])
@pytest.mark.parametrize(
    ("type", "attrs"),
    [
        ("batch_norm", {}), ("batch_norm", {"data_layout": "NHWC"}), ("batch_norm", {"use_global_stats": True}),
        ("instance_norm", {}), ("layer_norm", {"begin_norm_axis": 2}),
    ],
)  # fmt: skip
def test_normalisations(type: str, attrs: dict[str, Any], missing: tuple[str, ...], dtype: Any) -> None:
    shape = (4, 6, 5, 3)
    channels = {"batch_norm": 3 if "data_layout" in attrs else 6, "instance_norm": 6, "layer_norm": 15}[type]
    moments = {"batch_norm": (channels,), "instance_norm": (24,), "layer_norm": (4, 6)}[type]
    saved = ("Mean", "Variance") if type == "layer_norm" else ("SavedMean", "SavedVariance")
    given = {slot: numbers(*shape, seed=i) for i, slot in enumerate(("X", "DY", "DDX"))}
    given |= {slot: numbers(channels, seed=9 + i, low=0.5) for i, slot in enumerate(("Scale", "DDScale", "DDBias"))}
    given |= {saved[0]: numbers(*moments, low=-0.1, high=0.1), saved[1]: numbers(*moments, low=0.5, high=1.5)}
    given = {slot: v.astype(dtype) for slot, v in given.items() if slot not in missing}
    wanted = ["DX", "DDY"] if "Scale" in missing else ["DX", "DDY", "DScale"]
    twins(f"{type}_grad_grad", given, attrs, wanted)


@DTYPES
def test_concat_beside_what_has_no_gradient(dtype: Any) -> None:
    given: dict[str, Any] = {"X": [numbers(2, n, 3).astype(dtype) for n in (2, 0, 4, 1)]}
    given["DDX"] = [numbers(2, n, 3, seed=5).astype(dtype) for n in (4, 2)]
    twins("concat_grad_grad", given, {"axis": 1, "given": [2, 0]}, ["DDOut"])


@DTYPES
@pytest.mark.parametrize("given", [("DDX", "DDY"), ("DDX",), ("DDY",), ()], ids=["both", "x", "y", "none"])
@pytest.mark.parametrize(
    "shapes", [((4, 5), (4, 5), -1), ((2, 3, 4), (3,), 1), ((4, 5), (5,), -1), ((2, 1), (2, 30), -1)],
    ids=["same", "band", "row", "x_is_repeated"],
)  # fmt: skip
def test_quotients(shapes: tuple[Any, Any, int], given: tuple[str, ...], dtype: Any) -> None:
    x, y, axis = shapes
    whole = (2, 30) if axis == -1 and y == (2, 30) else x
    sizes = {"Y": y, "Out": whole, "Out@GRAD": whole, "DX": x, "DDX": x, "DDY": y}
    slots = ["Y", "Out", "Out@GRAD", *given]
    inputs = {slot: numbers(*sizes[slot], seed=i, low=0.5, high=2.0).astype(dtype) for i, slot in enumerate(slots)}
    twins("elementwise_div_grad_grad", inputs, {"axis": axis}, ["DDOut", "DOut", "Y@GRAD"])
    inputs["DX"] = numbers(*x, seed=8).astype(dtype)
    twins("elementwise_div_grad_grad", inputs, {"axis": axis}, ["DDOut", "DOut", "Y@GRAD"])


@pytest.mark.parametrize("wanted", [slice(0, 1), slice(1, 2)])
def test_one_output_alone(wanted: slice) -> None:
    run_again("sigmoid", 9, np.float64, wanted)


def test_loads_are_one_element_wide_where_addresses_want_it() -> None:
    whole = numbers(4, 40)
    v, given, ddx, out = (row[1:36] for row in whole)
    want = 2.0 * given * ddx
    CUDA_AGAIN["again<f::square, double>"]((1,), (32,), 0, v, given, ddx, out, np.float64(0), np.int32(0), np.int64(35))
    np.testing.assert_array_equal(out, want)
