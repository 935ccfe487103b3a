"""Addresses of numpy's own loops, for functions that C code cannot compute with the same bits.

A ufunc is a struct that numpy documents for extension modules (`PyUFuncObject`): its loops get pointers, a count and
strides, and need no lock of the interpreter.
"""

import ctypes
from functools import cache
from typing import Any, NamedTuple


class Loop(NamedTuple):
    """One loop of a ufunc: the address of its function and of the data that the function gets."""

    function: int
    data: int


class _Object(ctypes.Structure):
    _fields_ = (
        ("head", ctypes.c_char * object.__basicsize__),
        ("nin", ctypes.c_int), ("nout", ctypes.c_int), ("nargs", ctypes.c_int), ("identity", ctypes.c_int),
        ("functions", ctypes.POINTER(ctypes.c_void_p)), ("data", ctypes.POINTER(ctypes.c_void_p)),
        ("ntypes", ctypes.c_int), ("reserved", ctypes.c_int),
        ("name", ctypes.c_char_p), ("types", ctypes.POINTER(ctypes.c_char)),
    )  # fmt: skip


@cache
def loop_of(ufunc: Any, chars: str) -> Loop | None:
    """The loop of a ufunc for type characters of inputs and output; None where it has none, or another struct.

    Example:
        >>> loop_of(np.exp, "ff") is None, loop_of(np.exp, "fd")
        (False, None)
    """
    types = [t.replace("->", "") for t in ufunc.types]
    if chars not in types or ufunc.signature is not None:
        return None
    seen = _Object.from_address(id(ufunc))
    if (seen.nin, seen.nout, seen.nargs, seen.ntypes) != (ufunc.nin, ufunc.nout, ufunc.nargs, ufunc.ntypes):
        return None
    if seen.name != ufunc.__name__.encode():
        return None
    at = types.index(chars)
    function = seen.functions[at]
    return None if not function else Loop(function, (seen.data[at] or 0) if seen.data else 0)
