"""scale: a linear function of a tensor."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, OpDef, OpDesc, grad_names, kernel, op, same
from fluidnb_kernels.cuda import wide_dtype
from fluidnb_kernels.elementwise.launch import NUMBERS
from fluidnb_kernels.math.same_shape import scaled
from fluidnb_kernels.rows.device_rows import on_rows_on_cuda, scale_values
from fluidnb_kernels.rows.values import as_x, dtype_of, on_rows, or_rows


def scale_desc(x: str, out: str, factor: float) -> OpDesc:
    """The description of ``out = factor · x``, which many gradients are.

    Example:
        >>> scale_desc("y@GRAD", "x@GRAD", 2.0)
        OpDesc(scale: X=[y@GRAD] -> Out=[x@GRAD])
    """
    attrs = {"scale": factor, "bias": 0.0, "bias_after_scale": True}
    return OpDesc("scale", {"X": [x]}, {"Out": [out]}, attrs)


def scaled_gradients(desc: OpDesc, factor: float, no_grad: Collection[str]) -> list[OpDesc]:
    """A scale operator for the gradient of each variable of X that wants one."""
    source = desc.outs["Out"][0] + "@GRAD"
    return [scale_desc(source, name, factor) for name in grad_names(desc, "X", no_grad) if name != "@EMPTY@"]


def _grad(desc: OpDesc, definition: OpDef, no_grad: Collection[str]) -> list[OpDesc]:
    return scaled_gradients(desc, desc.attrs.get("scale", 1.0), no_grad)


@op(
    "scale",
    inputs={"X": "any shape", "ScaleTensor?": "a factor of one element instead of the attribute"},
    outputs={"Out": "of the shape of X"},
    attrs={
        "scale": Attr("float", 1.0, "the factor"),
        "bias": Attr("float", 0.0, "what is added"),
        "bias_after_scale": Attr("bool", True, "add it after multiplying, not before"),
    },
    cost="X",
    infer=or_rows(same()),
    grad=_grad,
    inplace=True,
    dtype_slot="X",
    rows=as_x,
)
def scale(b: Binder) -> None:
    """Out = scale · X + bias, or scale · (X + bias); Out inherits X's LoD. The gradient is a scale too.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("scale", {"X": [1.0, 2.0]}, {"scale": 10.0, "bias": 1.0})["Out"]
        array([11., 21.])

    Source: Fluid's scale_op.
    """
    if b.is_rows("X"):
        b.require(b.attr("bias") == 0, "scale cannot add to SelectedRows.", expected="bias=0", received=b.attr("bias"))
        return on_rows(b, np.multiply, b.const(b.attr("scale"), dtype_of(b["X"])))
    x, out = b["X"], b["Out"]
    whole = x.dtype.kind in "iu"
    factor, bias = (b.const(int(v) if whole else v, x.dtype) for v in (b.attr("scale"), b.attr("bias")))
    steps: list[tuple[np.ufunc, Any]] = []
    if b.has("ScaleTensor"):
        steps.append((np.multiply, b["ScaleTensor"].reshape(())))
    elif factor != 1:
        steps.append((np.multiply, factor))
    if bias != 0:
        steps.insert(len(steps) if b.attr("bias_after_scale") else 0, (np.add, bias))
    if not steps and x is not out:
        b(np.copyto, out, x)
    for function, operand in steps:
        b(function, x, operand, out=out)
        x = out
    return None


@kernel("scale", place="cuda", dtypes=NUMBERS)
def scale_on_cuda(b: Binder) -> None:
    if b.is_rows("X"):
        b.require(b.attr("bias") == 0, "scale cannot add to SelectedRows.", expected="bias=0", received=b.attr("bias"))
        dtype = dtype_of(b["X"])
        factor = int(b.attr("scale")) if dtype.kind in "iu" else b.attr("scale")
        return on_rows_on_cuda(b, scale_values, None, b.const(factor, wide_dtype(dtype))[()])
    x, out, by = b["X"], b["Out"], b["ScaleTensor"] if b.has("ScaleTensor") else None
    whole = x.dtype.kind in "iu"
    factor, bias = (int(v) if whole else v for v in (b.attr("scale"), b.attr("bias")))
    if x is not out or by is not None or (factor, bias) != (1, 0):
        scaled(b, x, out, factor, bias, first=not b.attr("bias_after_scale"), by=by)
    return None
