"""pow: a power of each element."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, default_grad, grad_op, op, same
from fluidnb_kernels.emit import made, zeros

Array = Any


@op(
    "pow",
    inputs={"X": "any shape", "FactorTensor?": "the power as a variable of one element, instead of the attribute"},
    outputs={"Out": "X to the power of factor"},
    attrs={"factor": Attr("float", 1.0, "the power")},
    infer=same(),
    grad=default_grad("X", "FactorTensor", "Out@GRAD", wrt=["X"]),
    inplace=True,
    dtype_slot="X",
)
def pow(b: Binder) -> None:
    """Out = X to the power of factor, element by element; the LoD of X goes on to Out.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("pow", {"X": [2.0, 3.0]}, {"factor": 2.0})["Out"]
        array([4., 9.])

    Source: Fluid's activation_op.
    """
    x = b["X"]
    if not b.has("FactorTensor") and b.attr("factor") == 2:
        return b(np.multiply, x, x, out=b["Out"])
    return b(np.power, x, _factor(b, x.dtype), out=b["Out"])


def _factor(b: Binder, dtype: Any) -> Array:
    """The power, in the dtype of X."""
    if not b.has("FactorTensor"):
        return b.const(b.attr("factor", 1.0), dtype)
    factor = b["FactorTensor"].reshape(())
    return factor if factor.dtype == dtype else made(b, np.positive, factor, dtype=dtype)


@grad_op("pow_grad", dtype_slot="X")
def pow_grad(b: Binder) -> None:
    """dX = dOut · factor · X^(factor - 1), and 0 where factor is 0."""
    x, g, dx = b["X"], b["Out@GRAD"], b["X@GRAD"]
    if not b.has("FactorTensor") and b.attr("factor", 1.0) == 0:
        return zeros(b, dx)
    factor = _factor(b, x.dtype)
    t = made(b, np.power, x, made(b, np.subtract, factor, b.const(1, x.dtype)))
    return b(np.multiply, made(b, np.multiply, t, factor), g, out=dx)
