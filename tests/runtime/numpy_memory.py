"""Counting numpy's own allocations of array data: the events that tracemalloc files under numpy's domain.

tracemalloc tells what is held now, not what came and went; so a memory handler (NEP 49) counts it.

An array keeps the handler it was made with and gives its memory back through it, perhaps in the last garbage collection
of the interpreter, when a callback written in Python is gone. So memory is given back by numpy's own function, the
callbacks leave the handler with the ``with``, and the handler itself is never freed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

#: Indices of PyDataMem_SetHandler and PyDataMem_GetHandler in numpy's table of C functions.
_SET_HANDLER, _GET_HANDLER = 304, 305
_NAME = b"mem_handler"
_POINTER, _SIZE, _OBJECT = ctypes.c_void_p, ctypes.c_size_t, ctypes.py_object
_KINDS = {
    "malloc": ctypes.PYFUNCTYPE(_POINTER, _POINTER, _SIZE),
    "calloc": ctypes.PYFUNCTYPE(_POINTER, _POINTER, _SIZE, _SIZE),
    "realloc": ctypes.PYFUNCTYPE(_POINTER, _POINTER, _POINTER, _SIZE),
}


class _Handler(ctypes.Structure):
    """PyDataMem_Handler of numpy/ndarraytypes.h; its functions as addresses."""

    _fields_ = [
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("ctx", _POINTER),
        ("malloc", _POINTER),
        ("calloc", _POINTER),
        ("realloc", _POINTER),
        ("free", _POINTER),
    ]


def _python(name: str, result: Any, *arguments: Any) -> Any:
    """A function of Python's C API."""
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


_address_in = _python("PyCapsule_GetPointer", _POINTER, _OBJECT, ctypes.c_char_p)
_capsule = _python("PyCapsule_New", _OBJECT, _POINTER, ctypes.c_char_p, _POINTER)
_forever = _python("PyMem_RawMalloc", _POINTER, _SIZE)


def _numpy(index: int, result: Any, *arguments: Any) -> Any:
    """A function of numpy's C API."""
    table = ctypes.cast(_address_in(np._core._multiarray_umath._ARRAY_API, None), ctypes.POINTER(_POINTER))
    return ctypes.PYFUNCTYPE(result, *arguments)(table[index])


@contextmanager
def counted() -> Iterator[list[int]]:
    """The sizes in bytes of every block that numpy allocates for array data inside the ``with``.

    Yields:
        A list that grows.
    """
    sizes: list[int] = []
    usual = _numpy(_GET_HANDLER, _OBJECT)()
    handler = _Handler.from_address(_forever(ctypes.sizeof(_Handler)))
    ctypes.memmove(ctypes.addressof(handler), _address_in(usual, _NAME), ctypes.sizeof(_Handler))
    own = {kind: getattr(handler, kind) for kind in _KINDS}
    malloc, calloc, realloc = (_KINDS[kind](address) for kind, address in own.items())

    def count_malloc(ctx: Any, size: int) -> Any:
        sizes.append(size)
        return malloc(ctx, size)

    def count_calloc(ctx: Any, count: int, size: int) -> Any:
        sizes.append(count * size)
        return calloc(ctx, count, size)

    def count_realloc(ctx: Any, ptr: int, size: int) -> Any:
        sizes.append(size)
        return realloc(ctx, ptr, size)

    counting = [make(f) for make, f in zip(_KINDS.values(), (count_malloc, count_calloc, count_realloc), strict=True)]
    handler.name = b"counting"
    for kind, callback in zip(_KINDS, counting, strict=True):
        setattr(handler, kind, ctypes.cast(callback, _POINTER))
    activate = _numpy(_SET_HANDLER, _OBJECT, _OBJECT)
    activate(_capsule(ctypes.addressof(handler), _NAME, None))
    try:
        yield sizes
    finally:
        activate(usual)
        for kind, address in own.items():
            setattr(handler, kind, address)
