"""increment: a counter one step further."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from fluidnb.op import Attr, Binder, Context, OpDef, OpDesc, kernel, op
from fluidnb_kernels.elementwise.launch import NUMBERS
from fluidnb_kernels.math.same_shape import scaled


def _infer(c: Context) -> None:
    x = c["X"]
    c.check_inputs()
    c.set("Out", x.shape, x.dtype, c.lod("X"))


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
    infer=_infer,
    grad=_back,
    inplace=True,
)
def increment(b: Binder) -> None:
    """Out = X + step, in the dtype of X. Its backward takes the step back, so that a loop's counter runs down again.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("increment", {"X": np.array([4])}, {"step": 2.0})["Out"]
        array([6])

    Source: Fluid's increment_op.
    """
    x = b["X"]
    b(np.add, x, b.const(b.attr("step"), x.dtype), out=b["Out"])


@kernel("increment", place="cuda", dtypes=NUMBERS)
def increment_on_cuda(b: Binder) -> None:
    scaled(b, b["X"], b["Out"], bias=b.attr("step"))
