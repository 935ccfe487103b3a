"""top_k and top_k_v2: the largest or the smallest elements of each row."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op, values_of
from fluidnb_kernels.rules import integer, one_axis
from fluidnb_kernels.tensor.gather import put_back
from fluidnb_kernels.tensor.line_extremes import ORDERED, top


def _axis(c: Context) -> int:
    """The dimension along which elements are compared: for top_k, which has no axis, the last one."""
    return one_axis(c, c.attr("axis", -1), c["X"].ndim)


def _infer(c: Context) -> None:
    type, x, axis, k = c.definition.type, c["X"], _axis(c), integer(c, "k", "K")
    c.require(
        x.shape[axis] < 0 or x.shape[axis] >= k, f"The dimension of X along which {type} compares must be at least k.",
        expected=f">= {k}", received=x.shape[axis],
    )  # fmt: skip
    lod = c.lod("X") if axis or type == "top_k" else ()
    for slot, dtype in (("Out", x.dtype), ("Indices", np.int64)):
        c.set(slot, (*x.shape[:axis], k, *x.shape[axis + 1 :]), dtype, lod)


def first(x: Array, k: int, out: Array | None, indices: Array | None, largest: bool = True) -> None:
    """Write the k largest or smallest elements of each row and their places, where wanted; equal ones in order."""
    rising = x if not largest else ~x if x.dtype.kind in "biu" else -x  # the smallest integer has no negative
    at = rising.argsort(-1, kind="stable")[..., :k]
    if out is not None:
        out[...] = np.take_along_axis(x, at, -1)
    if indices is not None:
        indices[...] = at


@op(
    "top_k",
    inputs={"X": "at least one dimension", "K?": "k as a variable of one element"},
    outputs={"Out": "the k largest of each row, largest first", "Indices": "int64: where in the row they are"},
    attrs={"k": Attr("int", 1, "how many", ge=1)},
    cost="X",
    infer=_infer,
    grad=default_grad("X", "Indices", "Out@GRAD", wrt=["X"]),
    guard=values_of("K"),
    dtype_slot="X",
    cuda=ORDERED,
)
def top_k(b: Binder) -> None:
    """Out, Indices = the k largest elements of each row of X, and where they are; both inherit the LoD of X.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("top_k", {"X": [[1.0, 9.0, 5.0]]}, {"k": 2})["Indices"]
        array([[1, 2]])

    Source: Fluid's top_k_op.
    """
    x, out, indices, k = b["X"], b["Out"], b["Indices"], integer(b, "k", "K")
    if b.on_cuda:
        return top(b, x, k, -1, none_first=k == 1)
    if k > 1:
        return b(first, x, k, out, indices)
    if out is not None:
        b(np.maximum.reduce, x, -1, None, out, True)
    if indices is not None:
        b(x.argmax, -1, indices.reshape(x.shape[:-1]))
    return None


@op(
    "top_k_v2",
    inputs={"X": "at least one dimension", "K?": "k as a variable of one element"},
    outputs={"Out": "the k elements, in order", "Indices": "int64: where along axis they are"},
    attrs={
        "k": Attr("int", 1, "how many", ge=1),
        "axis": Attr("int", -1, "the dimension along which they are looked for; from the end when negative"),
        "largest": Attr("bool", True, "the largest ones; else the smallest ones"),
        "sorted": Attr("bool", True, "ignored (compatibility with Paddle 2): they are always in order"),
    },
    cost="X",
    infer=_infer,
    grad=default_grad("X", "Indices", "K", "Out@GRAD", wrt=["X"]),
    guard=values_of("K"),
    dtype_slot="X",
    cuda=ORDERED,
)
def top_k_v2(b: Binder) -> None:
    """Out, Indices = the k largest or smallest elements of X along ``axis``, and where they are.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("top_k_v2", {"X": [4.0, 9.0, 5.0]}, {"k": 2, "largest": False})["Out"]
        array([4., 5.])

    Source: Paddle's top_k_v2_op.
    """
    axis, k = _axis(b), integer(b, "k", "K")
    if b.on_cuda:
        return top(b, b["X"], k, axis, b.attr("largest"))
    x, out, indices = (None if a is None else np.moveaxis(a, axis, -1) for a in (b["X"], b["Out"], b["Indices"]))
    return b(first, x, k, out, indices, b.attr("largest"))


@grad_op("top_k_grad", dtype_slot="X", cuda=True)
@grad_op("top_k_v2_grad", guard=values_of("K"), dtype_slot="X", cuda=True)
def top_k_grad(b: Binder) -> None:
    """dX = dOut at the places from which Out was taken, 0 elsewhere."""
    put_back(b, b["Out@GRAD"], b["Indices"], b["X@GRAD"], _axis(b))
