"""Parts of older numpy that old scripts use, while Paddle's names are installed.

Old numpy converted arrays of one element to numbers: ``float(loss)``, ``"%.2f" % loss``. Fetched arrays and targets of
data sets do so by their class (`fluidnb.values.one_element_array`), but ``np.array(loss)`` drops the class of an array.
So ``np.array`` and ``np.asarray`` keep it for these arrays and for tensors, in calls from user code only. They also
make arrays of lists from rows of several lengths, as before numpy 1.24.

Source: NumPy 1.20 to 2.4 release notes, expired deprecations.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from fluidnb.values.one_element_array import OldArray
from fluidnb.values.tensor import LoDTensor

#: removed name -> its value
NAMES = {
    "Inf": np.inf, "NAN": np.nan, "NINF": -np.inf, "NaN": np.nan, "PINF": np.inf, "alltrue": np.all,
    "asscalar": lambda a: a.item(), "complex": complex, "complex_": np.complex128, "cumproduct": np.cumprod,
    "float": float, "float_": np.float64, "infty": np.inf, "int": int, "object": object, "product": np.prod,
    "row_stack": np.vstack, "sometrue": np.any, "str": str, "string_": np.bytes_, "unicode": str,
    "unicode_": np.str_,
}  # fmt: skip

#: Packages that get plain arrays, as without compat mode.
_PLAIN = ("fluidnb", "fluidnb_kernels", "fluidnb_magics", "numpy")
_replaced: dict[str, Any] = {}
_added: list[str] = []


def install() -> None:
    """Give numpy its removed names, and conversions that keep the class of fetched arrays."""
    for name in ("array", "asarray"):
        _replaced[name] = getattr(np, name)
        setattr(np, name, _keeping_class(_replaced[name]))
    for name, value in NAMES.items():
        if name not in vars(np):
            setattr(np, name, value)
            _added.append(name)


def uninstall() -> None:
    """Undo `install`."""
    for name, function in _replaced.items():
        setattr(np, name, function)
    for name in _added:
        delattr(np, name)
    _replaced.clear()
    _added.clear()


def _keeping_class(convert: Callable[..., Any]) -> Callable[..., Any]:
    """A conversion to arrays that gives an OldArray for fetched values in user code."""

    @functools.wraps(convert)
    def converted(*args: Any, **options: Any) -> Any:
        try:
            array = convert(*args, **options)
        except ValueError:
            # Rows of several lengths were an array of lists before numpy 1.24.
            if len(args) != 1 or not isinstance(args[0], list | tuple) or "dtype" in options or not _is_users():
                raise
            array = convert(*args, dtype=object, **options)
        if type(array) is np.ndarray and args and _is_fetched(args[0]) and _is_users():
            return array.view(OldArray)
        return array

    return converted


def _is_users() -> bool:
    """Whether the caller of this function is called by user code."""
    caller: str = sys._getframe(2).f_globals.get("__name__", "")
    return caller.partition(".")[0] not in _PLAIN


def _is_fetched(value: Any) -> bool:
    """Whether a value is a fetched array or tensor, or a list that starts with one."""
    if type(value) in (list, tuple) and value:
        value = value[0]
    return isinstance(value, OldArray | LoDTensor)
