"""Functions of compiled libraries as Python callables that cost what a built-in function costs."""

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

#: Libraries that are loaded: they stay, since callables may refer to them.
_libraries: dict[Path, Any] = {}
#: ``METH_O`` of Python's C API: a function of one argument.
_ONE_ARGUMENT = 8
_api: Any = ctypes.pythonapi
_make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
    ("PyCFunction_NewEx", _api)
)
_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
    ("PyCapsule_New", _api)
)


class _Method(ctypes.Structure):
    """``PyMethodDef`` of Python's C API."""

    _fields_ = (
        ("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p),
    )  # fmt: skip


#: (library, name) -> its method, which Python reads until the last callable of it is gone.
_methods: dict[tuple[Path, str], _Method] = {}


class Bound:
    """The numbers that a function reads, and the arrays whose addresses are among them."""

    __slots__ = ("kept", "table")

    def __init__(self, table: Sequence[int], kept: Sequence[Any]) -> None:
        self.table = (ctypes.c_int64 * len(table))(*table)
        self.kept = tuple(kept)


def bound_call(path: Path, name: str, table: Sequence[int], kept: Sequence[Any]) -> tuple[Any, tuple[Bound]]:
    """A call of a function of a library: a callable and its argument, which keeps alive what the function uses."""
    method = _methods.get((path, name))
    if method is None:
        if path not in _libraries:
            _libraries[path] = ctypes.PyDLL(str(path))
        address = ctypes.cast(_libraries[path][name], ctypes.c_void_p).value
        method = _methods[path, name] = _Method(b"native", address, _ONE_ARGUMENT, None)
    bound = Bound(table, kept)
    capsule = _capsule(ctypes.addressof(bound.table), None, None)
    return _make(ctypes.addressof(method), capsule, None), (bound,)
