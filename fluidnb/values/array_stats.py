"""Array statistics, computed on the array's device; only results are copied to the host."""

from __future__ import annotations

import zlib
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.values.copies import is_on_device, on_host

Array = Any

#: Parts of a histogram.
BINS = 16


class Numbers(NamedTuple):
    """An array in a few numbers.

    Args:
        nan: how many elements are NaN.
        inf: how many are infinite.
        low: the smallest finite one, or None.
        high: the largest finite one, or None.
        norm: square root of the sum of squares of the finite ones.
        zeros: how many are 0.
    """

    nan: int = 0
    inf: int = 0
    low: float | None = None
    high: float | None = None
    norm: float = 0.0
    zeros: int = 0


class Spread(NamedTuple):
    """Distribution of an array's elements: counts, range, moments and histogram.

    Args:
        nan: how many are NaN.
        inf: how many are infinite.
        low: the smallest finite one, or None.
        high: the largest finite one, or None.
        mean: the mean of the finite ones, or None.
        std: their standard deviation, or None.
        histogram: how many finite ones fall in each of equal parts between low and high.
    """

    nan: int = 0
    inf: int = 0
    low: float | None = None
    high: float | None = None
    mean: float | None = None
    std: float | None = None
    histogram: tuple[int, ...] = ()


class Totals(NamedTuple):
    """Totals of a device array from one pass over its elements; all but counts is of the finite ones.

    Args:
        nan: how many are NaN.
        above: how many are infinite.
        below: how many are infinite and negative.
        zeros: how many are 0.
        low: the smallest one; infinity where there is none.
        high: the largest one; minus infinity where there is none.
        total: their sum.
        sizes: the sum of their sizes.
        squares: the sum of their squares.
    """

    nan: float
    above: float
    below: float
    zeros: float
    low: float
    high: float
    total: float
    sizes: float
    squares: float

    @property
    def numbers(self) -> Numbers:
        """The numbers of the array.

        Example:
            >>> Totals(1, 0, 0, 1, -3.0, 4.0, 1.0, 7.0, 25.0).numbers
            Numbers(nan=1, inf=0, low=-3.0, high=4.0, norm=5.0, zeros=1)
        """
        nan, inf = int(self.nan), int(self.above + self.below)
        if self.low > self.high:
            return Numbers(nan, inf)
        return Numbers(nan, inf, self.low, self.high, float(np.sqrt(self.squares)), int(self.zeros))


