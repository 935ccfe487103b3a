"""Array statistics, computed on the array's device; only results are copied to the host."""

import zlib
from collections.abc import Hashable, Sequence
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.values.copies import is_on_device, on_host

Array = Any
#: Parts of a histogram.
BINS = 16


class Numbers(NamedTuple):
    """An array in a few numbers."""

    nan: int = 0  # how many elements are NaN
    inf: int = 0  # how many are infinite
    low: float | None = None  # the smallest finite one, or None
    high: float | None = None  # the largest finite one, or None
    norm: float = 0.0  # square root of the sum of squares of the finite ones
    zeros: int = 0  # how many are 0


class Spread(NamedTuple):
    """Distribution of an array's elements: counts, range, moments and histogram."""

    nan: int = 0  # how many are NaN
    inf: int = 0  # how many are infinite
    low: float | None = None  # the smallest finite one, or None
    high: float | None = None  # the largest finite one, or None
    mean: float | None = None  # the mean of the finite ones, or None
    std: float | None = None  # their standard deviation, or None
    histogram: tuple[int, ...] = ()  # how many finite ones fall in each of equal parts between low and high


class Totals(NamedTuple):
    """Totals of a device array from one pass over its elements; all but counts is of the finite ones."""

    nan: float  # how many are NaN
    above: float  # how many are infinite
    below: float  # how many are infinite and negative
    zeros: float  # how many are 0
    low: float  # the smallest one; infinity where there is none
    high: float  # the largest one; minus infinity where there is none
    total: float  # their sum
    sizes: float  # the sum of their sizes
    squares: float  # the sum of their squares

    @property
    def numbers(self) -> Numbers:
        """The numbers of the array."""
        nan, inf = int(self.nan), int(self.above + self.below)
        if self.low > self.high:
            return Numbers(nan, inf)
        return Numbers(nan, inf, self.low, self.high, float(np.sqrt(self.squares)), int(self.zeros))


class ArrayStats:
    """Statistics of host arrays, and the base of those of device arrays."""

    def numbers(self, array: Array) -> Numbers:
        """Counts, range and norm of a nonempty array of numbers."""
        wide = array.astype(np.float64)
        nan, inf = int(np.isnan(wide).sum()), int(np.isinf(wide).sum())
        finite = wide[np.isfinite(wide)] if nan or inf else wide
        if not finite.size:
            return Numbers(nan, inf)
        norm, zeros = float(np.sqrt(np.square(finite).sum())), int((finite == 0).sum())
        return Numbers(nan, inf, float(finite.min()), float(finite.max()), norm, zeros)

    def holes(self, array: Array) -> tuple[int, int]:
        """The numbers of NaN and of infinite elements."""
        return int(np.isnan(array).sum()), int(np.isinf(array).sum())

    def spread(self, array: Array, sample: int) -> Spread:
        """The distribution of a nonempty array's elements."""
        flat = array.reshape(-1)[:: step_of(array, sample)].astype(np.float64)
        fine = np.isfinite(flat)
        nan, inf = (0, 0) if fine.all() else self.holes(flat)
        flat = flat[fine]
        if not flat.size:
            return Spread(nan, inf)
        low, high = float(flat.min()), float(flat.max())
        counts = np.histogram(flat, bins=BINS, range=(low, high) if high > low else (low - 0.5, high + 0.5))[0]
        return Spread(nan, inf, low, high, float(flat.mean()), float(flat.std()), tuple(counts.tolist()))

    def beyond(self, array: Array, limit: float = np.inf) -> bool:
        """Whether any element is NaN, infinite, or larger in size than a limit."""
        if limit < np.inf:
            return bool(array.size) and not (-limit <= array.min() and array.max() <= limit)
        flat = array.ravel("K")  # a view of arrays without gaps
        # BLAS takes a third of the time of a sum; squares of numbers that are all finite can be too large, rarely
        total = np.dot(flat, flat) if array.dtype.char in "fd" else np.add.reduce(flat)
        return not (isfinite(total) or np.isfinite(array).all())

    def norm(self, array: Array, less: Array | None = None) -> float:
        """The square root of the sum of squares of all elements, after subtracting ``less`` (of any place)."""
        wide = np.asarray(array, np.float64)
        if less is not None:
            wide = wide - np.asarray(on_host(less), np.float64)
        return float(np.sqrt(np.square(wide).sum()))

    def mark(self, array: Array, sample: int) -> Hashable:
        """A hash of the elements' bits; hashes of different places are not comparable."""
        return zlib.crc32(array.reshape(-1)[:: step_of(array, sample)].tobytes())

    def same(self, array: Array, other: Array) -> bool:
        """Whether two arrays of one shape, dtype and place have the same bits."""
        return bool(array.tobytes() == other.tobytes())

    def picked(self, array: Array, *places: Sequence[int] | np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The elements at given indices along each axis, none negative, on the host."""
        elements: np.ndarray[Any, Any] = array[np.ix_(*(np.asarray(p, np.int64) for p in places))] if places else array
        return elements

    def totals(self, array: Array) -> Totals:
        """Totals of a nonempty array from one pass on its device."""
        raise EnforceNotMet("Totals need a device array.", expected="an array of a device", received="one of the host")

    def odd(self, arrays: Sequence[Array]) -> list[bool]:
        """Tests each array for NaN and infinity."""
        return [self.beyond(array) for array in arrays]


#: Kind of a place -> statistics of its arrays.
_backends: dict[str, ArrayStats] = {"cpu": ArrayStats()}


def register_array_stats(kind: str, backend: ArrayStats) -> None:
    """Registers the statistics backend of a kind of device."""
    _backends[kind] = backend


def stats_of(array: Array) -> ArrayStats:
    """The statistics backend of an array, selected by its device."""
    return _backends["cuda" if is_on_device(array) else "cpu"]


def step_of(array: Array, sample: int) -> int:
    """The sampling stride of a nonempty array."""
    size: int = array.size
    return max(1, -(-size // sample))
