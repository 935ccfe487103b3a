"""Computing with one element: the same bits as numpy's ufuncs, in place or not."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.op import Binder, op, remove_op, same
from fluidnb.op.scalar_fast_path import assign, on_one
from fluidnb.testing import run_op

ARITHMETIC = (np.add, np.subtract, np.multiply, np.divide)
TESTS = (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal)


def numbers(dtype: str, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Numbers of a dtype, those at its edges among them."""
    if dtype.startswith("int"):
        info = np.iinfo(dtype)
        return np.array([0, 1, -1, 7, info.min, info.max, *rng.integers(info.min, info.max, 6)], dtype)
    special = [0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, np.finfo(dtype).max, np.finfo(dtype).tiny / 8]
    return np.array([*special, *rng.normal(size=6)], dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("ufunc", ARITHMETIC + TESTS, ids=lambda u: u.__name__)
def test_the_same_bits_as_the_ufunc(ufunc: Any, dtype: str, rng: np.random.Generator) -> None:
    result = bool if ufunc in TESTS else dtype
    for a, b in itertools.product(numbers(dtype, rng), repeat=2):
        x, y, out = np.array([a]), np.array([[b]]), np.empty((1, 1), result)
        call = on_one(ufunc, (x, y, out))
        if ufunc is np.divide and dtype.startswith("int"):
            assert call is None
            continue
        assert call is not None
        with np.errstate(all="ignore"):  # as in every run
            call[0](*call[1])
            assert out.tobytes() == np.array(ufunc(x, y), result).tobytes(), (a, b)
            if result == dtype:
                function, args = on_one(ufunc, (x, y, x)) or (None, ())
                assert function is not None
                function(*args)
                assert x.tobytes() == out.tobytes()


@pytest.mark.parametrize(
    ("ufunc", "shapes", "dtypes"),
    [
        (np.add, [(2,), (2,), (2,)], "fff"),
        (np.add, [(1,), (2,), (2,)], "fff"),
        (np.add, [(1,), (1,), (1,)], "fdd"),
        (np.add, [(1,), (1,), (1,)], "ffd"),
        (np.less, [(1,), (1,), (1,)], "fff"),
        (np.add, [(1,), (1,), (1,)], "eee"),
        (np.add, [(1,), (1,), (1,)], "???"),
        (np.power, [(1,), (1,), (1,)], "fff"),
        (np.exp, [(1,), (1,)], "ff"),
    ],
)
def test_anything_else_is_left_to_the_ufunc(ufunc: Any, shapes: list[tuple[int, ...]], dtypes: str) -> None:
    assert on_one(ufunc, tuple(np.ones(s, t) for s, t in zip(shapes, dtypes, strict=True))) is None
    assert on_one(np.add, (np.ones(1), 1.0, np.ones(1))) is None


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (3,), (0,), (2, 3)])
def test_an_assignment_copies(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    target, source = np.zeros(shape), np.array(rng.random(shape))
    function, args = assign(target, source)
    function(*args)
    assert (target == source).all()


@pytest.mark.parametrize("machine", [False, True])
def test_a_counter_counts_in_its_own_memory(machine: bool) -> None:
    program = fluid.default_main_program()
    x = fluid.layers.data("x", [1], append_batch_size=False)
    for type, attrs in (("scale", {"scale": 3.0, "bias": 1.0}), ("exp", {}), ("increment", {"step": 2.0})):
        program.global_block().append_op(type, {"X": x}, {"Out": x}, attrs)
    y = fluid.layers.scale(x)
    exe = fluid.Executor(fluid.CPUPlace())
    for value in (0.5, -1.0):
        found = exe.run(feed={"x": np.full(1, value, "float32")}, fetch_list=[y], keep_scopes=machine)[0]
        assert found == np.exp(np.float32(3 * value + 1)) + np.float32(2)


def test_a_kernel_that_works_in_place_in_several_steps() -> None:
    @op("test_one_steps", inputs={"X": "any shape"}, outputs={"Out": "(exp(X) + 1)²"}, infer=same(), inplace=True)
    def steps(b: Binder) -> None:
        """Out = (exp(X) + 1)²."""
        out = b["Out"]
        b(np.exp, b["X"], out=out)
        b(np.add, out, b.const(1, out.dtype), out=out)
        b(np.multiply, out, out, out=out)
        b(np.maximum, out, b.const(0, out.dtype), out=out)

    try:
        x = fluid.layers.data("x", [1], append_batch_size=False)
        fluid.default_main_program().global_block().append_op("test_one_steps", {"X": x}, {"Out": x})
        exe = fluid.Executor(fluid.CPUPlace())
        found = exe.run(feed={"x": np.zeros(1, "float32")}, fetch_list=[x])[0]
        assert found == 4 == run_op("test_one_steps", {"X": np.zeros(1)})["Out"]
    finally:
        remove_op("test_one_steps")
