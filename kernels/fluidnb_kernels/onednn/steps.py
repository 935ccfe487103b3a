"""Calls of numpy's functions as steps that oneDNN makes of each element of a result."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fluidnb.memory import root
from fluidnb.op import Array
from fluidnb_kernels.onednn.library import (
    ADD,
    CLIP,
    DIVIDE,
    HARD_SWISH,
    LARGER,
    LINEAR,
    MULTIPLY,
    RELU,
    SMALLER,
    SUBTRACT,
    Step,
    address,
)

#: Functions of two elements, and whether these may change places.
_FUNCTIONS: dict[Any, tuple[int, bool]] = {
    np.add: (ADD, True), np.multiply: (MULTIPLY, True), np.maximum: (LARGER, True), np.minimum: (SMALLER, True),
    np.divide: (DIVIDE, False), np.subtract: (SUBTRACT, False),
}  # fmt: skip
_LARGEST = float(np.finfo(np.float32).max)


#: A function, its positional arguments, its keyword arguments.
_Call = tuple[Any, tuple[Any, ...], dict[str, Any]]


class Found(NamedTuple):
    """A step of what is computed of an array."""

    step: Step
    operand: Array | None  # the array of its other operand; None: a number
    out: Array  # what it writes
    calls: int = 1  # how many calls it stands for


def step_of(array: Array, calls: Sequence[_Call]) -> Found | None:
    """The step of what is computed of an array that the first of some calls are; None where they are none.

    The other operand is a number, one for each channel, or as large as the array and in the same order of memory.
    """
    return _hard_swish(array, calls) or _one_call(array, calls[0])


def _hard_swish(array: Array, calls: Sequence[_Call]) -> Found | None:
    """x * min(max(x + offset, 0), top) / top, whose five calls read x twice."""
    functions = [function for function, _, _ in calls[:5]]
    if functions != [np.add, np.maximum, np.minimum, np.multiply, np.divide]:
        return None
    (x, offset, t), *held, (gate, again, product), (dividend, divisor, out) = map(_operands, calls[:5])
    (_, zero, _), (_, top, _) = held
    if not (_same(x, array) and _same(again, array) and _same(dividend, product) and _like(out, array)):
        return None
    if not all(_same(y, t) for y in (gate, held[0][0], held[0][2], held[1][0], held[1][2])):
        return None
    start, low, high, scale = map(_number, (offset, zero, top, divisor))
    if start is None or low != 0 or not high or high < 0 or high != scale:
        return None
    return Found(Step(HARD_SWISH, (1 / high, start / high)), None, out, 5)


def _one_call(array: Array, call: _Call) -> Found | None:
    """A step that is one call."""
    function = call[0]
    if type(function) is not np.ufunc or function not in _FUNCTIONS:
        return None
    code, commutes = _FUNCTIONS[function]
    one, other, out = _operands(call)
    if commutes and not _same(one, array):
        one, other = other, one
    if not _same(one, array) or not isinstance(other, np.ndarray) or other.dtype != np.float32:
        return None
    if not _like(out, array) or root(other) is root(array) and np.may_share_memory(other, array):
        return None  # what the step is of is not stored
    number = _number(other)
    if number is not None:
        return Found(_with_number(function, number), None, out)
    shape = (1,) * (array.ndim - other.ndim) + other.shape
    channels = shape[1]
    if shape == (1, channels, *[1] * (array.ndim - 2)) and channels in (1, array.shape[1]) and other.flags.c_contiguous:
        strides = tuple(4 if axis == 1 else 4 * channels for axis in range(array.ndim))
        return Found(Step(code, shape=shape, strides=strides), other, out)
    if other.shape == array.shape and other.strides == array.strides:
        return Found(Step(code, shape=other.shape, strides=other.strides), other, out)
    return None


def _operands(call: _Call) -> tuple[Any, Any, Any]:
    """The two operands and the result of a call of a function of two elements; None for all where it is none."""
    _, args, kw = call
    if len(args) + len(kw) != 3 or set(kw) - {"out"}:
        return None, None, None
    one, other, out = *args, *kw.values()
    return one, other, out


def _number(operand: Any) -> float | None:
    """The number that all elements of a constant are; None where they differ, or may be written."""
    if not isinstance(operand, np.ndarray) or operand.flags.writeable or not operand.size:
        return None
    first = operand.flat[0]
    return float(first) if (operand == first).all() else None


def _like(out: Any, array: Array) -> bool:
    """Whether a result has the shape and the order of memory of an array, in float32."""
    ours = isinstance(out, np.ndarray) and out.dtype == np.float32
    return ours and out.shape == array.shape and out.strides == array.strides


def _with_number(function: Any, number: float) -> Step:
    """A function of an element and a constant."""
    if function is np.maximum:
        return Step(RELU) if number == 0 else Step(CLIP, (number, _LARGEST))
    if function is np.minimum:
        return Step(CLIP, (-_LARGEST, number))
    if function is np.divide:
        return Step(LINEAR, (1 / number if number else np.inf, 0.0))
    return Step(LINEAR, (number, 0.0) if function is np.multiply else (1.0, number if function is np.add else -number))


def _same(x: Any, array: Array) -> bool:
    """Whether two arrays are the same elements of memory; before they are placed, all have one address."""
    same = isinstance(x, np.ndarray) and x.shape == array.shape and x.strides == array.strides
    return same and root(x) is root(array) and address(x) == address(array)
