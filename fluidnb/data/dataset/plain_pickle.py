"""Pickles of plain values and numpy arrays, read without trusting them: no name in the file is ever imported or called.

CIFAR's batches are dicts of texts, ints, lists and arrays of bytes, written by Python 2. The few names that such a
pickle needs (numpy's array and dtype) stand here for small classes of this file; any other name is refused.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np

from fluidnb.errors import EnforceNotMet


class _Dtype:
    """What ``numpy.dtype(code, align, copy)`` and its state say, for plain numbers only."""

    def __init__(self, code: Any, *_: Any) -> None:
        self.code = code.decode("ascii") if isinstance(code, bytes) else str(code)
        self.order = "|"

    def __setstate__(self, state: Any) -> None:
        order = state[1]
        self.order = order.decode("ascii") if isinstance(order, bytes) else str(order)

    def dtype(self) -> np.dtype[Any]:
        if self.code[:1] not in "uif" or not self.code[1:].isdigit() or self.order not in "<>|=":
            raise pickle.UnpicklingError(f"arrays of {self.code} are not plain numbers")
        return np.dtype(self.order + self.code)


class _Array:
    """An array while it is read: made empty, then given its state."""

    state: tuple[Any, ...] = ()

    def __init__(self, *_: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def array(self) -> np.ndarray[Any, Any]:
        try:
            _, shape, kind, by_columns, data = self.state
            flat = np.frombuffer(data, kind.dtype())
            return flat.reshape(shape, order="F" if by_columns else "C")
        except (AttributeError, TypeError, ValueError) as e:
            raise pickle.UnpicklingError(f"an array in it has no sound state ({e})") from None


class _Unset:
    """The class ``numpy.ndarray``, which a pickle only mentions."""


def _encode(text: str, encoding: str) -> bytes:
    """How Python 3 writes bytes in an old protocol."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"bytes in {encoding}")
    return text.encode("latin1")


_NAMES: dict[tuple[str, str], Any] = {("numpy", "ndarray"): _Unset, ("numpy", "dtype"): _Dtype}
_NAMES |= {(f"numpy.{core}.multiarray", "_reconstruct"): _Array for core in ("core", "_core")}
_NAMES["_codecs", "encode"] = _encode


class _Plain(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _NAMES:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no plain data needs")
        return _NAMES[module, name]

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError("it refers to something outside of it")


def load(data: bytes, source: str) -> dict[bytes, Any]:
    """A dict of plain values out of a pickle, written by Python 2 or 3.

    Args:
        data: the pickle.
        source: where it is from, for errors.

    Returns:
        The dict; texts of Python 2 are bytes, arrays are read-only.

    Raises:
        EnforceNotMet: it asks for anything but plain values, or is no pickle of a dict.

    Example:
        >>> load(pickle.dumps({b"labels": [3, 4]}, 2), "a batch")
        {b'labels': [3, 4]}
        >>> load(pickle.dumps(print, 2), "a batch")
        Traceback (most recent call last):
        fluidnb.errors.EnforceNotMet: a batch is not the plain data that it should be: it asks for ...
          ...
    """
    try:
        value = _Plain(io.BytesIO(data), encoding="bytes").load()
        if not isinstance(value, dict):
            raise pickle.UnpicklingError(f"it holds a {type(value).__name__}, no dict")
        return {k: v.array() if isinstance(v, _Array) else v for k, v in value.items()}
    except Exception as e:  # a damaged pickle can raise anything
        raise EnforceNotMet(
            f"{source} is not the plain data that it should be: {e}.",
            hint="it was not read any further; do not use files from an unknown origin.",
        ) from None
