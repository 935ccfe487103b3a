"""gather: rows of a tensor by their numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, kernel, op
from fluidnb_kernels.tensor import row_indexing
from fluidnb_kernels.tensor.strided_copy import fill

Array = Any


def _infer(c: Context) -> None:
    x, index, axis = c["X"], c["Index"], c.attr("axis", 0)
    c.require(
        index.ndim == 1 or index.ndim == 2 and index.shape[1] in (1, -1), "Index of gather must be a list of numbers.",
        expected="shape [n] or [n, 1]", received=f"shape {list(index.shape)}",
    )  # fmt: skip
    c.require(
        np.dtype(index.dtype).kind == "i", "Index of gather must hold integers.",
        expected="int32 or int64", received=np.dtype(index.dtype).name,
    )  # fmt: skip
    c.require(
        0 <= axis < x.ndim, "Attr(axis) of gather must name a dimension of X.",
        expected=f"0 to {x.ndim - 1}", received=axis,
    )  # fmt: skip
    c.set("Out", (*x.shape[:axis], index.shape[0], *x.shape[axis + 1 :]), x.dtype)


def add_rows(total: Array, index: Array, rows: Array, axis: int) -> None:
    """Add rows to those of the total that an index names, as often as it names them.

    Args:
        index: int [n].

    Example:
        >>> total = np.zeros(3)
        >>> add_rows(total, np.array([2, 0, 2]), np.ones(3), 0)
        >>> total
        array([1., 0., 2.])
    """
    np.add.at(np.moveaxis(total, axis, 0), index, np.moveaxis(rows, axis, 0))


def row(x: Array, index: Array, out: Array) -> None:
    """Copy one row; for a number or a few of them numpy needs a third of the time of ``take``.

    Args:
        index: int [], which row; negative ones count from the end.

    Example:
        >>> out = np.zeros(2)
        >>> row(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array(1), out)
        >>> out
        array([3., 4.])
    """
    out[()] = x[index]


@op(
    "gather",
    inputs={"X": "at least one dimension", "Index: int[n] | int[n, 1]": "indices of rows"},
    outputs={"Out": "those rows, in the order of Index"},
    attrs={
        "axis": Attr("int", 0, "the dimension whose elements are the rows"),
        "overwrite": Attr("bool", True, "accepted for old programs: gradients of a row taken twice always add up"),
    },
    infer=_infer,
    grad=default_grad("X", "Index", "Out@GRAD", wrt=["X"]),
)
def gather(b: Binder) -> None:
    """Out[i] = X[Index[i]], along ``axis``.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("gather", {"X": [1.0, 2.0, 3.0], "Index": np.array([2, 0])})["Out"]
        array([3., 1.])

    Source: Fluid's gather_op.
    """
    x, index, out, axis = b["X"], b["Index"], b["Out"], b.attr("axis")
    if index.size == 1 and axis == 0:
        b(row, x, index.reshape(()), out[0, ...])
    else:
        b(np.ndarray.take, x, index.reshape(-1), axis, out)


@grad_op("gather_grad", dtype_slot="X")
def gather_grad(b: Binder) -> None:
    """dX = 0, with each row of dOut added where it came from."""
    dx = b["X@GRAD"]
    b(np.copyto, dx, b.const(0, dx.dtype))
    b(add_rows, dx, b["Index"].reshape(-1), b["Out@GRAD"], b.attr("axis", 0))


def sides(shape: tuple[int, ...], axis: int) -> tuple[int, int, int]:
    """The product of sizes before a dimension, its size, and the product after it.

    Example:
        >>> sides((2, 3, 4, 5), 1)
        (2, 3, 20)
    """
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


@kernel("gather", place="cuda")
def _gather_on_cuda(b: Binder) -> None:
    x = b["X"]
    row_indexing.take(b, x, b["Index"], b["Out"], sides(x.shape, b.attr("axis")), back=True)


@kernel("gather_grad", place="cuda", dtypes=row_indexing.SUMMED)
def _gather_grad_on_cuda(b: Binder) -> None:
    dx = b["X@GRAD"]
    fill(b, dx)
    row_indexing.add(b, b["Out@GRAD"], b["Index"], dx, sides(dx.shape, b.attr("axis", 0)), back=True)
