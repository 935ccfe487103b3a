"""scale, increment and sign: functions of each element."""

from collections.abc import Collection
from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, Context, OpDef, OpDesc, grad_names, op, same
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels.cuda import wide_dtype
from fluidnb_kernels.elementwise.launch import NUMBERS
from fluidnb_kernels.math.same_shape import launch, scaled
from fluidnb_kernels.rows.device_rows import on_rows_on_cuda, scale_values
from fluidnb_kernels.rows.values import as_x, dtype_of, on_rows, or_rows
from fluidnb_kernels.rules import checked


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


def _scale_gradient(desc: OpDesc, definition: OpDef, no_grad: Collection[str]) -> list[OpDesc]:
    """The same factor for the gradient, from the attribute or the variable."""
    made = scaled_gradients(desc, desc.attrs.get("scale", 1.0), no_grad)
    for each in made:
        if desc.ins.get("ScaleTensor"):
            each.ins["ScaleTensor"] = desc.ins["ScaleTensor"]
    return made


@op(
    "scale",
    inputs={"X": "any shape", "ScaleTensor?: any[1]": "a factor instead of the attribute"},
    outputs={"Out": "of the shape of X"},
    attrs={
        "scale": Attr("float", 1.0, "the factor"),
        "bias": Attr("float", 0.0, "what is added"),
        "bias_after_scale": Attr("bool", True, "add it after multiplying, not before"),
    },
    cost="X",
    infer=checked(or_rows(same())),
    grad=_scale_gradient,
    inplace=True,
    dtype_slot="X",
    rows=as_x,
    cuda=NUMBERS,
)
def scale(b: Binder) -> None:
    """Out = scale · X + bias, or scale · (X + bias); Out inherits X's LoD. The gradient is a scale too.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("scale", {"X": [1.0, 2.0]}, {"scale": 10.0, "bias": 1.0})["Out"]
        array([11., 21.])

    Source: Fluid's scale_op.
    """
    dtype = dtype_of(b["X"])
    factor, bias = (int(b.attr(name)) if dtype.kind in "iu" else b.attr(name) for name in ("scale", "bias"))
    if b.is_rows("X"):
        b.require(b.attr("bias") == 0, "scale cannot add to SelectedRows.", expected="bias=0", received=b.attr("bias"))
        if b.on_cuda:
            return on_rows_on_cuda(b, scale_values, None, b.const(factor, wide_dtype(dtype))[()])
        return on_rows(b, np.multiply, b.const(b.attr("scale"), dtype))
    x, out, by = b["X"], b["Out"], b["ScaleTensor"] if b.has("ScaleTensor") else None
    if b.on_cuda:
        if x is not out or by is not None or (factor, bias) != (1, 0):
            scaled(b, x, out, factor, bias, first=not b.attr("bias_after_scale"), by=by)
        return None
    factor, bias = b.const(factor, dtype), b.const(bias, dtype)
    steps: list[tuple[np.ufunc, Any]] = []
    if by is not None:
        by = by.reshape(())
        if dtype.kind in "iu" and by.dtype != dtype:
            whole = b.tmp((), dtype)
            b(np.copyto, whole, by, casting="unsafe")
            by = whole
        steps.append((np.multiply, by))
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


def _back(desc: OpDesc, definition: OpDef, no_grad: Collection[str]) -> list[OpDesc]:
    """Inside a loop, backward counts the counter down again."""
    step = -desc.attrs.get("step", 1.0)
    return [OpDesc("increment", {"X": desc.outs["Out"]}, {"Out": desc.ins["X"]}, {"step": step})]


@op(
    "increment",
    inputs={"X: any[1]": "one element"},
    outputs={"Out": "X + step; often X itself"},
    attrs={"step": Attr("float", 1.0, "what is added")},
    cost="X",
    infer=checked(same()),
    grad=_back,
    inplace=True,
    cuda=NUMBERS,
)
def increment(b: Binder) -> None:
    """Out = X + step, in the dtype of X. Its backward takes the step back, so that a loop's counter runs down again.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("increment", {"X": np.array([4])}, {"step": 2.0})["Out"]
        array([6])

    Source: Fluid's increment_op.
    """
    if b.on_cuda:
        return scaled(b, b["X"], b["Out"], bias=b.attr("step"))
    x = b["X"]
    b(np.add, x, b.const(b.attr("step"), x.dtype), out=b["Out"])


@op(
    "sign",
    inputs={"X": "any shape"},
    outputs={"Out": "-1, 0 or 1"},
    cost="X",
    infer=same(),
    grad=lambda desc, definition, no_grad: scaled_gradients(desc, 0.0, no_grad),
    inplace=True,
    cuda=NUMBERS,
)
def sign(b: Binder) -> None:
    """Out = -1 where X < 0, 0 where X is 0, 1 where X > 0. The gradient is zero.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("sign", {"X": [-2.0, 0.0, 5.0]})["Out"]
        array([-1.,  0.,  1.])

    Source: Fluid's sign_op.
    """
    if b.on_cuda:
        return launch(b, "sign", [b["X"], b["Out"]], [])
    return b(np.sign, b["X"], out=b["Out"])


@c_code("scale", "increment", "sign", function="scale")
def _scale_in_c(c: Context) -> dict[str, Constant]:
    whole = c["X"].dtype.kind in "iu"
    number = {"scale": ("scale", "bias"), "increment": ("", "step")}.get(c.definition.type, ("", ""))
    factor, bias = (c.attr(name, default) for name, default in zip(number, (1.0, 0.0), strict=True))
    found: dict[str, Constant] = {"COUNT": c["X"].size}
    found |= {"FACTOR": int(factor), "BIAS": int(bias)} if whole else {"FACTOR": float(factor), "BIAS": float(bias)}
    by = "ScaleTensor[0]" if c.has("ScaleTensor") else "FACTOR"
    after = c.attr("bias_after_scale", True)
    value = "x * FACTOR + BIAS" if after else "(x + BIAS) * FACTOR"
    sign = c.definition.type == "sign"
    return found | {"VALUE": "(x > (T)0) - (x < (T)0)" if sign else value.replace("FACTOR", by)}
