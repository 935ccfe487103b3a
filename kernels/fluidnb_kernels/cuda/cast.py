"""Operands in the dtype that a kernel takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fluidnb.op import Array, Binder
from fluidnb_kernels.cuda.grid import each
from fluidnb_kernels.cuda.source import Source
from fluidnb_kernels.cuda.types import CTYPES, ctype


def _kernels() -> Iterator[str]:
    for one in CTYPES.values():
        for other in CTYPES.values():
            if one != other:
                yield f"cast<{one}, {other}>"


CUDA = Source(__file__, "cast.cu", _kernels)


def of_dtype(b: Binder, x: Array, dtype: Any) -> Array:
    """An array in a dtype: itself, or a workspace into which it is cast."""
    if x.dtype == dtype:
        return x
    out = b.tmp(x.shape, dtype)
    cast(b, x, out)
    return out


def cast(b: Binder, x: Array, out: Array) -> None:
    """Emit a cast."""
    each(b, CUDA, f"cast<{ctype(np.dtype(x.dtype))}, {ctype(np.dtype(out.dtype))}>", x.size, x, out)
