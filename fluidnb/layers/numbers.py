"""Variables of evenly spaced numbers, zeros, diagonals and random numbers; sizes may be variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidnb.layers.creation import assign, fill_constant
from fluidnb.layers.one_op import one_op
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming
from fluidnb.values import dtypes

__all__ = [
    "diag", "gaussian_random_batch_size_like", "linspace", "range", "sampling_id", "uniform_random_batch_size_like",
    "zeros_like",
]  # fmt: skip


def _number(value: Variable | float, dtype: Any) -> Variable:
    return value if isinstance(value, Variable) else fill_constant([1], dtype, value)


@naming.layer
def range(start: Variable | float, end: Variable | float, step: Variable | float, dtype: Any) -> Variable:
    """Evenly spaced numbers: start, start + step, … before end.

    Args:
        start: the first number, or a variable of shape [1].
        end: the bound, not reached.
        step: the distance, not 0.
        dtype: their dtype.

    Returns:
        [n], as many as there are when the program runs; no gradient passes.

    Example:
        >>> fluid.layers.range(0, 10, 2, "int64").shape
        (-1,)
    """
    inputs = {slot: _number(v, dtype) for slot, v in (("Start", start), ("End", end), ("Step", step))}
    return one_op("range", inputs, dtype=dtype, stop_gradient=True)


@naming.layer
def linspace(start: Variable | float, stop: Variable | float, num: Variable | int, dtype: Any) -> Variable:
    """Evenly spaced numbers from start to stop, both included.

    Args:
        start: the first number, or a variable of shape [1].
        stop: the last number.
        num: how many; or an int32 variable.
        dtype: their dtype.

    Returns:
        [num]; no gradient passes.

    Example:
        >>> fluid.layers.linspace(0.0, 1.0, 5, "float32").shape
        (-1,)
    """
    inputs = {"Start": _number(start, dtype), "Stop": _number(stop, dtype), "Num": _number(num, "int32")}
    return one_op("linspace", inputs, {"dtype": int(dtypes.var_type(dtype))}, dtype=dtype, stop_gradient=True)


@naming.layer
def zeros_like(x: Variable, out: Variable | None = None) -> Variable:
    """Zeros of the shape of a tensor.

    Args:
        x: says shape and dtype.
        out: an existing variable to write; None makes one.

    Returns:
        Shape, dtype and LoD of ``x``; no gradient passes.

    Example:
        >>> fluid.layers.zeros_like(fluid.layers.data("x", [3])).shape
        (-1, 3)
    """
    return one_op("fill_zeros_like", {"X": x}, out=out, stop_gradient=True)


@naming.layer
def diag(diagonal: Variable | np.ndarray[Any, Any]) -> Variable:
    """A square matrix with given numbers on its diagonal, 0 elsewhere.

    Args:
        diagonal: [n], a variable or an array.

    Returns:
        [n, n].

    Raises:
        OpValueError: there is more than one axis.

    Example:
        >>> fluid.layers.diag(fluid.layers.fill_constant([3], "float32", 2.0)).shape
        (3, 3)
    """
    return one_op("diag", {"Diagonal": assign(diagonal) if isinstance(diagonal, np.ndarray) else diagonal})


@naming.layer
def uniform_random_batch_size_like(
    input: Variable,
    shape: Sequence[int],
    dtype: Any = "float32",
    input_dim_idx: int = 0,
    output_dim_idx: int = 0,
    min: float = -1.0,
    max: float = 1.0,
    seed: int = 0,
) -> Variable:
    """Independent draws between two numbers, as many rows as a batch has.

    Args:
        input: has the batch size; with sequences their number counts.
        shape: the sizes; the one that is copied may be -1.
        dtype: a floating dtype.
        input_dim_idx: axis of the input whose size is copied.
        output_dim_idx: axis of the result that gets it.
        min: lower bound.
        max: upper bound.
        seed: another number than 0 gives the same draws at every run.

    Returns:
        The draws; no gradient passes.

    Example:
        >>> fluid.layers.uniform_random_batch_size_like(fluid.layers.data("x", [3]), shape=[-1, 5]).shape
        (-1, 5)
    """
    attrs = _like(shape, dtype, input_dim_idx, output_dim_idx, seed) | {"min": float(min), "max": float(max)}
    return one_op("uniform_random_batch_size_like", {"Input": input}, attrs, dtype=dtype, stop_gradient=True)


@naming.layer
def gaussian_random_batch_size_like(
    input: Variable,
    shape: Sequence[int],
    input_dim_idx: int = 0,
    output_dim_idx: int = 0,
    mean: float = 0.0,
    std: float = 1.0,
    seed: int = 0,
    dtype: Any = "float32",
) -> Variable:
    """Independent normal draws, as many rows as a batch has.

    Args:
        input: has the batch size; with sequences their number counts.
        shape: the sizes; the one that is copied may be -1.
        input_dim_idx: axis of the input whose size is copied.
        output_dim_idx: axis of the result that gets it.
        mean: the mean.
        std: the standard deviation.
        seed: another number than 0 gives the same draws at every run.
        dtype: a floating dtype.

    Returns:
        The draws; no gradient passes.

    Example:
        >>> fluid.layers.gaussian_random_batch_size_like(fluid.layers.data("x", [3]), shape=[-1, 5]).shape
        (-1, 5)
    """
    attrs = _like(shape, dtype, input_dim_idx, output_dim_idx, seed) | {"mean": float(mean), "std": float(std)}
    return one_op("gaussian_random_batch_size_like", {"Input": input}, attrs, dtype=dtype, stop_gradient=True)


def _like(shape: Sequence[int], dtype: Any, source: int, target: int, seed: int) -> dict[str, Any]:
    return {
        "shape": list(shape), "dtype": int(dtypes.var_type(dtype)), "input_dim_idx": source, "output_dim_idx": target,
        "seed": seed,
    }  # fmt: skip


@naming.layer
def sampling_id(x: Variable, min: float = 0.0, max: float = 1.0, seed: int = 0, dtype: Any = "float32") -> Variable:
    """A class for each row, drawn with the row's own probabilities.

    Args:
        x: probabilities [N, classes].
        min: lower bound of the numbers that choose.
        max: their upper bound.
        seed: another number than 0 gives the same draws at every run.
        dtype: kept for old scripts; the classes are int64.

    Returns:
        Int64 [N]; no gradient passes.

    Raises:
        OpValueError: there are not two axes.

    Example:
        >>> fluid.layers.sampling_id(fluid.layers.data("p", [10])).shape
        (-1,)
    """
    attrs = {"min": float(min), "max": float(max), "seed": seed}
    return one_op("sampling_id", {"X": x}, attrs, dtype="int64", stop_gradient=True)
