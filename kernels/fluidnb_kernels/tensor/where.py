"""where, where_index and diag: elements chosen by a condition, and a diagonal."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Binder, Context, default_grad, grad_op, kernel, op
from fluidnb.values.copies import on_host
from fluidnb_kernels.emit import apply, zeros
from fluidnb_kernels.rules import agree
from fluidnb_kernels.tensor import row_indexing
from fluidnb_kernels.tensor.strided_copy import fill, lay, move

Array = Any


def _hits(c: Context) -> int:
    """How many elements of Condition are true; nothing else that the binding depends on can change."""
    return -1 if c.has("X") else int(np.count_nonzero(on_host(c["Condition"])))


def _places_infer(c: Context) -> None:
    c.set("Out", (_hits(c) if c.runtime else -1, c["Condition"].ndim), np.int64)


def _infer(c: Context) -> None:
    if not c.has("X"):
        return _places_infer(c)
    x = c["X"]
    for slot in ("Condition", "Y"):
        c.require(
            agree(c[slot].shape, x.shape), f"Input({slot}) of where must have the shape of Input(X).",
            expected=list(x.shape), received=list(c[slot].shape),
        )  # fmt: skip
    return c.set("Out", x.shape, x.dtype)


def places(condition: Array, out: Array) -> None:
    """Write where a condition holds.

    Args:
        out: int64 [n, rank], written.

    Example:
        >>> i = np.zeros((1, 1), int); places(np.array([False, True]), i); i
        array([[1]])
    """
    out[...] = np.argwhere(condition)


def _emit_places(b: Binder) -> None:
    b(places, b["Condition"], b["Out"])


@op(
    "where",
    inputs={"Condition: bool": "any shape", "X?": "what is taken where it holds", "Y?": "what is taken elsewhere"},
    outputs={"Out": "int64 [n, rank]: where it holds; with X and Y one of them, element by element"},
    infer=_infer,
    grad=default_grad("Condition", "X", "Y", "Out@GRAD", wrt=["X", "Y"]),
    guard=_hits,
    data_shape=True,
)
def where(b: Binder) -> None:
    """Out = the indices at which Condition holds; with X and Y: X where it holds, Y elsewhere.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("where", {"Condition": np.array([False, True, True])})["Out"]
        array([[1],
               [2]])

    Source: Fluid's where_op, and Paddle's of the same name, which takes X and Y.
    """
    if not b.has("X"):
        return _emit_places(b)
    b(np.copyto, b["Out"], b["Y"])
    return b(np.copyto, b["Out"], b["X"], where=b["Condition"])


@grad_op("where_grad", dtype_slot="Out@GRAD")
def where_grad(b: Binder) -> None:
    """dX = dOut where Condition holds, dY = dOut elsewhere."""
    condition, g = b["Condition"], b["Out@GRAD"]
    for slot in ("X@GRAD", "Y@GRAD"):
        if b.wants(slot):
            zeros(b, b[slot])
            b(np.copyto, b[slot], g, where=condition if slot == "X@GRAD" else apply(b, np.logical_not, condition))


@op(
    "where_index",
    inputs={"Condition": "any shape"},
    outputs={"Out": "int64 [n, rank]: where it holds"},
    infer=_places_infer,
    guard=_hits,
    data_shape=True,
)
def where_index(b: Binder) -> None:
    """Out = the indices at which Condition holds.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("where_index", {"Condition": np.array([[True, False]])})["Out"]
        array([[0, 0]])

    Source: Paddle's where_index_op.
    """
    _emit_places(b)


def _diag_infer(c: Context) -> None:
    d = c["Diagonal"]
    c.require(d.ndim == 1, "Input(Diagonal) of diag must have one dimension.", expected="[n]", received=list(d.shape))
    c.set("Out", (d.shape[0], d.shape[0]), d.dtype)


@op("diag", inputs={"Diagonal: any[n]": ""}, outputs={"Out": "[n, n]"}, infer=_diag_infer)
def diag(b: Binder) -> None:
    """Out = a matrix with Diagonal on its diagonal, 0 elsewhere.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("diag", {"Diagonal": [1.0, 2.0]})["Out"]
        array([[1., 0.],
               [0., 2.]])

    Source: Fluid's diag_op.
    """
    out = b["Out"]
    zeros(b, out)
    b(np.fill_diagonal, out, b["Diagonal"])


def _places_on_cuda(b: Binder) -> None:
    condition, out = b["Condition"], b["Out"]
    row_indexing.coordinates(b, row_indexing.places(b, condition, out.shape[0]), condition.shape, out)


kernel("where_index", place="cuda")(_places_on_cuda)


@kernel("where", place="cuda")
def _where_on_cuda(b: Binder) -> None:
    if b.has("X"):
        row_indexing.either(b, b["Condition"], b["X"], b["Y"], b["Out"])
    else:
        _places_on_cuda(b)


@kernel("where_grad", place="cuda")
def _where_grad_on_cuda(b: Binder) -> None:
    for slot, value in (("X@GRAD", True), ("Y@GRAD", False)):
        if b.wants(slot):
            row_indexing.only(b, b["Condition"], value, b["Out@GRAD"], b[slot])


@kernel("diag", place="cuda")
def _diag_on_cuda(b: Binder) -> None:
    out = b["Out"]
    fill(b, out)
    move(b, out, b["Diagonal"], lay(out, (out.size,))[:: out.shape[1] + 1])
