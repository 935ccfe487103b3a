"""clip: values held between two bounds."""

from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, op, same
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels.arithmetic import values
from fluidnb_kernels.elementwise.launch import NUMBERS
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.math.same_shape import bounds, held_between
from fluidnb_kernels.rows.device_rows import clip_values, on_rows_on_cuda
from fluidnb_kernels.rows.values import as_x, dtype_of, on_rows, or_rows
from fluidnb_kernels.rules import checked


def _bounds(b: Binder) -> tuple[Any, Any]:
    """The two bounds: inputs where they are given, else attributes."""
    dtype = dtype_of(b["X"])
    low = b["Min"].reshape(()) if b.has("Min") else b.const(b.attr("min"), dtype)
    high = b["Max"].reshape(()) if b.has("Max") else b.const(b.attr("max"), dtype)
    return low, high


@op(
    "clip",
    inputs={"X": "any shape", "Min?: any[1]": "a lower bound", "Max?: any[1]": "an upper bound"},
    outputs={"Out": "X limited to [min, max]"},
    attrs={"min": Attr("float", doc="lower bound"), "max": Attr("float", doc="upper bound")},
    check=lambda a: "max should be greater than min." if a["max"] < a["min"] else None,
    cost="2 * X",
    infer=checked(or_rows(same())),
    grad=default_grad("X", "Min", "Max", "Out@GRAD", wrt=["X"]),
    inplace=True,
    dtype_slot="X",
    rows=as_x,
    cuda=NUMBERS,
)
def clip(b: Binder) -> None:
    """Out = min(max(X, min), max); Out inherits X's LoD.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("clip", {"X": [-2.0, 0.5, 5.0]}, {"min": -1.0, "max": 1.0})["Out"]
        array([-1. ,  0.5,  1. ])

    Source: Fluid's clip_op.
    """
    if b.on_cuda:
        if b.is_rows("X"):
            return on_rows_on_cuda(b, clip_values, *bounds(b, dtype_of(b["X"])), merge=True)
        return held_between(b, "clip", b["X"], b["Out"])
    low, high = _bounds(b)
    if b.is_rows("X"):
        return on_rows(b, np.clip, low, high, merge=True)
    b(np.maximum, b["X"], low, out=b["Out"])
    return b(np.minimum, b["Out"], high, out=b["Out"])


@grad_op("clip_grad", dtype_slot="X", cuda=FLOATS)
def clip_grad(b: Binder) -> None:
    """dX = dOut where min < X < max, 0 elsewhere."""
    if b.on_cuda:
        return held_between(b, "clip_grad", b["X"], b["Out@GRAD"], b["X@GRAD"])
    x, (low, high) = b["X"], _bounds(b)
    v, g = values(b, x, b["Out@GRAD"])
    (g * np.logical_and(v > low, v < high)).into(b["X@GRAD"])


@c_code("clip", "clip_grad")
def _clip_in_c(c: Context) -> dict[str, Constant]:
    whole = c["X"].dtype.kind in "iu"
    found: dict[str, Constant] = {"COUNT": c["X"].size}
    for name, slot, attr in (("LOW", "Min", "min"), ("HIGH", "Max", "max")):
        found[name] = f"{slot}[0]" if c.has(slot) else int(c.attr(attr)) if whole else float(c.attr(attr))
    return found
