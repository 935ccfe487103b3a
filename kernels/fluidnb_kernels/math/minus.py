"""minus: the difference of two tensors of one shape."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from fluidnb.op import EMPTY, GRAD, Binder, Context, OpDef, OpDesc, grad_names, kernel, op
from fluidnb_kernels.elementwise.launch import CUDA, NUMBERS, binary
from fluidnb_kernels.math.scale import scale_desc
from fluidnb_kernels.rules import same_shape


def _infer(c: Context) -> None:
    same_shape(c, "X", "Y")
    c.set("Out", c["X"].shape, c["X"].dtype, c.lod("X"))


def _grad(desc: OpDesc, definition: OpDef, no_grad: Collection[str]) -> list[OpDesc]:
    g = desc.outs["Out"][0] + GRAD
    sides = ((grad_names(desc, "X", no_grad)[0], 1.0), (grad_names(desc, "Y", no_grad)[0], -1.0))
    return [scale_desc(g, name, sign) for name, sign in sides if name != EMPTY]


@op(
    "minus",
    inputs={"X": "any shape", "Y": "same shape"},
    outputs={"Out": "X - Y"},
    cost="Out",
    infer=_infer,
    grad=_grad,
    inplace=True,
)
def minus(b: Binder) -> None:
    """Out = X - Y; Out inherits X's LoD. The gradients are scales by 1 and -1.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("minus", {"X": [3.0], "Y": [1.0]})["Out"]
        array([2.])

    Source: Fluid's minus_op.
    """
    b(np.subtract, b["X"], b["Y"], out=b["Out"])


@kernel("minus", place="cuda", dtypes=NUMBERS)
def minus_on_cuda(b: Binder) -> None:
    out = b["Out"]
    binary(b, CUDA, "f::sub", b["X"], b["Y"], out, (out.shape,) * 3)
