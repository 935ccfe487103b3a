"""Calls of numpy's functions as steps that oneDNN makes of each element of a result."""

from typing import Any, NamedTuple

import numpy as np

from fluidnb.op import Array
from fluidnb_kernels.onednn.library import (
    ADD,
    CLIP,
    DIVIDE,
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


class Found(NamedTuple):
    """A step, the array of its other operand (None: a number), and the array that it writes."""

    step: Step
    operand: Array | None
    out: Array


def step_of(array: Array, call: tuple[Any, tuple[Any, ...], dict[str, Any]]) -> Found | None:
    """A call as a step of what is computed of an array; None where it is none.

    The other operand is a number, one for each channel, or as large as the array and in the same order of memory.
    """
    function, args, kw = call
    if type(function) is not np.ufunc or function not in _FUNCTIONS or len(args) + len(kw) != 3 or set(kw) - {"out"}:
        return None
    code, commutes = _FUNCTIONS[function]
    operands: list[Any] = [*args, *kw.values()]
    one, other, out = operands
    if commutes and not _same(one, array):
        one, other = other, one
    if not _same(one, array) or not isinstance(other, np.ndarray) or other.dtype != np.float32:
        return None
    if out.shape != array.shape or out.strides != array.strides or out.dtype != np.float32:
        return None
    constant = not other.flags.writeable
    if constant and other.size and (other == other.flat[0]).all():
        return Found(_with_number(function, float(other.flat[0])), None, out)
    shape = (1,) * (array.ndim - other.ndim) + other.shape
    channels = shape[1]
    if shape == (1, channels, *[1] * (array.ndim - 2)) and channels in (1, array.shape[1]) and other.flags.c_contiguous:
        strides = tuple(4 if axis == 1 else 4 * channels for axis in range(array.ndim))
        return Found(Step(code, shape=shape, strides=strides), other, out)
    if other.shape == array.shape and other.strides == array.strides:
        return Found(Step(code, shape=other.shape, strides=other.strides), other, out)
    return None


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
    """Whether two arrays are the same elements of memory."""
    same = isinstance(x, np.ndarray) and x.shape == array.shape and x.strides == array.strides
    return same and address(x) == address(array)
