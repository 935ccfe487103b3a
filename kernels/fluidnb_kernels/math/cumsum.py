"""cumsum: sums of all elements up to each."""

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels import verbs
from fluidnb_kernels.cuda import Source, ctype, each_line, lines_along, typed
from fluidnb_kernels.emit import FLOATS, reading, writing, written, zeros
from fluidnb_kernels.rules import one_axis

#: What GPUs sum up.
_NUMBERS = (*FLOATS, "int32", "int64")


CUDA = Source(__file__, "cumsum.cu", typed(("cumsum", _NUMBERS)))


def _infer(c: Context) -> None:
    x = c["X"]
    if c.attr("flatten"):
        c.set("Out", (x.size,), x.dtype)
    else:
        one_axis(c, c.attr("axis"), max(x.ndim, 1))
        c.set("Out", x.shape, x.dtype, c.lod("X"))


def _of_scalar(c: Context, x: Array) -> bool:
    """Whether the result is X itself, with ``exclusive`` too: so it is in Paddle 2 where X has no dimension."""
    return not x.ndim and not c.attr("flatten", False)


def _emit(b: Binder, x: Array, axis: int, exclusive: bool, reverse: bool, out: Array) -> None:
    if reverse:
        turn = tuple(slice(None, None, -1 if i == axis % x.ndim else 1) for i in range(x.ndim))
        x, out = x[turn], out[turn]
    if exclusive:
        head = (slice(None),) * (axis % x.ndim)
        zeros(b, out[(*head, slice(0, 1))])
        x, out = x[(*head, slice(0, -1))], out[(*head, slice(1, None))]
    b(np.add.accumulate, x, axis, None, out)


@op(
    "cumsum",
    inputs={"X": "any shape"},
    outputs={"Out": "the sums, of its shape"},
    attrs={
        "axis": Attr("int", -1, "the dimension along which is summed; from the end when negative"),
        "flatten": Attr("bool", False, "sum over all elements, row after row"),
        "exclusive": Attr("bool", False, "exclude each element from its sum"),
        "reverse": Attr("bool", False, "sum from the end"),
    },
    cost="X",
    infer=_infer,
    grad=default_grad("X", "Out@GRAD"),
    cuda=_NUMBERS,
)
def cumsum(b: Binder) -> None:
    """Out[i] = X[0] + … + X[i] along ``axis``; X itself where it has no dimension.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("cumsum", {"X": [1.0, 2.0, 3.0]})["Out"]
        array([1., 3., 6.])

    Source: Fluid's cumsum_op.
    """
    x, out, axis = b["X"], b["Out"], b.attr("axis")
    if _of_scalar(b, x):
        return verbs.copy(b, out, x)
    if b.on_cuda:
        return _on_cuda(b, x, out, b.attr("reverse"))
    if b.attr("flatten"):
        x, axis = reading(b, x, (x.size,)), 0
    return _emit(b, x, axis, b.attr("exclusive"), b.attr("reverse"), out)


@grad_op("cumsum_grad", cuda=_NUMBERS)
def cumsum_grad(b: Binder) -> None:
    """dX = the sums of dOut from the other end."""
    g, dx, axis = b["Out@GRAD"], b["X@GRAD"], b.attr("axis", -1)
    if _of_scalar(b, dx):
        return verbs.copy(b, dx, g.reshape(dx.shape))
    if b.on_cuda:
        return _on_cuda(b, g, dx, not b.attr("reverse", False))
    exclusive, reverse = b.attr("exclusive", False), b.attr("reverse", False)
    if not b.attr("flatten", False):
        return _emit(b, g, axis, exclusive, not reverse, dx)
    out = writing(b, dx, (dx.size,))
    _emit(b, g, 0, exclusive, not reverse, out)
    return written(b, dx, out)


def _on_cuda(b: Binder, x: Array, out: Array, reverse: bool) -> None:
    lines = lines_along(x.shape, b.attr("axis", -1))
    if b.attr("flatten", False):
        lines = 1, x.size, 1
    if x.size:
        how = np.bool_(b.attr("exclusive", False)), np.bool_(reverse)
        each_line(b, CUDA, f"cumsum<{ctype(x.dtype)}>", *lines, x, out, *how)


@c_code("cumsum", "cumsum_grad")
def _cumsum_in_c(c: Context) -> dict[str, Constant]:
    lines, n, inner = (1, c["X"].size, 1) if c.attr("flatten", False) else lines_along(c["X"].shape, c.attr("axis", -1))
    exclusive = bool(c.attr("exclusive", False)) and not _of_scalar(c, c["X"])
    flags = {"BACKWARDS": bool(c.attr("reverse", False)), "EXCLUSIVE": exclusive}
    return {"OUTER": lines // inner, "N": n, "INNER": inner, **flags}
