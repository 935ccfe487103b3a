"""Operands in the dtype that a kernel takes, the dtype in which it computes, and outputs of another one."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from fluidnb.op import Array, Binder
from fluidnb_kernels.cuda.element_kernels import ElementKernel, describe
from fluidnb_kernels.cuda.grid import each
from fluidnb_kernels.cuda.source import Source
from fluidnb_kernels.cuda.types import CTYPES, ctype


def _kernels() -> Iterator[str]:
    for one in CTYPES.values():
        for other in CTYPES.values():
            if one != other:
                yield f"cast<{one}, {other}>"


CUDA = Source(__file__, "cast.cu", _kernels)
describe("cast", ElementKernel("T U", "x y", "x", {"y": "static_cast<wide_t<{U}>>({x})"}))


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


def wide_dtype(dtype: Any) -> np.dtype[Any]:
    """The dtype in which kernels compute with a floating dtype: ``wide_t`` of ``fluid.cuh``."""
    return np.dtype(np.float32) if dtype.itemsize < 4 else np.dtype(dtype)


def writing_as(b: Binder, out: Array, dtype: Any) -> Array:
    """Array that a kernel writes for an output: the output, or a workspace that `written_as` casts."""
    return out if out.dtype == dtype else b.tmp(out.shape, dtype)


def allocate(b: Binder, slot: str, shape: tuple[int, ...], dtype: Any) -> Array:
    """The array that kernels write for an output: itself, or a workspace if it has another dtype or no consumer."""
    return b.tmp(shape, dtype) if b[slot] is None else writing_as(b, b[slot], dtype)


def settle(b: Binder, slot: str, array: Array) -> None:
    """Cast what `allocate` gave to its output, where it was a workspace for one."""
    if b[slot] is not None:
        written_as(b, b[slot], array)


def written_as(b: Binder, out: Array, array: Array) -> None:
    """Cast what `writing_as` gave, where it was a workspace."""
    if array.dtype != out.dtype:
        cast(b, array, out)
