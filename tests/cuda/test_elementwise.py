"""Arithmetic of two tensors on the emulator beyond the cases of its OpTests: every dtype, every way in which operands
are repeated, sums that several blocks share, and whole numbers that numpy treats with care."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fluidnb.op import OpDesc, check_desc, get_op
from fluidnb.runtime import Scope
from fluidnb.values import LoDTensor
from fluidnb_kernels import emulator
from fluidnb_kernels.elementwise.broadcast import alike, band, merged
from tests.cuda.twins import has_kernel, run_twins
from tests.tools.sampling import sample

pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())

SMOOTH = ("add", "sub", "mul", "div", "max", "min", "pow")
#: name -> shapes of X and Y, and the axis
SHAPES = {
    "same": ((7, 37), (7, 37), -1),
    "bias": ((5, 16), (16,), -1),
    "odd_bias": ((5, 19), (19,), -1),
    "channel": ((3, 5, 2, 8), (5,), 1),
    "odd_channel": ((3, 5, 7), (5,), 1),
    "head": ((9, 13), (9,), 0),
    "number": ((5, 13), (1,), -1),
    "numbers": ((1,), (1,), -1),
    "few": ((5,), (1,), -1),
    "both": ((4, 1, 6), (5, 1), -1),
    "long_both": ((1, 40), (3, 1), -1),
    "wider": ((3,), (70, 3), -1),
    "six": ((2, 1, 3, 1, 2, 1), (1, 2, 1, 3, 1, 2), -1),
    "seven": ((2, 1, 3, 1, 2, 1, 2), (1, 2, 1, 3, 1, 2, 1), -1),
    "none": ((0, 3), (3,), -1),
    "none_of_both": ((1, 3), (0, 1), -1),
}  # fmt: skip
CASES = [(name, how) for name in (*SMOOTH, "floordiv", "mod") for how in SHAPES]
SLOPES = [(name, how) for name in SMOOTH for how in SHAPES]

HALVES = [case for case in SLOPES if case[0] != "pow"]


def numbers(shape: tuple[int, ...], dtype: Any, seed: int) -> np.ndarray[Any, Any]:
    """Positive numbers; small whole ones for dtypes of whole numbers."""
    drawn = np.random.default_rng((seed, *shape)).uniform(0.5, 4.0, shape)
    return drawn.astype(dtype)


def twins(type: str, inputs: dict[str, Any], outputs: dict[str, str], **attrs: Any) -> None:
    """Run an operator both ways."""
    desc = OpDesc(type, {slot: [slot.lower()] for slot in inputs}, {s: [n] for s, n in outputs.items()}, attrs)
    assert has_kernel(desc)
    if not get_op(type).is_grad:
        check_desc(get_op(type), desc)
    scope = Scope()
    for slot, value in inputs.items():
        scope.var(slot.lower()).value = LoDTensor(np.array(value))
    run_twins(desc, scope)


def forward(name: str, how: str, dtype: Any) -> None:
    """Run arithmetic both ways."""
    x, y, axis = SHAPES[how]
    twins(f"elementwise_{name}", {"X": numbers(x, dtype, 1), "Y": numbers(y, dtype, 2)}, {"Out": "out"}, axis=axis)


def backward(name: str, shapes: tuple[Any, Any, int], dtype: Any, wanted: str = "XY") -> None:
    """Run the gradient of arithmetic both ways."""
    x, y = numbers(shapes[0], dtype, 1), numbers(shapes[1], dtype, 2)
    seen = y.reshape(y.shape + (1,) * (x.ndim - y.ndim - shapes[2])) if shapes[2] >= 0 else y
    out = (x / seen).astype(dtype)
    inputs = {"X": x, "Y": y, "Out": out, "Out@GRAD": numbers(out.shape, dtype, 3) - np.array(2, dtype)}
    twins(f"elementwise_{name}_grad", inputs, {f"{slot}@GRAD": f"d{slot}" for slot in wanted}, axis=shapes[2])


@pytest.mark.parametrize(("name", "how"), sample(CASES, 24))
def test_single_precision(name: str, how: str) -> None:
    forward(name, how, np.float32)


@pytest.mark.parametrize(("name", "how"), sample(SLOPES, 24))
def test_gradients_in_single_precision(name: str, how: str) -> None:
    backward(name, SHAPES[how], np.float32)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["float16", "bfloat16"])
@pytest.mark.parametrize(("name", "how"), sample(HALVES, 8))
def test_half_precision(name: str, how: str, dtype: type) -> None:
    forward(name, how, dtype)
    backward(name, SHAPES[how], dtype)


@pytest.mark.parametrize("dtype", [np.int32, np.int64], ids=["int32", "int64"])
@pytest.mark.parametrize("name", [*SMOOTH, "floordiv", "mod"])
def test_whole_numbers(name: str, dtype: type) -> None:
    x = np.array([7, -7, 6, 0, -1, 5, np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)[:, None]
    y = np.array([2, 3, 1, 7, 4] if name == "pow" else [2, -2, 3, 0, -1], dtype)[None]
    twins(f"elementwise_{name}", {"X": x, "Y": y}, {"Out": "out"}, axis=-1)


@pytest.mark.parametrize("name", ["floordiv", "mod", "max", "min", "div"])
def test_numbers_that_are_none_or_have_none_before_them(name: str) -> None:
    x = np.array([np.nan, np.inf, 0.0, -0.0, 5.5, -5.5, 1e30, 6.0], np.float32)[:, None]
    y = np.array([np.nan, 2.0, -2.0, 0.0, 0.1, -np.inf], np.float32)[None]
    twins(f"elementwise_{name}", {"X": x, "Y": y}, {"Out": "out"}, axis=-1)


@pytest.mark.parametrize("name", ["sub", "pow"])
def test_in_place(name: str) -> None:
    for shape in ((4, 9), (9,)):
        x, y = numbers((4, 9), np.float32, 1), numbers(shape, np.float32, 2)
        twins(f"elementwise_{name}", {"X": x, "Y": y}, {"Out": "x"}, axis=-1)


@pytest.mark.parametrize("wanted", ["X", "Y"])
@pytest.mark.parametrize("how", ["same", "bias", "channel", "both"])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_one_gradient_alone(name: str, how: str, wanted: str) -> None:
    backward(name, SHAPES[how], np.float64, wanted)


@pytest.mark.parametrize(
    "shapes",
    [
        ((700, 20), (20,), -1),
        ((2, 3, 2100), (3,), 1),
        ((2100, 4), (4,), -1),
        ((70, 70), (1,), -1),
        ((3, 70, 2), (3, 1, 2), -1),
        ((2, 1), (2, 300), -1),
    ],
    ids=["columns", "bands", "few_columns", "one", "a_block_each", "x_is_repeated"],
)
def test_sums_that_threads_share(shapes: tuple[Any, Any, int]) -> None:
    for name in ("sub", "mul"):
        backward(name, shapes, np.float32)


@pytest.mark.parametrize("given", [("DDX", "DDY"), ("DDX",), ("DDY",), ()], ids=["both", "x", "y", "none"])
@pytest.mark.parametrize("how", ["same", "channel", "both", "wider"])
@pytest.mark.parametrize("name", ["add", "sub", "mul"])
def test_gradients_of_gradients(name: str, how: str, given: tuple[str, ...]) -> None:
    (x, y, axis), rng = SHAPES[how], np.random.default_rng(5)
    aligned_y = y + (1,) * (len(x) - len(y) - axis) if axis >= 0 else y
    shapes = {"X": x, "Y": y, "DOut": np.broadcast_shapes(x, aligned_y), "DDX": x, "DDY": y}
    wanted = [*(("X", "Y") if name == "mul" else ("Y",)), "DOut", *given]
    outputs = {"DDOut": "ddout", **({"X@GRAD": "dx", "Y@GRAD": "dy"} if name == "mul" else {})}
    inputs = {slot: rng.normal(size=shapes[slot]) for slot in wanted}
    twins(f"elementwise_{name}_grad_grad", inputs, outputs, axis=axis)


def test_what_counts_as_a_band() -> None:
    assert alike(merged((2, 1, 3), (2, 1, 3), (2, 1, 3)))
    assert band(merged((2, 3, 4, 5), (1, 3, 1, 1), (2, 3, 4, 5))) == (2, 3, 20)
    assert band(merged((2, 3, 4), (2, 3, 1), (2, 3, 4))) == (1, 6, 4)
    assert band(merged((2, 3), (1, 1), (2, 3))) == (1, 1, 6)
    assert band(merged((1, 3), (2, 3), (2, 3))) is None
    assert band(merged((2, 3, 4), (2, 1, 4), (2, 3, 4))) is None
