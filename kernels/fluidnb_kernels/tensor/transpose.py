"""transpose: dimensions in another order."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, kernel, linear_grad, op
from fluidnb_kernels import verbs

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


def _define(type: str, keeps: bool, formula: str) -> None:
    """Register a form of transpose; one that keeps XShape needs no more of X for its gradient."""

    @op(
        type,
        inputs={"X": "any shape"},
        outputs={
            "Out": "X with its dimensions in another order",
            **({"XShape~": "no elements: [0, the shape of X]"} if keeps else {}),
        },
        attrs=_ATTRS,
        infer=_infer,
        grad=default_grad(*(["XShape"] if keeps else ["X", "Out"]), "Out@GRAD"),
        cuda=True,
        doc=f"""{formula}.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("{type}", {{"X": [[1, 2, 3]]}}, {{"axis": [1, 0]}})["Out"].shape
        (3, 1)

    Source: Fluid's transpose_op.
    """,
    )
    def transpose(b: Binder) -> None:
        verbs.copy(b, b["Out"], b["X"], of=lambda v: v.transpose(b.attr("axis")))


_define(
    "transpose", False,
    "Out[i, j, …] = X with dimension ``axis[d]`` as its dimension d; the LoD is propagated where the rows stay rows",
)  # fmt: skip
_define(
    "transpose2", True,
    "Out = X with its dimensions in another order; its gradient needs the shape of X alone, which XShape keeps",
)  # fmt: skip


def _inverse(axis: list[int]) -> list[int]:
    """The permutation that undoes another."""
    return [int(d) for d in np.argsort([a % len(axis) for a in axis])]


def _as_before(c: Context) -> None:
    c.set("X@GRAD", c["XShape"].shape[1:], c["Out@GRAD"].dtype, c.lod("XShape"))


@kernel("transpose_grad", place="cuda")
@kernel("transpose2_grad", place="cuda")
@grad_op("transpose_grad", grad=linear_grad("transpose"))
@grad_op("transpose2_grad", infer=_as_before, grad=linear_grad("transpose"))
def transpose_grad(b: Binder) -> None:
    """dX = dOut with the dimensions back in their order."""
    verbs.copy(b, b["X@GRAD"], b["Out@GRAD"], of=lambda v: v.transpose(_inverse(b.attr("axis"))))
