"""gather: rows of a tensor by their numbers."""

from __future__ import annotations

import math

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op
from fluidnb_kernels import verbs
from fluidnb_kernels.tensor import row_indexing


def _infer(c: Context) -> None:
    x, index, axis = c["X"], c["Index"], c.attr("axis", 0)
    c.check_inputs()
    c.require(
        0 <= axis < x.ndim, "Attr(axis) of gather must name a dimension of X.",
        expected=f"0 to {x.ndim - 1}", received=axis,
    )  # fmt: skip
    c.set("Out", (*x.shape[:axis], index.shape[0], *x.shape[axis + 1 :]), x.dtype)


def add_rows(total: Array, index: Array, rows: Array, axis: int) -> None:
    """Add rows to those of the total that an index names, as often as it names them."""
    np.add.at(np.moveaxis(total, axis, 0), index, np.moveaxis(rows, axis, 0))


def row(x: Array, index: Array, out: Array) -> None:
    """Copy one row; for a number or a few of them numpy needs a third of the time of ``take``.

    Args:
        index: int [], which row; negative ones count from the end.
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
    cuda=True,
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
    if b.on_cuda:
        row_indexing.take(b, x, index, out, sides(x.shape, axis), back=True)
    elif index.size == 1 and axis == 0:
        b(row, x, index.reshape(()), out[0, ...])
    else:
        b(np.ndarray.take, x, index.reshape(-1), axis, out)


def sides(shape: tuple[int, ...], axis: int) -> tuple[int, int, int]:
    """The product of sizes before a dimension, its size, and the product after it."""
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def sum_back(b: Binder, g: Array, index: Array, dx: Array, axis: int) -> None:
    """Emit the gradient of rows that were taken: each added where it came from, on either place."""
    verbs.fill(b, dx)
    if b.on_cuda:
        row_indexing.add(b, g, index, dx, sides(dx.shape, axis), back=True)
    else:
        b(add_rows, dx, index.reshape(-1), g, axis)


def put_back(b: Binder, g: Array, index: Array, dx: Array, axis: int) -> None:
    """Emit the gradient of elements that were taken once along an axis: each where it came from, 0 elsewhere."""
    verbs.fill(b, dx)
    if b.on_cuda:
        row_indexing.along(b, "put", g, index, dx, dx, axis % dx.ndim)
    else:
        b(np.put_along_axis, dx, index, g, axis)


@grad_op("gather_grad", dtype_slot="X", cuda=row_indexing.SUMMED)
def gather_grad(b: Binder) -> None:
    """dX = 0, with each row of dOut added where it came from."""
    sum_back(b, b["Out@GRAD"], b["Index"], b["X@GRAD"], b.attr("axis", 0))
