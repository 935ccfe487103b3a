"""index_select, index_sample and masked_select: elements chosen by their numbers or by a mask."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, kernel, op
from fluidnb.values.copies import on_host
from fluidnb_kernels.emit import zeros
from fluidnb_kernels.rules import agree, one_axis, whole_numbers
from fluidnb_kernels.tensor import row_indexing
from fluidnb_kernels.tensor.gather import add_rows, sides
from fluidnb_kernels.tensor.strided_copy import fill

Array = Any


def _check(index: Array, size: int, type: str) -> None:
    if index.size and not (0 <= index.min() and index.max() < size):
        bad = index[(index < 0) | (index >= size)].ravel()[0]
        raise EnforceNotMet(
            f"Input(Index) of {type} names an element that does not exist.", expected=f"0 to {size - 1}",
            received=int(bad),
        )  # fmt: skip


def select(x: Array, index: Array, axis: int, out: Array) -> None:
    """Write elements along an axis by their numbers.

    Args:
        index: whole numbers [n].
        out: like ``x``, but n long along the axis; written.

    Raises:
        EnforceNotMet: a number is outside the axis.

    Example:
        >>> y = np.zeros(2); select(np.array([5.0, 7.0]), np.array([1, 1]), 0, y); y
        array([7., 7.])
    """
    _check(index, x.shape[axis], "index_select")
    x.take(index, axis, out, "clip")


def _axis(c: Context) -> int:
    return one_axis(c, c.attr("dim", 0), c["X"].ndim, "dim")


def _select_infer(c: Context) -> None:
    x, index, axis = c["X"], c["Index"], _axis(c)
    whole_numbers(c, "Index")
    c.require(
        index.ndim == 1, "Input(Index) of index_select must be a list of numbers.", expected="shape [n]",
        received=f"shape {list(index.shape)}",
    )  # fmt: skip
    c.set("Out", (*x.shape[:axis], index.shape[0], *x.shape[axis + 1 :]), x.dtype)


@op(
    "index_select",
    inputs={"X": "at least one dimension", "Index: int[n]": "which elements"},
    outputs={"Out": "like X, but n long along dim"},
    attrs={"dim": Attr("int", 0, "the dimension along which elements are chosen; from the end when negative")},
    infer=_select_infer,
    grad=default_grad("X", "Index", "Out@GRAD", wrt=["X"]),
    dtype_slot="X",
)
def index_select(b: Binder) -> None:
    """Out[..., i, ...] = X[..., Index[i], ...] along ``dim``.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("index_select", {"X": [[1.0, 2.0]], "Index": np.array([1, 0, 1])}, {"dim": 1})["Out"]
        array([[2., 1., 2.]])

    Source: Paddle's index_select_op.
    """
    b(select, b["X"], b["Index"], _axis(b), b["Out"])


@grad_op("index_select_grad", dtype_slot="X")
def index_select_grad(b: Binder) -> None:
    """dX = 0, with each element of dOut added where it came from."""
    dx = b["X@GRAD"]
    zeros(b, dx)
    b(add_rows, dx, b["Index"], b["Out@GRAD"], _axis(b))


def sample(x: Array, index: Array, out: Array) -> None:
    """Write elements of each row by their numbers in it.

    Args:
        x: [n, d].
        index: whole numbers [n, k].
        out: [n, k], written.

    Raises:
        EnforceNotMet: a number is outside its row.

    Example:
        >>> y = np.zeros((1, 2)); sample(np.array([[5.0, 7.0]]), np.array([[1, 1]]), y); y
        array([[7., 7.]])
    """
    _check(index, x.shape[1], "index_sample")
    out[...] = np.take_along_axis(x, index, 1)


def add_samples(total: Array, index: Array, values: Array) -> None:
    """Add values to the elements of each row that an index names, as often as it names them.

    Args:
        total: [n, d], changed.
        index: whole numbers [n, k].
        values: [n, k].

    Example:
        >>> x = np.zeros((1, 2)); add_samples(x, np.array([[1, 1]]), np.ones((1, 2))); x
        array([[0., 2.]])
    """
    np.add.at(total, (np.arange(len(total))[:, None], index), values)


def _sample_infer(c: Context) -> None:
    x, index = c["X"], c["Index"]
    whole_numbers(c, "Index")
    fits = x.ndim == index.ndim == 2 and agree(x.shape[:1], index.shape[:1])
    c.require(
        fits, "Input(Index) of index_sample must have a row of numbers for each row of X.",
        expected="X [n, d] and Index [n, k]", received=f"{list(x.shape)} and {list(index.shape)}",
    )  # fmt: skip
    c.set("Out", index.shape, x.dtype, c.lod("X"))


@op(
    "index_sample",
    inputs={"X: float[n, d]": "", "Index: int[n, k]": "which elements of each row"},
    outputs={"Out": "[n, k]"},
    infer=_sample_infer,
    grad=default_grad("X", "Index", "Out@GRAD", wrt=["X"]),
    dtype_slot="X",
)
def index_sample(b: Binder) -> None:
    """Out[i, j] = X[i, Index[i, j]].

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("index_sample", {"X": [[1.0, 2.0], [3.0, 4.0]], "Index": np.array([[1], [0]])})["Out"]
        array([[2.],
               [3.]])

    Source: Paddle's index_sample_op.
    """
    b(sample, b["X"], b["Index"], b["Out"])


@grad_op("index_sample_grad", dtype_slot="X")
def index_sample_grad(b: Binder) -> None:
    """dX = 0, with each element of dOut added where it came from."""
    dx = b["X@GRAD"]
    zeros(b, dx)
    b(add_samples, dx, b["Index"], b["Out@GRAD"])


def _chosen(c: Context) -> int:
    """How many elements the mask chooses."""
    return int(np.count_nonzero(on_host(c["Mask"])))


def _mask_infer(c: Context) -> None:
    x, mask = c["X"], c["Mask"]
    c.require(
        agree(x.shape, mask.shape) and np.dtype(mask.dtype) == bool, "Input(Mask) of masked_select must fit X.",
        expected=f"bool {list(x.shape)}", received=f"{np.dtype(mask.dtype).name} {list(mask.shape)}",
    )  # fmt: skip
    c.set("Y", (_chosen(c) if c.runtime else -1,), x.dtype)


def pick(x: Array, mask: Array, out: Array) -> None:
    """Write the elements that a mask chooses.

    Args:
        mask: bool, the same shape.
        out: [n], written.

    Example:
        >>> y = np.zeros(1); pick(np.array([5.0, 7.0]), np.array([False, True]), y); y
        array([7.])
    """
    out[...] = x[mask]


def put_back(out: Array, mask: Array, values: Array) -> None:
    """Write values where a mask holds.

    Args:
        mask: bool, the same shape.
        values: [n].

    Example:
        >>> x = np.zeros(2); put_back(x, np.array([False, True]), np.array([7.0])); x
        array([0., 7.])
    """
    out[mask] = values


@op(
    "masked_select",
    inputs={"X": "any shape", "Mask: bool": "the same shape"},
    outputs={"Y": "[n]: the elements for which Mask holds, in order"},
    infer=_mask_infer,
    grad=default_grad("X", "Mask", "Y@GRAD", wrt=["X"]),
    guard=_chosen,
    data_shape=True,
    dtype_slot="X",
)
def masked_select(b: Binder) -> None:
    """Y = the elements of X for which Mask holds.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("masked_select", {"X": [1.0, 2.0, 3.0], "Mask": np.array([True, False, True])})["Y"]
        array([1., 3.])

    Source: Paddle's masked_select_op.
    """
    b(pick, b["X"], b["Mask"], b["Y"])


@grad_op("masked_select_grad", dtype_slot="X")
def masked_select_grad(b: Binder) -> None:
    """dX = dY where Mask holds, 0 elsewhere."""
    dx = b["X@GRAD"]
    zeros(b, dx)
    b(put_back, dx, b["Mask"], b["Y@GRAD"])


@kernel("index_select", place="cuda")
def _select_on_cuda(b: Binder) -> None:
    row_indexing.take(b, b["X"], b["Index"], b["Out"], sides(b["X"].shape, _axis(b)))


@kernel("index_select_grad", place="cuda", dtypes=row_indexing.SUMMED)
def _select_grad_on_cuda(b: Binder) -> None:
    dx = b["X@GRAD"]
    fill(b, dx)
    row_indexing.add(b, b["Out@GRAD"], b["Index"], dx, sides(dx.shape, _axis(b)), back=True)


@kernel("index_sample", place="cuda")
def _sample_on_cuda(b: Binder) -> None:
    row_indexing.along(b, "taken", b["X"], b["Index"], b["Out"], b["X"], 1)


@kernel("index_sample_grad", place="cuda", dtypes=row_indexing.SUMMED)
def _sample_grad_on_cuda(b: Binder) -> None:
    dx = b["X@GRAD"]
    fill(b, dx)
    row_indexing.along(b, "added", b["Out@GRAD"], b["Index"], dx, dx, 1)


@kernel("masked_select", place="cuda")
def _mask_on_cuda(b: Binder) -> None:
    x, y = b["X"], b["Y"]
    row_indexing.take(b, x, row_indexing.places(b, b["Mask"], y.size), y, (1, x.size, 1))


@kernel("masked_select_grad", place="cuda")
def _mask_grad_on_cuda(b: Binder) -> None:
    dx, g = b["X@GRAD"], b["Y@GRAD"]
    fill(b, dx)
    flat = dx.reshape(-1)
    row_indexing.along(b, "put", g, row_indexing.places(b, b["Mask"], g.size), flat, flat, 0)
