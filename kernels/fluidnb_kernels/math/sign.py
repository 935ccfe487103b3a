"""sign: -1, 0 or 1."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from fluidnb.op import Binder, OpDef, OpDesc, kernel, op, same
from fluidnb_kernels.elementwise.launch import NUMBERS
from fluidnb_kernels.math.same_shape import signs
from fluidnb_kernels.math.scale import scaled_gradients


def _grad(desc: OpDesc, definition: OpDef, no_grad: Collection[str]) -> list[OpDesc]:
    return scaled_gradients(desc, 0.0, no_grad)


@op("sign", inputs={"X": "any shape"}, outputs={"Out": "-1, 0 or 1"}, cost="X", infer=same(), grad=_grad, inplace=True)
def sign(b: Binder) -> None:
    """Out = -1 where X < 0, 0 where X is 0, 1 where X > 0. The gradient is zero.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("sign", {"X": [-2.0, 0.0, 5.0]})["Out"]
        array([-1.,  0.,  1.])

    Source: Fluid's sign_op.
    """
    b(np.sign, b["X"], out=b["Out"])


kernel("sign", place="cuda", dtypes=NUMBERS)(signs)
