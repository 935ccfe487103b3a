"""Counting numpy's own allocations of array data: the events that tracemalloc files under numpy's domain.

tracemalloc tells what is held now, not what came and went; so a memory handler (NEP 49) counts it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

_libc = ctypes.CDLL(None)
for _name, _arguments in (("malloc", 1), ("calloc", 2), ("realloc", 2), ("free", 1)):
    _function = getattr(_libc, _name)
    _function.restype, _function.argtypes = ctypes.c_void_p, [ctypes.c_void_p] * _arguments

#: Index of PyDataMem_SetHandler in numpy's table of C functions.
_SET_HANDLER = 304
_POINTER, _SIZE = ctypes.c_void_p, ctypes.c_size_t


class _Handler(ctypes.Structure):
    """PyDataMem_Handler of numpy/ndarraytypes.h."""

    _fields_ = [
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("ctx", _POINTER),
        ("malloc", ctypes.PYFUNCTYPE(_POINTER, _POINTER, _SIZE)),
        ("calloc", ctypes.PYFUNCTYPE(_POINTER, _POINTER, _SIZE, _SIZE)),
        ("realloc", ctypes.PYFUNCTYPE(_POINTER, _POINTER, _POINTER, _SIZE)),
        ("free", ctypes.PYFUNCTYPE(None, _POINTER, _POINTER, _SIZE)),
    ]


def _set_handler(handler: Any) -> Any:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = _POINTER, [ctypes.py_object, ctypes.c_char_p]
    table = pointer(np._core._multiarray_umath._ARRAY_API, None)
    address = ctypes.cast(table, ctypes.POINTER(_POINTER))[_SET_HANDLER]
    return ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(address)(handler)


@contextmanager
def counted() -> Iterator[list[int]]:
    """The sizes in bytes of every block that numpy allocates for array data inside the ``with``.

    Yields:
        A list that grows.
    """
    sizes: list[int] = []

    def malloc(_: int, size: int) -> int:
        sizes.append(size)
        return _libc.malloc(size)

    def calloc(_: int, count: int, size: int) -> int:
        sizes.append(count * size)
        return _libc.calloc(count, size)

    def realloc(_: int, ptr: int, size: int) -> int:
        sizes.append(size)
        return _libc.realloc(ptr, size)

    kinds = dict(_Handler._fields_)
    handler = _Handler(
        b"counting", 1, None, kinds["malloc"](malloc), kinds["calloc"](calloc), kinds["realloc"](realloc),
        kinds["free"](lambda _, ptr, size: _libc.free(ptr)),
    )  # fmt: skip
    _kept.append(handler)  # arrays made meanwhile are freed through it, whenever that is
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [_POINTER, ctypes.c_char_p, _POINTER]
    old = _set_handler(make(ctypes.addressof(handler), b"mem_handler", None))
    try:
        yield sizes
    finally:
        _set_handler(old)


_kept: list[_Handler] = []
