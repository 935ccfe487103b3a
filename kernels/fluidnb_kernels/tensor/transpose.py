"""transpose, reverse and flip: dimensions in another order, or the other way round."""

from functools import partial

import numpy as np

from fluidnb.op import Attr, Binder, Context, grad_op, op, same
from fluidnb.op.c_code import Constant, c_code
from fluidnb.op.grad import default_grad, linear_grad, second_grad
from fluidnb_kernels import verbs
from fluidnb_kernels.rules import one_axis
from fluidnb_kernels.tensor.strided_copy import layout_of, parts_in_c

_ATTRS = {
    "axis": Attr("ints", doc="a permutation of the dimensions of X"),
    "data_format": Attr("string", "AnyLayout", "ignored (compatibility); the axis decides"),
}


def _order_hint(rank: int) -> str:
    return f"name each dimension once: perm={[*range(rank)][::-1]} reverses them."


def _transpose_infer(c: Context) -> None:
    x, axis = c["X"], c.attr("axis")
    c.require(
        len(axis) == x.ndim, "The rank of X should equal the size of Attr(axis) of transpose.",
        expected=f"{x.ndim} dimensions", received=axis, hint=_order_hint(x.ndim),
    )  # fmt: skip
    c.require(
        all(-x.ndim <= a < x.ndim for a in axis) and len({a % x.ndim for a in axis}) == x.ndim,
        "Each element of Attr(axis) of transpose should be unique and name a dimension of X.",
        expected=f"a permutation of {list(range(x.ndim))}", received=axis, hint=_order_hint(x.ndim),
    )  # fmt: skip
    c.set("Out", [x.shape[a] for a in axis], x.dtype, () if axis and axis[0] % x.ndim else c.lod("X"))
    c.set("XShape", (0, *x.shape), x.dtype, c.lod("X"))


def _transpose_define(type: str, keeps: bool, formula: str) -> None:
    """Register a form of transpose; one that keeps XShape needs no more of X for its gradient."""

    @op(
        type,
        inputs={"X": "any shape"},
        outputs={
            "Out": "X with its dimensions in another order",
            **({"XShape~": "no elements: [0, the shape of X]"} if keeps else {}),
        },
        attrs=_ATTRS,
        infer=_transpose_infer,
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


_transpose_define(
    "transpose", False,
    "Out[i, j, …] = X with dimension ``axis[d]`` as its dimension d; the LoD is propagated where the rows stay rows",
)  # fmt: skip
_transpose_define(
    "transpose2", True,
    "Out = X with its dimensions in another order; its gradient needs the shape of X alone, which XShape keeps",
)  # fmt: skip


def _inverse(axis: list[int]) -> list[int]:
    """The permutation that undoes another."""
    return [int(d) for d in np.argsort([a % len(axis) for a in axis])]


def _as_before(c: Context) -> None:
    c.set("X@GRAD", c["XShape"].shape[1:], c["Out@GRAD"].dtype, c.lod("XShape"))


@grad_op("transpose_grad", grad=linear_grad("transpose"), cuda=True)
@grad_op("transpose2_grad", infer=_as_before, grad=linear_grad("transpose"), cuda=True)
def transpose_grad(b: Binder) -> None:
    """dX = dOut with the dimensions back in their order."""
    verbs.copy(b, b["X@GRAD"], b["Out@GRAD"], of=lambda v: v.transpose(_inverse(b.attr("axis"))))


def _reverse_infer(c: Context) -> None:
    for a in c.attr("axis"):
        one_axis(c, a, c["X"].ndim)
    same()(c)


@c_code("transpose", "transpose2", function="rearranged", file="strided_copy.c")
def _transpose_in_c(c: Context) -> dict[str, Constant]:
    return parts_in_c(c["Out"], c["X"], of=layout_of(c["X"]).transpose(c.attr("axis")))


@c_code("transpose_grad", "transpose2_grad", function="rearranged_grad", file="strided_copy.c")
def _transpose_grad_in_c(c: Context) -> dict[str, Constant]:
    dx = c["X@GRAD"]
    return parts_in_c(dx, c["Out@GRAD"], to=layout_of(dx).transpose(c.attr("axis")))


def _reversed(c: Context, x: np.ndarray) -> np.ndarray:
    """A tensor with dimensions the other way round, a view."""
    axes = {a % x.ndim for a in c.attr("axis")}
    return x[tuple(slice(None, None, -1 if i in axes else 1) for i in range(x.ndim))]


def _reverse_define(type: str, source: str) -> None:
    @op(
        type,
        inputs={"X": "at least one dimension"},
        outputs={"Out": "of its shape"},
        attrs={"axis": Attr("ints", doc="the dimensions that are turned round; from the end when negative")},
        infer=_reverse_infer,
        grad=second_grad(type, {}, {"X": "Out"}, {"Out": "X"}),
        cuda=True,
        doc=f"""Out = X with the elements along each of ``axis`` in reverse order. The gradient turns them back.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("{type}", {{"X": [1.0, 2.0, 3.0]}}, {{"axis": [0]}})["Out"]
        array([3., 2., 1.])

    Source: {source}'s {type}_op.
    """,
    )
    def turn(b: Binder) -> None:
        verbs.copy(b, b["Out"], b["X"], of=partial(_reversed, b))


_reverse_define("reverse", "Fluid")
_reverse_define("flip", "Paddle")


@c_code("reverse", "flip", function="rearranged", file="strided_copy.c")
def _reverse_in_c(c: Context) -> dict[str, Constant]:
    return parts_in_c(c["Out"], c["X"], of=_reversed(c, layout_of(c["X"])))
