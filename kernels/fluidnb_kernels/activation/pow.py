"""pow: a power of each element."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, default_grad, grad_op, kernel, op, same
from fluidnb_kernels.cuda import CTYPES, Source, ctype
from fluidnb_kernels.cuda.cast import of_dtype
from fluidnb_kernels.cuda.grid import each
from fluidnb_kernels.emit import FLOATS, made, zeros
from fluidnb_kernels.tensor.moves import fill

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


def _kernels() -> Iterator[str]:
    yield from (f"powers<{CTYPES[dtype]}>" for dtype in (*FLOATS, "int32", "int64"))
    yield from (f"powers_grad<{CTYPES[dtype]}>" for dtype in FLOATS)


CUDA = Source(__file__, "pow.cu", _kernels)


def _given(b: Binder, dtype: Any) -> tuple[Array | None, np.float64]:
    """The variable of one element that holds the power, or None; and the attribute."""
    given = of_dtype(b, b["FactorTensor"], dtype) if b.has("FactorTensor") else None
    return given, np.float64(b.attr("factor", 1.0))


@kernel("pow", place="cuda", dtypes=(*FLOATS, "int32", "int64"))
def _on_cuda(b: Binder) -> None:
    x = b["X"]
    each(b, CUDA, f"powers<{ctype(x.dtype)}>", x.size, x, b["Out"], *_given(b, x.dtype))


@kernel("pow_grad", place="cuda", dtypes=FLOATS)
def _grad_on_cuda(b: Binder) -> None:
    x, dx = b["X"], b["X@GRAD"]
    if not b.has("FactorTensor") and b.attr("factor", 1.0) == 0:
        return fill(b, dx)
    return each(b, CUDA, f"powers_grad<{ctype(x.dtype)}>", x.size, x, b["Out@GRAD"], dx, *_given(b, x.dtype))
