"""Dtypes as CUDA C++ calls them, and how many elements fit into one load."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

#: dtype name -> its type in ``fluid.cuh``
CTYPES = {
    "bool": "bool", "uint8": "unsigned char", "int8": "signed char", "int16": "short", "int32": "int",
    "int64": "long long", "float16": "__half", "bfloat16": "__nv_bfloat16", "float32": "float", "float64": "double",
}  # fmt: skip
#: Bytes of the widest load.
_WIDE = 16


@dataclass(frozen=True, slots=True)
class _Named:
    """Predicates on dtypes, for tables of kernels."""

    name: str
    itemsize: int


def elements(names: Iterable[str]) -> list[Any]:
    """The dtypes of a list of kernels; it names those for bfloat16 without ml_dtypes, too.

    Args:
        names: names of dtypes.

    Returns:
        Numpy dtypes, and for bfloat16 something with its name and size.

    Example:
        >>> [(ctype(each), each.itemsize) for each in elements(["float32", "bfloat16"])]
        [('float', 4), ('__nv_bfloat16', 2)]
    """
    return [_Named(name, 2) if name == "bfloat16" else np.dtype(name) for name in names]


def ctype(dtype: Any) -> str:
    """The C++ type of an element.

    Args:
        dtype: a numpy dtype.

    Example:
        >>> ctype(np.dtype("int64"))
        'long long'
    """
    return CTYPES[dtype.name]


def widths(dtype: Any) -> tuple[int, ...]:
    """How many elements of a dtype a thread may take at once, for kernels that come in both widths.

    Args:
        dtype: a numpy dtype.

    Example:
        >>> widths(np.dtype("float16"))
        (1, 8)
    """
    return 1, _WIDE // dtype.itemsize


def vector(*arrays: Any) -> int:
    """How many elements a thread takes at once: as many as fit 16 bytes where all arrays are aligned so, else one.

    Args:
        arrays: contiguous arrays; the first one's dtype counts.

    Returns:
        One of its `widths`.

    Example:
        >>> a = np.zeros(64, np.float32)
        >>> sorted({vector(a[i:]) for i in range(4)})
        [1, 4]
    """
    one, wide = widths(arrays[0].dtype)
    return one if any(address_of(a) % _WIDE for a in arrays) else wide


def address_of(array: Any) -> int:
    """Where an array begins.

    Returns:
        The address.

    Example:
        >>> a = np.zeros(2); address_of(a[1:]) - address_of(a)
        8
    """
    return int(array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr)
