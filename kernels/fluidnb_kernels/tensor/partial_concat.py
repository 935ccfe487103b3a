"""partial_concat and partial_sum: the same columns of several matrices, side by side or added."""

from __future__ import annotations

from operator import itemgetter

import numpy as np

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, op
from fluidnb_kernels import verbs
from fluidnb_kernels.cuda.axis_reduction import fold as reduced
from fluidnb_kernels.reduce.reduction_kernels import CUDA as REDUCE
from fluidnb_kernels.reduce.reduction_kernels import NUMBERS, TOTAL

_ATTRS = {
    "start_index": Attr("int", 0, "the first column that is taken; from the end when negative"),
    "length": Attr("int", -1, "how many columns are taken; -1 for all that follow"),
}


def _columns(c: Context) -> tuple[int, int]:
    """The first column that is taken, and how many."""
    xs = c.all("X")
    c.check_inputs()
    width, start, length = xs[0].shape[1], c.attr("start_index", 0), c.attr("length", -1)
    c.require(
        width > 0, f"{c.definition.type} must know the width of its inputs.", expected="[n, a number]",
        received=list(xs[0].shape),
    )  # fmt: skip
    first = start + width if start < 0 else start
    count = width - first if length < 0 else length
    c.require(
        0 <= first < width and 0 < count <= width - first, f"The columns of {c.definition.type} must be inside X.",
        expected=f"inside {width} columns", received=f"start_index {start}, length {length}",
    )  # fmt: skip
    return first, count


def _part(first: int, count: int) -> verbs.View:
    return itemgetter((slice(None), slice(first, first + count)))


@op(
    "partial_concat",
    inputs={"X*: float[n, d]": "matrices of one shape"},
    outputs={"Out": "[n, length · how many matrices]"},
    attrs=_ATTRS,
    infer=lambda c: c.set("Out", (c["X"].shape[0], _columns(c)[1] * len(c.all("X"))), c["X"].dtype),
    grad=default_grad("X", "Out@GRAD"),
    cuda=True,
)
def partial_concat(b: Binder) -> None:
    """Out = the columns start_index … start_index + length of each X, side by side.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("partial_concat", {"X": [np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]])]}, {"start_index": 1})["Out"]
        array([[2., 4.]])

    Source: Paddle's partial_concat_op.
    """
    first, count = _columns(b)
    for i, x in enumerate(b.all("X")):
        verbs.copy(b, b["Out"], x, _part(i * count, count), _part(first, count))


@op(
    "partial_sum",
    inputs={"X*: float[n, d]": "matrices of one shape"},
    outputs={"Out": "[n, length]"},
    attrs=_ATTRS,
    cost="X",
    cuda=NUMBERS,
    infer=lambda c: c.set("Out", (c["X"].shape[0], _columns(c)[1]), c["X"].dtype),
    grad=default_grad("X", "Out@GRAD"),
)
def partial_sum(b: Binder) -> None:
    """Out = the sum of the columns start_index … start_index + length of all X.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("partial_sum", {"X": [np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]])]}, {"start_index": 1})["Out"]
        array([[6.]])

    Source: Paddle's partial_sum_op.
    """
    part, xs, out = _part(*_columns(b)), b.all("X"), b["Out"]
    if b.on_cuda:
        terms = b.tmp((len(xs), *out.shape), out.dtype)
        for i, x in enumerate(xs):
            verbs.copy(b, terms, x, itemgetter(i), part)
        return reduced(b, REDUCE, TOTAL, terms, [0], out)
    b(np.copyto, out, part(xs[0]))
    for x in xs[1:]:
        b(np.add, out, part(x), out=out)
    return None


def _give_back(b: Binder, shared: bool) -> None:
    """Emit the gradient of each X: its columns of dOut, or all of dOut where they share it; 0 elsewhere."""
    first, count = _columns(b)
    for i in range(len(b.all("X"))):
        if b.wants("X@GRAD", i):
            dx = b.all("X@GRAD")[i]
            verbs.fill(b, dx)
            verbs.copy(b, dx, b["Out@GRAD"], _part(first, count), _part(0 if shared else i * count, count))


@grad_op("partial_concat_grad", cuda=True)
def partial_concat_grad(b: Binder) -> None:
    """dX[i] = its columns of dOut, 0 elsewhere."""
    _give_back(b, False)


@grad_op("partial_sum_grad", cuda=True)
def partial_sum_grad(b: Binder) -> None:
    """dX[i] = dOut in the columns that were added, 0 elsewhere."""
    _give_back(b, True)
