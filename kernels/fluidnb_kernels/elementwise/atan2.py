"""atan2: angles of points."""

import numpy as np

from fluidnb.op import Binder, Context, default_grad, grad_op, op
from fluidnb_kernels.arithmetic import values
from fluidnb_kernels.elementwise.launch import CUDA, binary, slopes
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.rules import checked, same_shape


def _infer(c: Context) -> None:
    same_shape(c, "X1", "X2")
    x = c["X1"]
    c.set("Out", x.shape, x.dtype if x.dtype.kind not in "iu" else np.float64, c.lod("X1"))


@op(
    "atan2",
    inputs={"X1: float": "the second coordinates, any shape", "X2: float": "the first coordinates, the shape of X1"},
    outputs={"Out": "angles from -π to π"},
    cost="Out",
    infer=checked(_infer),
    grad=default_grad("X1", "X2", "Out@GRAD"),
    cuda=FLOATS,
)
def atan2(b: Binder) -> None:
    """Out = the angle between the first axis and the point (X2, X1): arctan(X1 / X2) in the right quadrant.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("atan2", {"X1": [1.0, -1.0], "X2": [1.0, -1.0]})["Out"].round(4)
        array([ 0.7854, -2.3562])

    Source: Paddle's atan2_op.
    """
    if b.on_cuda:
        shape = tuple(b["X1"].shape)
        return binary(b, CUDA, "f::atan2", b["X1"], b["X2"], b["Out"], (shape, shape, shape))
    b(np.arctan2, b["X1"], b["X2"], out=b["Out"])


@grad_op("atan2_grad", cuda=FLOATS)
def atan2_grad(b: Binder) -> None:
    """dX1 = dOut · X2 / (X1² + X2²); dX2 = -dOut · X1 / (X1² + X2²)."""
    g, shape = b["Out@GRAD"], tuple(b["X1"].shape)
    if b.on_cuda:
        targets = tuple(b[slot] if b.wants(slot) else None for slot in ("X1@GRAD", "X2@GRAD"))
        return slopes(b, "atan2", (b["X1"], b["X2"], g, g), (targets[0], targets[1]), (shape, shape, shape))
    y, x, slope = values(b, b["X1"], b["X2"], g)
    square = y * y + x * x
    if b.wants("X1@GRAD"):
        (slope * x / square).into(b["X1@GRAD"])
    if b.wants("X2@GRAD"):
        (-(slope * y / square)).into(b["X2@GRAD"])
