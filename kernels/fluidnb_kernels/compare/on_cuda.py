"""Launches of comparisons and logic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fluidnb.op import Binder
from fluidnb_kernels.cuda import CTYPES, Source, vector, widths
from fluidnb_kernels.cuda.cast import of_dtype
from fluidnb_kernels.cuda.grid import each
from fluidnb_kernels.elementwise.broadcast import joined
from fluidnb_kernels.elementwise.on_cuda import binary, function_kernels

_COMPARISONS = ("less_than", "less_equal", "greater_than", "greater_equal", "equal", "not_equal")
_LOGIC = ("logical_and", "logical_or", "logical_xor")
_BOOL = np.dtype(bool)


def _kernels() -> Iterator[str]:
    yield from function_kernels([f"f::{name}" for name in _COMPARISONS], CTYPES, "bool")
    yield from function_kernels([f"f::{name}" for name in _LOGIC], ["bool"])
    yield from (f"logical_not<{width}>" for width in widths(_BOOL))


CUDA = Source(__file__, "compare.cu", _kernels)


def holds(b: Binder, name: str, dtype: Any = None) -> None:
    """Emit a comparison or logic of X and Y.

    Args:
        dtype: the dtype in which operands meet; default the one in which numpy compares them.
    """
    x, y = b["X"], b["Y"]
    common = np.less.resolve_dtypes((x.dtype, y.dtype, None))[0] if dtype is None else np.dtype(dtype)
    binary(b, CUDA, f"f::{name}", of_dtype(b, x, common), of_dtype(b, y, common), b["Out"], joined(b))


def opposite(b: Binder) -> None:
    """Emit Out = not X."""
    x, out = b["X"], b["Out"]
    width = vector(x, out)
    each(b, CUDA, f"logical_not<{width}>", out.size, x, out, per_thread=width)
