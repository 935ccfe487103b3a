"""Comparisons, scale, clip, sign, sums, casts and fills on the emulator beyond the cases of their OpTests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fluidnb.op import OpDesc, check_desc, get_op
from fluidnb.runtime import Scope
from fluidnb.values import LoDTensor
from fluidnb.values.dtypes import np_dtype
from fluidnb_kernels import emulator
from fluidnb_kernels.cuda import CTYPES
from tests.cuda.twins import HALF, has_kernel, run_twins
from tests.tools.sampling import sample

pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())

COMPARISONS = ("less_than", "less_equal", "greater_than", "greater_equal", "equal", "not_equal")
NUMBERS = ("float16", "bfloat16", "float32", "float64", "int32", "int64")
ODD = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.5, 3.0, 0.25])


def twins(type: str, inputs: dict[str, Any], out: str = "out", **attrs: Any) -> None:
    """Run an operator both ways; a list is as many variables of a slot."""
    rows = {slot: value if isinstance(value, list) else [value] for slot, value in inputs.items()}
    names = {slot: [f"{slot}{i}" for i in range(len(row))] for slot, row in rows.items()}
    slot = "X@GRAD" if get_op(type).is_grad else "Out"
    desc = OpDesc(type, names, {slot: [out]}, attrs)
    assert has_kernel(desc)
    if not get_op(type).is_grad:
        check_desc(get_op(type), desc)
    scope = Scope()
    for slot, row in rows.items():
        for name, value in zip(names[slot], row, strict=True):
            scope.var(name).value = LoDTensor(np.array(value))
    run_twins(desc, scope)


@pytest.mark.parametrize("type", COMPARISONS)
def test_comparisons_of_numbers_that_are_none(type: str) -> None:
    twins(type, {"X": ODD.astype("float32")[:, None], "Y": ODD.astype("float32")})


@pytest.mark.parametrize(("x", "y"), sample([(a, b) for a in CTYPES for b in CTYPES], 16))
def test_comparisons_of_two_dtypes(x: str, y: str) -> None:
    values = np.arange(35).reshape(5, 7) % 4
    twins("less_than", {"X": values.astype(np_dtype(x)), "Y": np.arange(7).astype(np_dtype(y))})


@pytest.mark.parametrize("dtype", ["bool", "int32", "float32"])
@pytest.mark.parametrize("type", ["logical_and", "logical_or", "logical_xor"])
def test_logic_of_what_is_not_zero(type: str, dtype: str) -> None:
    x = np.array([0, 1, 2, 0] * 5)
    twins(type, {"X": x.astype(dtype), "Y": np.roll(x, 1).astype(dtype)})
    twins(type, {"X": x.reshape(5, 4).astype(dtype), "Y": np.array([True, False, True, False])})


def test_the_opposite() -> None:
    twins("logical_not", {"X": np.arange(37) % 3 > 0})
    twins("logical_not", {"X": np.arange(37) % 3 > 0}, out="X0")


@pytest.mark.parametrize("dtype", NUMBERS)
def test_scale_and_increment(dtype: str) -> None:
    x = np.arange(-9, 10).astype(np_dtype(dtype))
    for attrs in ({"scale": 3.5, "bias": 2.0}, {"scale": 3.0, "bias": 2.0, "bias_after_scale": False}, {}):
        twins("scale", {"X": x}, **attrs)
        twins("scale", {"X": x}, out="X0", **attrs)
    twins("scale", {"X": x, "ScaleTensor": x[:1]}, bias=1.0)
    twins("increment", {"X": x[-1:]}, out="X0", step=2.0)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_clip_and_sign(dtype: str) -> None:
    x = np.arange(-9, 10).astype(np_dtype(dtype))
    twins("sign", {"X": x})
    twins("clip", {"X": x}, min=-3.0, max=2.0)
    twins("clip", {"X": x, "Min": x[3:4], "Max": x[12:13]}, out="X0", min=-30.0, max=20.0)
    if dtype.endswith(("16", "float32", "float64")):
        twins("clip_grad", {"X": x, "Out@GRAD": x}, min=-3.0, max=2.0)
        twins("clip_grad", {"X": x, "Min": x[3:4], "Out@GRAD": x}, min=-3.0, max=2.0)


def test_numbers_that_are_none() -> None:
    x = ODD.astype("float32")
    twins("sign", {"X": x})
    twins("clip", {"X": x}, min=-1.0, max=1.0)
    twins("clip_grad", {"X": x, "Out@GRAD": x[::-1].copy()}, min=-1.0, max=1.0)


@pytest.mark.parametrize("terms", [1, 2, 3, 8, 9, 20])
def test_sums(terms: int) -> None:
    rng = np.random.default_rng(terms)
    twins("sum", {"X": [rng.normal(size=(3, 7)).astype("float32") for _ in range(terms)]})
    for place in {0, terms - 1}:
        twins("sum", {"X": [rng.normal(size=(3, 7)) for _ in range(terms)]}, out=f"X{place}")


@pytest.mark.parametrize("dtype", NUMBERS)
def test_sums_and_differences_of_a_dtype(dtype: str) -> None:
    terms = [np.arange(i, i + 37).astype(np_dtype(dtype)) for i in range(3)]
    twins("sum", {"X": terms})
    twins("minus", {"X": terms[0], "Y": terms[2][::-1].copy()})


@pytest.mark.parametrize(
    ("one", "other"),
    sample([(a, b) for a in CTYPES for b in CTYPES if (a, b) not in {(h, "float32") for h in HALF}], 20),
)
def test_casts(one: str, other: str) -> None:
    x = np.array([0.0, 1.0, 2.75, 100.5, 0.3, 27.0, 64.25]).astype(np_dtype(one))
    twins("cast", {"X": x}, in_dtype=one, out_dtype=other)


@pytest.mark.parametrize("dtype", CTYPES)
def test_fills(dtype: str) -> None:
    for shape in ([37], [4, 8], [0, 2], []):
        twins("fill_constant", {}, shape=shape, dtype=dtype, value=1.5)
    twins("fill_any_like", {"X": np.zeros((3, 5), np_dtype(dtype))}, value=2.0)
    twins("fill_zeros_like", {"X": np.ones((3, 5), np_dtype(dtype))})


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_value_of_a_fill_may_be_a_variable(dtype: str) -> None:
    twins("fill_constant", {"ValueTensor": np.array([2.5], "float32")}, shape=[3, 7], dtype=dtype)


def test_copies() -> None:
    x = np.arange(37.0)
    twins("assign", {"X": x})
    twins("assign", {"X": x}, out="X0")
    twins("cast", {"X": x}, in_dtype="float64", out_dtype="float64")
