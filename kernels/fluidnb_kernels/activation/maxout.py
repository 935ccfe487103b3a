"""maxout: the largest of groups of channels."""

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op, product
from fluidnb_kernels.cuda import Source, by_rows, ctype, typed
from fluidnb_kernels.emit import FLOATS, apply, reading, writing, written


def _axis(c: Context) -> int:
    axis, n = c.attr("axis", 1), c["X"].ndim
    c.require(
        -n <= axis < n, "Attr(axis) of maxout must name a dimension of X.", expected=f"{-n} to {n - 1}", received=axis
    )
    return int(axis % n)


def _infer(c: Context) -> None:
    x, groups, axis = c["X"], c.attr("groups"), _axis(c)
    channels = x.shape[axis]
    c.require(
        channels < 0 or channels % groups == 0,
        "The number of channels of Input(X) of maxout should be a multiple of groups.",
        expected=f"a multiple of {groups}", received=channels,
    )  # fmt: skip
    out = list(x.shape)
    out[axis] = channels if channels < 0 else channels // groups
    c.set("Out", out, x.dtype)


def _apart(b: Binder) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """The shape of X with its groups as a separate dimension, that of Out, and that dimension."""
    x, axis, groups = b["X"], _axis(b), b.attr("groups")
    head, tail, many = x.shape[:axis], x.shape[axis + 1 :], x.shape[axis] // groups
    return (*head, many, groups, *tail), (*head, many, 1, *tail), axis + 1


@op(
    "maxout",
    inputs={"X: float[N, channels, …]": ""},
    outputs={"Out": "[N, channels / groups, …]"},
    attrs={
        "groups": Attr("int", doc="how many channels become one", gt=1),
        "axis": Attr("int", 1, "the dimension that holds the channels"),
    },
    cost="X",
    infer=_infer,
    grad=default_grad("X", "Out", "Out@GRAD"),
    dtypes=FLOATS,
    cuda=FLOATS,
)
def maxout(b: Binder) -> None:
    """Out = the largest of every ``groups`` channels that follow each other.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("maxout", {"X": [[[[1.0]], [[5.0]], [[2.0]], [[3.0]]]]}, {"groups": 2})["Out"].ravel()
        array([5., 3.])

    Source: Goodfellow et al., Maxout networks (2013); Fluid's maxout_op.
    """
    if b.on_cuda:
        return _emit_on_cuda(b, "largest_of", b["X"], b["Out"])
    inner, outer, axis = _apart(b)
    out = writing(b, b["Out"], outer)
    b(np.maximum.reduce, reading(b, b["X"], inner), axis, None, out, True)
    written(b, b["Out"], out)


def first_only(hits: Array, axis: int) -> None:
    """Leave of several hits along an axis the first alone."""
    first, *others = np.moveaxis(hits, axis, 0)
    found = first.copy()
    for other in others:
        np.greater(other, found, other)  # a hit, and none before it
        found |= other


@grad_op("maxout_grad", cuda=FLOATS)
def maxout_grad(b: Binder) -> None:
    """dX = dOut at the first of the largest channels of each group, 0 elsewhere."""
    if b.on_cuda:
        return _emit_on_cuda(b, "largest_of_grad", b["X"], b["Out"], b["Out@GRAD"], b["X@GRAD"])
    inner, outer, axis = _apart(b)
    hits = apply(b, np.equal, reading(b, b["X"], inner), reading(b, b["Out"], outer))
    b(first_only, hits, axis)
    dx = writing(b, b["X@GRAD"], inner)
    b(np.multiply, reading(b, b["Out@GRAD"], outer), hits, out=dx)
    written(b, b["X@GRAD"], dx)


CUDA = Source(__file__, "maxout.cu", typed(("largest_of largest_of_grad", FLOATS)))


def _emit_on_cuda(b: Binder, name: str, *arrays: Array) -> None:
    x, groups = b["X"], b.attr("groups")
    inner = product(x.shape[_axis(b) + 1 :])
    rows = x.size // max(groups * inner, 1)
    by_rows(b, CUDA, f"{name}<{ctype(x.dtype)}>", rows, inner, *arrays, np.int64(groups), np.int64(inner))
