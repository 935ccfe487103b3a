"""Formulas of kernels: which calls they emit, in which order, and into which arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb_kernels.arithmetic import values


class Recorder:
    """A binder that runs calls at once and remembers the names of their functions."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []

    def __call__(self, function: Any, *args: Any, **kw: Any) -> None:
        self.calls.append((function.__name__, kw.get("out", args[-1])))
        function(*args, **kw)

    def tmp(self, shape: Any, dtype: Any) -> Any:
        return np.full(shape, np.nan).astype(dtype)

    def like(self, x: Any, dtype: Any = None) -> Any:
        return np.zeros(x.shape, dtype or x.dtype)

    def const(self, value: Any, dtype: Any) -> Any:
        return np.array(value, dtype)

    def attr(self, name: str, default: Any = None) -> Any:
        return {"alpha": 0.5}.get(name, default)

    def __getitem__(self, slot: str) -> Any:
        return np.full(2, 7.0, np.float32)

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.calls]


def formula(*numbers: float) -> tuple[Any, Any]:
    b: Any = Recorder()
    return b, values(b, np.array(numbers, np.float32))[0]


def test_each_function_is_one_call_and_the_last_writes_the_output() -> None:
    b, x = formula(3.0, -1.0)
    out = np.zeros(2, np.float32)
    (x / (1 + abs(x))).into(out)
    assert b.names == ["absolute", "add", "divide"]
    assert b.calls[-1][1] is out and b.calls[0][1] is not out
    assert out.tolist() == [0.75, -0.5]


def test_numbers_become_constants_of_the_dtype_beside_them() -> None:
    _, x = formula(1.0)
    assert (x * 0.1).array.dtype == np.float32
    assert (x > 0.5).array.dtype == bool


def test_an_assignment_works_in_place() -> None:
    b, x = formula(1.0, 2.0)
    t = x * 2
    first = t.array
    t += 1
    np.exp(t, out=t)
    assert t.array is first
    assert b.names == ["multiply", "add", "exp"]
    assert np.array_equal(first, np.exp(np.array([3, 5], np.float32)))


def test_calls_keep_the_order_of_the_formula() -> None:
    _, x = formula(2.0)
    t = x * 3
    before = t - 1  # not read until t has changed
    t += 10
    assert (t / before).array.tolist() == [np.float32(16) / np.float32(5)]


def test_a_value_that_is_already_computed_is_copied() -> None:
    b, x = formula(2.0)
    t = x + 1
    assert t.array.tolist() == [3.0]
    out = np.zeros(1, np.float32)
    t.into(out)
    assert out.tolist() == [3.0] and b.names == ["add", "copyto"]


def test_masks_sums_functions_and_operands_of_the_operator() -> None:
    _, x = formula(-1.0, 4.0)
    t = x * x.attr("alpha")
    t.put(9, x < 0)
    assert t.array.tolist() == [9.0, 2.0]
    assert x.sum(0).array.tolist() == [3.0] and x.reduced(np.maximum, (-1,)).array.tolist() == [4.0]
    assert x.slot("Out").array.tolist() == [7.0, 7.0]

    def twice(source: Any, target: Any) -> None:
        target[...] = 2 * source

    assert (x.through(twice) + 1).array.tolist() == [-1.0, 9.0]
