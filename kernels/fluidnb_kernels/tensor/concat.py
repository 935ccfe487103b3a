"""concat: tensors one after another along a dimension."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, kernel, op, values_of
from fluidnb_kernels.given import integers
from fluidnb_kernels.tensor.moves import lay, move


def _axis(c: Context) -> int:
    (axis,), n = integers(c, "axis", "AxisTensor"), c.all("X")[0].ndim
    c.require(
        -n <= axis < n, "Attr(axis) of concat must name a dimension of X.",
        expected=f"{-n} to {n - 1}", received=axis,
    )  # fmt: skip
    return int(axis % n)


def _infer(c: Context) -> None:
    xs = c.all("X")
    if c.has("AxisTensor") and not c.runtime:
        return c.set("Out", [-1] * xs[0].ndim, xs[0].dtype)
    axis = _axis(c)
    shape = list(xs[0].shape)
    for i, x in enumerate(xs[1:], 1):
        c.require(
            x.ndim == len(shape), "The inputs of concat must have the same rank.",
            expected=f"rank {len(shape)}, as {c.name('X')}", received=f"rank {x.ndim} of {c.name('X', i)}",
        )  # fmt: skip
        for d in range(len(shape)):
            if d == axis:
                shape[d] = -1 if -1 in (shape[d], x.shape[d]) else shape[d] + x.shape[d]
                continue
            c.require(
                shape[d] == x.shape[d] or -1 in (shape[d], x.shape[d]),
                f"The inputs of concat must have the same size in every dimension but {axis}.",
                expected=f"size {shape[d]} in dimension {d}", received=f"size {x.shape[d]} of {c.name('X', i)}",
            )  # fmt: skip
            shape[d] = max(shape[d], x.shape[d])
    return c.set("Out", shape, xs[0].dtype, c.lod("X") if axis else ())


def _parts(b: Binder, whole: np.ndarray) -> list[np.ndarray]:
    """The part of the whole that is each X."""
    axis, start, parts = _axis(b), 0, []
    for x in b.all("X"):
        end = start + x.shape[axis]
        parts.append(whole[(slice(None),) * axis + (slice(start, end),)])
        start = end
    return parts


@op(
    "concat",
    inputs={"X*": "tensors that differ in one size at most", "AxisTensor?": "the axis as a variable of one element"},
    outputs={"Out": "all of them, one after another"},
    attrs={"axis": Attr("int", 0, "the dimension along which they follow each other")},
    infer=_infer,
    grad=default_grad("X", "AxisTensor", "Out@GRAD", wrt=["X"]),
    guard=values_of("AxisTensor"),
    dtype_slot="X",
)
def concat(b: Binder) -> None:
    """Out = the X one after another along ``axis``; the LoD of the first goes on, unless rows are appended.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("concat", {"X": [np.array([1.0]), np.array([2.0, 3.0])]})["Out"]
        array([1., 2., 3.])

    Source: Fluid's concat_op.
    """
    for x, part in zip(b.all("X"), _parts(b, b["Out"]), strict=True):
        b(np.copyto, part, x)


@grad_op("concat_grad", guard=values_of("AxisTensor"), dtype_slot="X")
def concat_grad(b: Binder) -> None:
    """dX = the part of dOut that is X."""
    for i, part in enumerate(_parts(b, b["Out@GRAD"])):
        if b.wants("X@GRAD", i):
            b(np.copyto, b.all("X@GRAD")[i], part)


@kernel("concat", place="cuda")
def _concat_on_cuda(b: Binder) -> None:
    for x, part in zip(b.all("X"), _parts(b, lay(b["Out"])), strict=True):
        move(b, b["Out"], x, to=part)


@kernel("concat_grad", place="cuda")
def _concat_grad_on_cuda(b: Binder) -> None:
    for i, part in enumerate(_parts(b, lay(b["Out@GRAD"]))):
        if b.wants("X@GRAD", i):
            move(b, b.all("X@GRAD")[i], b["Out@GRAD"], of=part)
