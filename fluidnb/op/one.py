"""One element: numpy computes with two numbers in a third of the time that a ufunc takes for two arrays of one.

Loops count, compare and add up in such arrays. The results are the same to the bit: the arithmetic is C's both times.
"""

from __future__ import annotations

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


_FLOATS = frozenset(map(np.dtype, ("float32", "float64")))
_NUMBERS = _FLOATS | frozenset(map(np.dtype, ("int32", "int64")))
_BOOL = np.dtype(bool)

_ARITHMETIC: dict[Any, Callable[..., None]] = {np.add: _add, np.subtract: _subtract, np.multiply: _multiply}
_TESTS: dict[Any, Callable[..., None]] = {
    np.less: _less, np.less_equal: _less_equal, np.greater: _greater, np.greater_equal: _greater_equal,
    np.equal: _equal, np.not_equal: _not_equal,
}  # fmt: skip


def on_one(ufunc: Any, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]] | None:
    """The quick way to a ufunc of two operands that writes one element; its output may be one of the operands.

    Args:
        ufunc: the function.
        args: both operands and the output.

    Returns:
        A function and its arguments, views of those given; None where there is no quicker way.

    Example:
        >>> x = np.ones(1)
        >>> function, args = on_one(np.add, (x, np.ones(()), x))
        >>> function(*args); x
        array([2.])
        >>> on_one(np.exp, (x, x)) is on_one(np.add, (x, np.ones(2), np.ones(2))) is None
        True
    """
    if len(args) != 3 or not all(type(a) is np.ndarray and a.size == 1 for a in args):
        return None
    x, y, out = (a.dtype for a in args)
    found = None
    if x == y and x in _NUMBERS:
        if out == x:
            found = _divide if ufunc is np.divide and x in _FLOATS else _ARITHMETIC.get(ufunc)
        elif out == _BOOL:
            found = _TESTS.get(ufunc)
    return None if found is None else (found, tuple(a.reshape(()) for a in args))


def assign(target: Array, source: Array) -> tuple[Any, tuple[Any, ...]]:
    """The quickest way to copy an array into another of its shape.

    Args:
        target: what is written.
        source: what is read.

    Returns:
        A function and its arguments.

    Example:
        >>> x = np.zeros((1, 1))
        >>> function, args = assign(x, np.ones((1, 1)))
        >>> function(*args); x
        array([[1.]])
    """
    if target.size == 1 == source.size:
        return operator.setitem, (target.reshape(()), (), source.reshape(()))
    return operator.setitem, (target, ..., source)
