"""Dtypes as CUDA C++ calls them, and how many elements fit into one load."""

from __future__ import annotations

from math import gcd
from typing import Any

import numpy as np

#: dtype name -> its type in ``fluid.cuh``
CTYPES = {
    "bool": "bool", "uint8": "unsigned char", "int8": "signed char", "int16": "short", "int32": "int",
    "int64": "long long", "float16": "__half", "bfloat16": "__nv_bfloat16", "float32": "float", "float64": "double",
}  # fmt: skip
#: Bytes of the widest load.
_WIDE = 16


def ctype(dtype: Any) -> str:
    """The C++ type of an element.

    Args:
        dtype: a numpy dtype.

    Example:
        >>> ctype(np.dtype("int64"))
        'long long'
    """
    return CTYPES[dtype.name]


def vector(*arrays: Any) -> int:
    """How many elements a thread may load and store at once: as many as fit 16 bytes where all arrays are aligned.

    Args:
        arrays: contiguous arrays; the first one's dtype counts.

    Returns:
        A power of two.

    Example:
        >>> a = np.zeros(64, np.float32)
        >>> vector(a) in (1, 2, 4), vector(a[1:]) < 4 or vector(a) < 4
        (True, True)
    """
    size: int = arrays[0].dtype.itemsize
    return max(1, gcd(_WIDE, *(_address(a) for a in arrays)) // size)


def _address(array: Any) -> int:
    """Where an array begins: of the host's memory or of a device's."""
    return int(array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr)