class ArrayStats:
    """Answers about arrays of the host, and the base of those who answer about a device's.

    Example:
        >>> ArrayStats().numbers(np.array([3.0, -4.0, np.nan]))
        Numbers(nan=1, inf=0, low=-4.0, high=3.0, norm=5.0, zeros=0)
    """

    def numbers(self, array: Array) -> Numbers:
        """An array in a few numbers.

        Args:
            array: not empty, of whole or floating numbers.

        Returns:
            The numbers.
        """
        wide = array.astype(np.float64)
        nan, inf = int(np.isnan(wide).sum()), int(np.isinf(wide).sum())
        finite = wide[np.isfinite(wide)] if nan or inf else wide
        if not finite.size:
            return Numbers(nan, inf)
        norm, zeros = float(np.sqrt(np.square(finite).sum())), int((finite == 0).sum())
        return Numbers(nan, inf, float(finite.min()), float(finite.max()), norm, zeros)

    def holes(self, array: Array) -> tuple[int, int]:
        """The numbers of NaN and of infinite elements.

        Args:
            array: of floating numbers.

        Returns:
            Both counts.
        """
        return int(np.isnan(array).sum()), int(np.isinf(array).sum())

    def spread(self, array: Array, sample: int) -> Spread:
        """Computes the distribution of an array's elements.

        Args:
            array: not empty, of whole or floating numbers.
            sample: upper limit of the sampled elements; a larger array is sampled evenly.

        Returns:
            Mean, deviation, ends and histogram.

        Example:
            >>> found = ArrayStats().spread(np.arange(32.0), 1 << 20); found.mean, found.high, set(found.histogram)
            (15.5, 31.0, {2})
        """
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
        """Whether any element is NaN, infinite, or larger in size than a limit.

        Args:
            array: of floating numbers.
            limit: the largest size allowed.

        Returns:
            True or False.

        Example:
            >>> ArrayStats().beyond(np.array([1.0, -3.0])), ArrayStats().beyond(np.array([1.0, -3.0]), 2.0)
            (False, True)
        """
        if limit < np.inf:
            return bool(array.size) and not (-limit <= array.min() and array.max() <= limit)
        return not (np.isfinite(np.add.reduce(array, None)) or np.isfinite(array).all())

    def norm(self, array: Array, less: Array | None = None) -> float:
        """The square root of the sum of squares of all elements.

        Args:
            array: of whole or floating numbers.
            less: what is taken from it first, an array of its shape of any place.

        Returns:
            The norm; NaN if an element is.

        Example:
            >>> ArrayStats().norm(np.array([3.0, -4.0])), ArrayStats().norm(np.ones(4), np.zeros(4))
            (5.0, 2.0)
        """
        wide = np.asarray(array, np.float64)
        if less is not None:
            wide = wide - np.asarray(on_host(less), np.float64)
        return float(np.sqrt(np.square(wide).sum()))

    def mark(self, array: Array, sample: int) -> Hashable:
        """A hash of the elements.

        Args:
            array: any dtype.
            sample: upper limit of the sampled elements; a larger array is sampled evenly.

        Returns:
            A hash of their bits; hashes of different places are not comparable.
        """
        return zlib.crc32(array.reshape(-1)[:: step_of(array, sample)].tobytes())

    def same(self, array: Array, other: Array) -> bool:
        """Whether two arrays hold the same bits.

        Args:
            array: any dtype.
            other: an array of its shape, dtype and place.

        Returns:
            True or False.

        Example:
            >>> ArrayStats().same(np.array([0.0, np.nan]), np.array([0.0, np.nan]))
            True
        """
        return bool(array.tobytes() == other.tobytes())

    def picked(self, array: Array, *places: Sequence[int] | np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Elements where places along each axis meet, on the host.

        Args:
            array: any dtype.
            places: for each axis, which places along it, none negative.

        Returns:
            An array with as many elements along each axis as there are places.

        Example:
            >>> ArrayStats().picked(np.arange(6).reshape(2, 3), [1], [0, 2])
            array([[3, 5]])
        """
        found: np.ndarray[Any, Any] = array[np.ix_(*(np.asarray(p, np.int64) for p in places))] if places else array
        return found

    def totals(self, array: Array) -> Totals:
        """Totals of an array from one pass on its device.

        Args:
            array: not empty, of whole or floating numbers.

        Returns:
            The totals.

        Raises:
            EnforceNotMet: the array is of the host, where numpy is used instead.
        """
        raise EnforceNotMet("Totals need a device array.", expected="an array of a device", received="one of the host")

    def odd(self, arrays: Sequence[Array]) -> list[bool]:
        """Tests each array for NaN and infinity.

        Args:
            arrays: of floating numbers, all of this place.

        Returns:
            For each, whether it does.

        Example:
            >>> ArrayStats().odd([np.zeros(2), np.array([np.inf])])
            [False, True]
        """
        return [self.beyond(array) for array in arrays]


#: Kind of a place -> who answers about its arrays.
_gauges: dict[str, ArrayStats] = {"cpu": ArrayStats()}


def register_gauge(kind: str, made: ArrayStats) -> None:
    """Say who answers about the arrays of a kind of device.

    Args:
        kind: the place's kind.
        made: the gauge.
    """
    _gauges[kind] = made


def stats_of(array: Array) -> ArrayStats:
    """The statistics backend of an array, selected by its device.

    Args:
        array: of the host, or of a device.

    Returns:
        The backend of its place.

    Example:
        >>> stats_of(np.zeros(2)).numbers(np.zeros(2)).zeros
        2
    """
    return _gauges["cuda" if is_on_device(array) else "cpu"]


def step_of(array: Array, sample: int) -> int:
    """The sampling stride of an array.

    Args:
        array: not empty.
        sample: upper limit of the sampled elements.

    Example:
        >>> step_of(np.zeros(10), 4), step_of(np.zeros(10), 20)
        (3, 1)
    """
    size: int = array.size
    return max(1, -(-size // sample))
