"""One element: numpy computes with two numbers in a third of the time that a ufunc takes for two arrays of one.

Loops count, compare and add up in such arrays. The results are the same to the bit: the arithmetic is C's both times.
"""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

Array = Any


def _add(x: Array, y: Array, out: Array) -> None:
    out[()] = x[()] + y[()]


def _subtract(x: Array, y: Array, out: Array) -> None:
    out[()] = x[()] - y[()]


def _multiply(x: Array, y: Array, out: Array) -> None:
    out[()] = x[()] * y[()]


def _divide(x: Array, y: Array, out: Array) -> None:
    out[()] = x[()] / y[()]


def _less(x: Array, y: Array, out: Array) -> None:
    out[()] = x[()] < y[()]


def _less_equal(x: Array, y: Array, out: Array) -> None:
    out[()] = x[()] <= y[()]


def _greater(x: Array, y: Array, out: Array) -> None:
    out[()] = x[()] > y[()]


def _greater_equal(x: Array, y: Array, out: Array) -> None:
    out[()] = x[()] >= y[()]


def _equal(x: Array, y: Array, out: Array) -> None:
    out[()] = x[()] == y[()]


def _not_equal(x: Array, y: Array, out: Array) -> None:
    out[()] = x[()] != y[()]


_ARITHMETIC = {np.add: _add, np.subtract: _subtract, np.multiply: _multiply, np.divide: _divide}
_TESTS = {
    np.less: _less, np.less_equal: _less_equal, np.greater: _greater, np.greater_equal: _greater_equal,
    np.equal: _equal, np.not_equal: _not_equal,
}  # fmt: skip
#: Function of one element -> the ufunc whose result it gives.
UFUNCS: dict[Any, np.ufunc] = {f: u for u, f in (*_ARITHMETIC.items(), *_TESTS.items())}
#: ufunc -> type characters of both operands and the output, as numpy writes them -> function. A ufunc divides whole
#: numbers into floats.
_FUNCTIONS: dict[Any, dict[str, Callable[[Array, Array, Array], None]]] = {
    **{u: {3 * char: f for char in ("fd" if u is np.divide else "fdil")} for u, f in _ARITHMETIC.items()},
    **{u: {2 * char + "?": f for char in "fdil"} for u, f in _TESTS.items()},
}


def on_one(ufunc: Any, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]] | None:
    """A faster call than a ufunc of two operands that writes one element; its output may be one of the operands.

    Returns:
        A function and its arguments, views of ``args``; None where there is no faster call.
    """
    functions = _FUNCTIONS.get(ufunc)
    if functions is None or len(args) != 3:
        return None
    x, y, out = args
    if not (type(x) is type(y) is type(out) is np.ndarray and x.size == y.size == out.size == 1):
        return None
    function = functions.get(x.dtype.char + y.dtype.char + out.dtype.char)
    return None if function is None else (function, (x.reshape(()), y.reshape(()), out.reshape(())))


def copy_row(x: Array, index: Array, out: Array) -> None:
    """Copies one row; for a number or a few of them numpy needs a third of the time of ``take``."""
    out[()] = x[index]


def assign(target: Array, source: Array) -> tuple[Any, tuple[Any, ...]]:
    """The quickest way to copy an array into another of its shape."""
    if target.size == 1 == source.size:
        return operator.setitem, (target.reshape(()), (), source.reshape(()))
    return operator.setitem, (target, ..., source)
