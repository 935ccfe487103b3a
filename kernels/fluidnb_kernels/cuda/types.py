"""Dtypes as CUDA C++ calls them, and how many elements fit into one load."""

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np

#: dtype name -> its type in ``fluid.cuh``
CTYPES = {
    "bool": "bool", "uint8": "unsigned char", "int8": "signed char", "int16": "short", "int32": "int",
    "int64": "long long", "float16": "__half", "bfloat16": "__nv_bfloat16", "float32": "float", "float64": "double",
}  # fmt: skip
#: Bytes of the widest load.
_WIDE = 16


class _Named(NamedTuple):
    """Predicates on dtypes, for tables of kernels."""

    name: str
    itemsize: int


def elements(names: Iterable[str]) -> list[Any]:
    """The dtypes of a list of kernels; one with the name and size of bfloat16 without ml_dtypes, too."""
    return [_Named(name, 2) if name == "bfloat16" else np.dtype(name) for name in names]


def typed(*rows: tuple[Any, ...]) -> Callable[[], Iterator[str]]:
    """Kernels of a source: for each row its names, with each combination of the types for its template arguments.

    Example:
        >>> list(typed(("ways joined",), ("dots", ("float32", "float16"), ("true", "false")))())
        ['ways', 'joined', 'dots<float, true>', 'dots<float, false>', 'dots<__half, true>', 'dots<__half, false>']
    """

    def names() -> Iterator[str]:
        for kernels, *types in rows:
            for arguments in product(*types):
                suffix = f"<{', '.join(CTYPES.get(t, t) for t in arguments)}>" if arguments else ""
                yield from (name + suffix for name in kernels.split())

    return names


def ctype(dtype: Any) -> str:
    """The C++ type of an element."""
    return CTYPES[dtype.name]


def widths(dtype: Any) -> tuple[int, ...]:
    """The two numbers of elements that a thread may take at once."""
    return 1, _WIDE // dtype.itemsize


def vector(*arrays: Any) -> int:
    """Elements per thread: as many as fit 16 bytes where all arrays are aligned, else one."""
    one, wide = widths(arrays[0].dtype)
    return one if any(address_of(a) % _WIDE for a in arrays) else wide


def address_of(array: Any) -> int:
    """The address of an array."""
    return int(array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr)
