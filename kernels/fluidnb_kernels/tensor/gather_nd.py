"""gather_nd and scatter_nd_add: parts of a tensor by several numbers each."""

from __future__ import annotations

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import Array, Binder, Context, default_grad, grad_op, op
from fluidnb.op.define import forward_of
from fluidnb_kernels import verbs
from fluidnb_kernels.rules import agree
from fluidnb_kernels.tensor import row_indexing
from fluidnb_kernels.tensor.scatter import updates_grad


def places(index: Array, shape: tuple[int, ...], type: str) -> tuple[Array, ...]:
    """An index as numpy takes it: an array for each of the first dimensions."""
    sizes = np.array(shape[: index.shape[-1]])
    outside = ((index < 0) | (index >= sizes)).any(-1)
    if outside.any():
        raise EnforceNotMet(
            f"Input(Index) of {type} names a place that does not exist.",
            expected=f"0 to {(sizes - 1).tolist()}", received=index[outside][0].tolist(),
        )  # fmt: skip
    return tuple(np.moveaxis(index, -1, 0))


def take_places(x: Array, index: Array, type: str, out: Array) -> None:
    """Write the parts that an index names."""
    out[...] = x[places(index, x.shape, type)]


def add_places(total: Array, index: Array, type: str, parts: Array) -> None:
    """Add parts to those that an index names, as often as it names them."""
    np.add.at(total, places(index, total.shape, type), parts)


def _taken(c: Context) -> tuple[int, ...]:
    """The shape of the parts that Index names in X."""
    x, index, type = c["X"], c["Index"], c.definition.type
    c.check_inputs("Index")
    depth = index.shape[-1] if index.ndim else 0
    c.require(
        0 < depth <= x.ndim, f"The last dimension of Input(Index) of {type} must say how many numbers name a part.",
        expected=f"1 to {x.ndim}, the rank of X", received=list(index.shape),
    )  # fmt: skip
    return (*index.shape[:-1], *x.shape[depth:])


def _take(b: Binder, x: Array, out: Array) -> None:
    """Emit the parts of ``x`` that Index names."""
    if b.on_cuda:
        rows, sides = row_indexing.parts(b, b["Index"], x.shape)
        row_indexing.take(b, x, rows, out, sides)
    else:
        index = b["Index"]
        shape = *index.shape[:-1], *x.shape[index.shape[-1] :]
        b(take_places, x, index, forward_of(b.definition).type, out.reshape(shape))


def _add(b: Binder, total: Array, parts: Array) -> None:
    """Emit ``parts`` added to those of ``total`` that Index names."""
    if b.on_cuda:
        rows, sides = row_indexing.parts(b, b["Index"], total.shape)
        row_indexing.add(b, parts, rows, total, sides)
    else:
        index = b["Index"]
        shape = *index.shape[:-1], *total.shape[index.shape[-1] :]
        b(add_places, total, index, forward_of(b.definition).type, parts.reshape(shape))


@op(
    "gather_nd",
    inputs={"X": "at least one dimension", "Index: int[…, d]": "d numbers for each part"},
    outputs={"Out": "[..., the other dimensions of X]: the parts"},
    infer=lambda c: c.set("Out", _taken(c) or (1,), c["X"].dtype),
    grad=default_grad("X", "Index", "Out@GRAD", wrt=["X"]),
    dtype_slot="X",
    cuda=True,
)
def gather_nd(b: Binder) -> None:
    """Out[i] = X[Index[i]], where Index[i] is a number for each of the first dimensions of X.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("gather_nd", {"X": [[1.0, 2.0], [3.0, 4.0]], "Index": np.array([[1, 0], [0, 1]])})["Out"]
        array([3., 2.])

    Source: Paddle's gather_nd_op.
    """
    _take(b, b["X"], b["Out"])


@grad_op("gather_nd_grad", dtype_slot="X", cuda=row_indexing.SUMMED)
def gather_nd_grad(b: Binder) -> None:
    """dX = 0, with each part of dOut added where it came from."""
    verbs.fill(b, b["X@GRAD"])
    _add(b, b["X@GRAD"], b["Out@GRAD"])


def _add_infer(c: Context) -> None:
    want = _taken(c)
    c.require(
        agree(c["Updates"].shape, want), "Input(Updates) of scatter_nd_add must hold a part for each of Input(Index).",
        expected=f"shape {list(want)}", received=f"shape {list(c['Updates'].shape)}",
    )  # fmt: skip
    c.set("Out", c["X"].shape, c["X"].dtype, c.lod("X"))


@op(
    "scatter_nd_add",
    inputs={
        "X": "at least one dimension",
        "Index: int[…, d]": "d numbers for each part",
        "Updates: any[…]": "[…, the other dimensions of X]: the summands",
    },
    outputs={"Out": "the shape of X"},
    cost="Updates",
    infer=_add_infer,
    grad=default_grad("Index", "Updates", "Out@GRAD", wrt=["X", "Updates"]),
    dtype_slot="X",
    cuda=row_indexing.SUMMED,
)
def scatter_nd_add(b: Binder) -> None:
    """Out = X with Updates[i] added at Index[i], as often as a place is named.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x, index = np.array([1.0, 1.0]), np.array([[1], [1]])
        >>> run_op("scatter_nd_add", {"X": x, "Index": index, "Updates": [2.0, 3.0]})["Out"]
        array([1., 6.])

    Source: Paddle's scatter_nd_add_op.
    """
    verbs.copy(b, b["Out"], b["X"])
    _add(b, b["Out"], b["Updates"])


@grad_op("scatter_nd_add_grad", infer=updates_grad, dtype_slot="Out@GRAD", cuda=True)
def scatter_nd_add_grad(b: Binder) -> None:
    """dX = dOut; dUpdates = the parts of dOut that Index names."""
    if b.wants("X@GRAD"):
        verbs.copy(b, b["X@GRAD"], b["Out@GRAD"])
    if b.wants("Updates@GRAD"):
        _take(b, b["Out@GRAD"], b["Updates@GRAD"])
