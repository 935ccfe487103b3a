"""top_k: the largest elements of each row."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, op, values_of
from fluidnb_kernels.given import integers

Array = Any


def _infer(c: Context) -> None:
    x, (k,) = c["X"], integers(c, "k", "K")
    c.require(
        x.ndim >= 1, "Input(X) of top_k must have at least one dimension.", expected="[..., n]", received=list(x.shape)
    )
    c.require(
        x.shape[-1] < 0 or x.shape[-1] >= k, "The last dimension of X must be at least k.",
        expected=f">= {k}", received=x.shape[-1],
    )  # fmt: skip
    for slot, dtype in (("Out", x.dtype), ("Indices", np.int64)):
        c.set(slot, (*x.shape[:-1], k), dtype, c.lod("X"))


def largest(x: Array, k: int, out: Array | None, indices: Array | None) -> None:
    """Write the k largest elements of each row, largest first; among equal ones the first comes first.

    Args:
        x: [..., n].
        k: how many, 1 to n.
        out: [..., k], written; or None.
        indices: int64 [..., k], written: where they are in their row; or None.

    Example:
        >>> v, i = np.zeros((1, 2)), np.zeros((1, 2), int); largest(np.array([[1.0, 9.0, 5.0]]), 2, v, i); i
        array([[1, 2]])
    """
    at = (-x).argsort(-1, kind="stable")[..., :k]
    if out is not None:
        out[...] = np.take_along_axis(x, at, -1)
    if indices is not None:
        indices[...] = at


@op(
    "top_k",
    inputs={"X": "at least one dimension", "K?": "k as a variable of one element"},
    outputs={"Out": "the k largest of each row, largest first", "Indices": "int64: where in the row they are"},
    attrs={"k": Attr("int", 1, "how many", ge=1)},
    infer=_infer,
    grad=default_grad("X", "Indices", "Out@GRAD", wrt=["X"]),
    guard=values_of("K"),
    dtype_slot="X",
)
def top_k(b: Binder) -> None:
    """Out, Indices = the k largest elements of each row of X, and where they are; the LoD of X goes on to both.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("top_k", {"X": [[1.0, 9.0, 5.0]]}, {"k": 2})["Indices"]
        array([[1, 2]])

    Source: Fluid's top_k_op.
    """
    x, out, indices, (k,) = b["X"], b["Out"], b["Indices"], integers(b, "k", "K")
    if k > 1:
        return b(largest, x, k, out, indices)
    if out is not None:
        b(np.maximum.reduce, x, -1, None, out, True)
    if indices is not None:
        b(x.argmax, -1, indices.reshape(x.shape[:-1]))
    return None


@grad_op("top_k_grad", dtype_slot="X")
def top_k_grad(b: Binder) -> None:
    """dX = dOut at the places from which Out was taken, 0 elsewhere."""
    dx = b["X@GRAD"]
    b(np.copyto, dx, b.const(0, dx.dtype))
    b(np.put_along_axis, dx, b["Indices"], b["Out@GRAD"], -1)
