"""The dtype in which kernels compute, and outputs of another one."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Binder
from fluidnb_kernels.cuda.cast import cast

Array = Any


def wide_dtype(dtype: Any) -> np.dtype[Any]:
    """The dtype in which kernels compute with a floating dtype: ``wide_t`` of ``fluid.cuh``.

    Args:
        dtype: a numpy dtype.

    Example:
        >>> wide_dtype(np.dtype("float16")), wide_dtype(np.dtype("float64"))
        (dtype('float32'), dtype('float64'))
    """
    return np.dtype(np.float32) if dtype.itemsize < 4 else np.dtype(dtype)


def writing_as(b: Binder, out: Array, dtype: Any) -> Array:
    """Array that a kernel writes for an output: the output, or a workspace that `written_as` casts.

    Args:
        dtype: the dtype in which the kernel writes.

    Returns:
        An array of that dtype.
    """
    return out if out.dtype == dtype else b.tmp(out.shape, dtype)


def written_as(b: Binder, out: Array, given: Array) -> None:
    """Cast what `writing_as` gave, where it was a workspace.

    Args:
        given: what `writing_as` gave for it.
    """
    if given.dtype != out.dtype:
        cast(b, given, out)
