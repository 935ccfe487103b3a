"""transpose: dimensions in another order."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, kernel, linear_grad, op
from fluidnb_kernels.tensor.moves import lay, move

_ATTRS = {
    "axis": Attr("ints", doc="a permutation of the dimensions of X"),
    "data_format": Attr("string", "AnyLayout", "ignored (compatibility); the axis decides"),
}


def _infer(c: Context) -> None:
    x, axis = c["X"], c.attr("axis")
    c.require(
        len(axis) == x.ndim, "The rank of X should equal the size of Attr(axis) of transpose.",
        expected=f"{x.ndim} dimensions", received=axis,
    )  # fmt: skip
    c.require(
        all(-x.ndim <= a < x.ndim for a in axis) and len({a % x.ndim for a in axis}) == x.ndim,
        "Each element of Attr(axis) of transpose should be unique and name a dimension of X.",
        expected=f"a permutation of {list(range(x.ndim))}", received=axis,
    )  # fmt: skip
    c.set("Out", [x.shape[a] for a in axis], x.dtype, () if axis and axis[0] % x.ndim else c.lod("X"))
    c.set("XShape", (0, *x.shape), x.dtype, c.lod("X"))


@op(
    "transpose",
    inputs={"X": "any shape"},
    outputs={"Out": "X with its dimensions in another order"},
    attrs=_ATTRS,
    infer=_infer,
    grad=default_grad("X", "Out", "Out@GRAD"),
)
def transpose(b: Binder) -> None:
    """Out[i, j, …] = X with dimension ``axis[d]`` as its dimension d; the LoD goes on where the rows stay rows.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("transpose", {"X": [[1, 2, 3]]}, {"axis": [1, 0]})["Out"].shape
        (3, 1)

    Source: Fluid's transpose_op.
    """
    b(np.copyto, b["Out"], b["X"].transpose(b.attr("axis")))


def _back(b: Binder) -> None:
    """dX = dOut with the dimensions back in their order."""
    g, axis = b["Out@GRAD"], b.attr("axis")
    b(np.copyto, b["X@GRAD"], g.transpose(_inverse(axis)))


def _inverse(axis: list[int]) -> list[int]:
    """The permutation that undoes another."""
    return [int(d) for d in np.argsort([a % len(axis) for a in axis])]


grad_op("transpose_grad", grad=linear_grad("transpose"))(_back)


@op(
    "transpose2",
    inputs={"X": "any shape"},
    outputs={"Out": "X with its dimensions in another order", "XShape~": "no elements: [0, the shape of X]"},
    attrs=_ATTRS,
    infer=_infer,
    grad=default_grad("XShape", "Out@GRAD"),
)
def transpose2(b: Binder) -> None:
    """Out = X with its dimensions in another order; its gradient needs the shape of X alone, which XShape keeps.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("transpose2", {"X": [[1, 2, 3]]}, {"axis": [1, 0]})["Out"].shape
        (3, 1)

    Source: Fluid's transpose_op.
    """
    transpose(b)


def _as_before(c: Context) -> None:
    c.set("X@GRAD", c["XShape"].shape[1:], c["Out@GRAD"].dtype, c.lod("XShape"))


grad_op("transpose2_grad", infer=_as_before, grad=linear_grad("transpose"))(_back)


def _on_cuda(b: Binder) -> None:
    move(b, b["Out"], b["X"], of=lay(b["X"]).transpose(b.attr("axis")))


def _back_on_cuda(b: Binder) -> None:
    g = b["Out@GRAD"]
    move(b, b["X@GRAD"], g, of=lay(g).transpose(_inverse(b.attr("axis"))))


for _type in ("transpose", "transpose2"):
    kernel(_type, place="cuda")(_on_cuda)
    kernel(_type + "_grad", place="cuda")(_back_on_cuda)
