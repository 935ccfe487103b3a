"""Numpy-like views of device arrays; only the requested elements are copied to the host."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from fluidnb.values.array_stats import Totals, stats_of
from fluidnb.values.copies import is_on_device, on_host

Array = Any
#: Attributes cached on the host; all others are computed on the device.
_KEPT = (np.absolute, np.fabs, np.isnan, np.isinf, np.isfinite)


def _reduction(name: str) -> Callable[..., Any]:
    """A method of `DeviceArray` that is a reduction of numpy's."""

    def reduction(self: DeviceArray, *args: Any, **kw: Any) -> Any:
        return self._reduced(name, args, kw)

    return reduction


class DeviceArray(NDArrayOperatorsMixin):
    """An array of a device that reads as numpy's do, and cannot be written.

    Its largest element, its mean, ``np.isnan(x).any()``, ``abs(x).max()`` and the like are computed on the device;
    parts, and what is printed, are copied alone. Anything else works on a copy of the whole.

    Args:
        kept: one of numpy's functions of a number that is meant to be applied first, or None.
    """

    __slots__ = ("_array", "_kept")

    def __init__(self, array: Array, kept: Any = None) -> None:
        self._array, self._kept = array, kept

    shape = property(lambda self: self._array.shape)
    ndim = property(lambda self: self._array.ndim)
    size = property(lambda self: self._array.size)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        dtype: np.dtype[Any] = self._array.dtype
        return np.dtype(bool) if self._kept in _KEPT[2:] else dtype

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("an array of a device reaches the host as a copy")
        whole = on_host(self._array)
        whole = whole if self._kept is None else self._kept(whole)
        whole = whole if dtype is None else whole.astype(dtype)
        whole.flags.writeable = bool(copy)
        return whole  # type: ignore[no-any-return]

    def copy(self, order: Any = "C") -> np.ndarray[Any, Any]:
        """A copy on the host, which can be written."""
        return np.array(self, order=order)

    def __getitem__(self, index: Any) -> Any:
        part = part_of(self._array, index)
        return part if self._kept is None else self._kept(part)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return int(self.shape[0])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(np.asarray(self), name)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kw: Any) -> Any:
        if method == "__call__" and ufunc in _KEPT and not kw and self._kept is None and self.dtype.kind == "f":
            return DeviceArray(self._array, ufunc)
        return getattr(ufunc, method)(*(np.asarray(x) if isinstance(x, DeviceArray) else x for x in inputs), **kw)

    # ---- computed on the device

    max, min, sum, mean, any, all = map(_reduction, ("max", "min", "sum", "mean", "any", "all"))

    def _reduced(self, name: str, args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
        plain = not args and all(value is None for value in kw.values())
        if plain and self.size and self._array.dtype.kind in "biuf" and self._is_exact(name):
            answer = self._answer(name, stats_of(self._array).totals(self._array))
            if answer is not None:
                return answer
        return getattr(np.asarray(self), name)(*args, **kw)

    def _is_exact(self, name: str) -> bool:
        """Whether a device, which computes in float64, has the host's answer."""
        dtype = self._array.dtype
        return dtype.kind == "f" or (dtype.itemsize < 8 and name in ("max", "min", "any", "all"))

    def _answer(self, name: str, t: Totals) -> Any:
        n = self.size
        infinite, finite = t.above + t.below, n - t.nan - t.above - t.below
        if self._kept in _KEPT[2:]:
            count = int({np.isnan: t.nan, np.isinf: infinite, np.isfinite: finite}[self._kept])
            answers = {"any": np.bool_(count > 0), "all": np.bool_(count == n), "sum": np.int64(count)}
            return answers.get(name, np.float64(count / n) if name == "mean" else None)
        if name in ("any", "all"):
            return np.bool_(t.zeros < n if name == "any" else t.zeros == 0)
        if t.nan:
            return self._array.dtype.type(np.nan)
        if self._kept is None:
            odd = np.nan if t.above and t.below else np.inf if t.above else -np.inf
            low, high = -np.inf if t.below else t.low, np.inf if t.above else t.high
            high = high if finite or t.above else -np.inf
            total = odd if infinite else t.total
        else:
            if name == "min":
                return None
            total = np.inf if infinite else t.sizes
            low, high = 0.0, np.inf if infinite else max(-t.low, t.high)
        value = {"max": high, "min": low, "sum": total, "mean": total / n}[name]
        with np.errstate(over="ignore"):
            return self._array.dtype.type(value)

    # ---- one element, and text

    def __bool__(self) -> bool:
        return bool(np.asarray(self))

    def __float__(self) -> float:
        return float(np.asarray(self))

    def __int__(self) -> int:
        return int(np.asarray(self))

    def __index__(self) -> int:
        return np.asarray(self).__index__()

    def __format__(self, spec: str) -> str:
        return format(np.asarray(self), spec) if spec else str(self)

    def __str__(self) -> str:
        return str(self._printed())

    def __repr__(self) -> str:
        return repr(self._printed())

    def _printed(self) -> np.ndarray[Any, Any]:
        """An array of the host that numpy prints as it would print this one."""
        host = printed(self._array)
        array: np.ndarray[Any, Any] = host if self._kept is None else self._kept(host)
        return array


def part_of(array: Array, index: Any) -> Any:
    """A part of an array on the host; of a device's array, numbers and slices copy that part alone.

    Example:
        >>> part_of(np.arange(6).reshape(2, 3), (slice(None), 1))
        array([1, 4])
    """
    if not is_on_device(array):
        return array[index]
    parts = index if isinstance(index, tuple) else (index,)
    if not all(p is None or p is Ellipsis or _is_number(p) or isinstance(p, slice) for p in parts):
        return on_host(array)[index]
    part = array[parts]
    host = on_host(part) if part.flags.c_contiguous else stats_of(part).picked(part, *map(range, part.shape))
    return host if part.ndim or Ellipsis in parts else host[()]


def _is_number(part: Any) -> bool:
    return isinstance(part, int | np.integer) and not isinstance(part, bool)


def printed(array: Array, threshold: int | None = None, edge: int | None = None) -> np.ndarray[Any, Any]:
    """A host array that numpy prints as another one, with 0 for what it leaves out; None: numpy's print options."""
    options = np.get_printoptions()
    threshold = options["threshold"] if threshold is None else threshold
    edge = options["edgeitems"] if edge is None else edge
    if not is_on_device(array) or array.size <= threshold:
        return on_host(array)  # type: ignore[no-any-return]
    ends = [np.arange(n) if n <= 2 * edge else np.r_[:edge, n - edge : n] for n in array.shape]
    partial = np.zeros(array.shape, array.dtype)  # the system gives memory for the elements that are written alone
    partial[np.ix_(*ends)] = stats_of(array).picked(array, *ends)
    return partial
