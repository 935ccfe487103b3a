"""Statistics of device arrays, computed on the device; only results are copied to the host."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from fluidnb.op import Array
from fluidnb.values import CPUPlace, CUDAPlace, DeviceContext
from fluidnb.values.array_stats import BINS, ArrayStats, Numbers, Spread, Totals, register_array_stats, step_of
from fluidnb_kernels.cuda import BLOCKS, CTYPES, THREADS, Source, ctype, typed
from fluidnb_kernels.tensor.row_indexing import word
from fluidnb_kernels.tensor.strided_copy import WORDS

#: Blocks of a launch of which each leaves a row that another launch reads, at most.
_ROWS = 256
#: Elements that a thread at least has before there are more blocks.
_LEAST = 8
_FLOATS = ("float16", "bfloat16", "float32", "float64")


CUDA = Source(__file__, "array_stats.cu", typed(
    ("count spread", CTYPES), ("find_odd", _FLOATS), ("pick", WORDS.values()), ("join_counts join_spreads",),
    ("find_other mark", [name for size, name in WORDS.items() if size <= 8]),
))  # fmt: skip


class DeviceArrayStats(ArrayStats):
    """Answers about arrays of CUDA devices; about the host's, for which the emulator serves, too."""

    def totals(self, array: Array, less: Array | None = None, step: int = 1) -> Totals:
        """Sums, extremes and counts of a non-empty array, or of its differences to ``less``."""
        return Totals(*_host(_totals(array, less, step)).tolist())

    def numbers(self, array: Array) -> Numbers:
        """See `ArrayStats`."""
        return self.totals(array).numbers

    def holes(self, array: Array) -> tuple[int, int]:
        """See `ArrayStats`."""
        result = self.totals(array).numbers if array.size else Numbers()
        return result.nan, result.inf

    def spread(self, array: Array, sample: int) -> Spread:
        """See `ArrayStats`."""
        step = step_of(array, sample)
        n, out = -(-array.size // step), _beside(array, (len(Totals._fields) + 1 + BINS,), np.float64)
        totals = out[: len(Totals._fields)]
        _totals(array, None, step, totals)
        rows = _beside(array, (_blocks(n), 1 + BINS), np.float64)
        _launch(f"spread<{ctype(array.dtype)}>", n, array, totals, rows, np.int64(step), np.int64(n))
        _launch("join_spreads", 1, rows, out[len(Totals._fields) :], np.int64(len(rows)))
        result = _host(out).tolist()
        known, (squares, *bins) = Totals(*result[: len(Totals._fields)]), result[len(Totals._fields) :]
        numbers = known.numbers
        fine = n - numbers.nan - numbers.inf
        if not fine:
            return Spread(numbers.nan, numbers.inf)
        mean, std = known.total / fine, float(np.sqrt(squares / fine))
        return Spread(numbers.nan, numbers.inf, known.low, known.high, mean, std, tuple(map(int, bins)))

    def beyond(self, array: Array, limit: float = np.inf) -> bool:
        """See `ArrayStats`."""
        if not array.size or limit == np.inf:
            return self.odd([array])[0]
        known, given = self.totals(array), array.dtype.type
        if known.nan or known.above or known.below:
            return True
        return not (-limit <= given(known.low) and given(known.high) <= limit)

    def norm(self, array: Array, less: Array | None = None) -> float:
        """See `ArrayStats`."""
        if not array.size:
            return 0.0
        if less is not None and (less.shape, less.dtype) != (array.shape, array.dtype):
            return super().norm(_host(array), less)
        if isinstance(less, np.ndarray) and not isinstance(array, np.ndarray):
            less = _context(array).from_host(less)
        known = self.totals(array, less)
        if known.nan:
            return float("nan")
        return float("inf") if known.above or known.below else float(np.sqrt(known.squares))

    def mark(self, array: Array, sample: int) -> Hashable:
        """See `ArrayStats`."""
        if not array.size:
            return 0
        words = _words(array)
        step = step_of(words, sample)
        n = -(-words.size // step)
        rows = _beside(array, (_blocks(n),), np.uint64)
        _launch(f"mark<{word(words)}>", n, words, rows, np.int64(step), np.int64(n))
        return int(_host(rows).sum(dtype=np.uint64))

    def same(self, array: Array, other: Array) -> bool:
        """See `ArrayStats`."""
        result = _beside(array, (1,), np.int32)
        _context(array).clear(result)
        if array.size:
            x, y = _words(array), _words(other)
            _launch(f"find_other<{word(x)}>", x.size, x, y, result, np.int64(x.size), most=BLOCKS)
        return not _host(result).any()

    def picked(self, array: Array, *places: Sequence[int] | np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """See `ArrayStats`."""
        lists = [np.asarray(p, np.int64) for p in places]
        shape = tuple(map(len, lists))
        out = _beside(array, shape, array.dtype)
        if out.size:
            offsets = [p * (step // array.dtype.itemsize) for p, step in zip(lists, array.strides, strict=True)]
            offsets = [np.zeros(1, np.int64)] * (3 - len(offsets)) + offsets
            while len(offsets) > 3:
                offsets[:2] = [np.add.outer(*offsets[:2]).reshape(-1)]
            where = _beside(array, (sum(map(len, offsets)),), np.int64)
            _context(array).fill(where, np.concatenate(offsets))
            first = array[(*[slice(0, 1)] * array.ndim, ...)]  # where it begins, for kernels take no arrays with gaps
            sizes = (np.int64(len(p)) for p in offsets)
            _launch(f"pick<{word(array)}>", out.size, first, where, out, *sizes, np.int64(out.size))
        return _host(out)

    def odd(self, arrays: Sequence[Array]) -> list[bool]:
        """See `ArrayStats`: a launch for each array, and one copy for all of them."""
        result = _beside(arrays[0], (len(arrays),), np.int32)
        _context(arrays[0]).clear(result)
        for i, array in enumerate(arrays):
            if array.size:
                n = array.size
                _launch(f"find_odd<{ctype(array.dtype)}>", n, array, result[i : i + 1], np.int64(n), most=BLOCKS)
        return [bool(bad) for bad in _host(result).tolist()]


def _totals(array: Array, less: Array | None, step: int, out: Array | None = None) -> Array:
    n = -(-array.size // step)
    rows = _beside(array, (_blocks(n), len(Totals._fields)), np.float64)
    out = _beside(array, (len(Totals._fields),), np.float64) if out is None else out
    _launch(f"count<{ctype(array.dtype)}>", n, array, less, rows, np.int64(step), np.int64(n))
    _launch("join_counts", 1, rows, out, np.int64(len(rows)))
    return out


def _blocks(n: int, most: int = _ROWS) -> int:
    return max(1, min(most, -(-n // (THREADS * _LEAST))))


def _launch(kernel: str, n: int, *args: Any, most: int = _ROWS) -> None:
    """Launch a kernel over so many elements; blocks are small where one warp has enough threads."""
    CUDA[kernel]((_blocks(n, most),), (32 if n <= 32 * _LEAST else THREADS,), 0, *args)


def _words(array: Array) -> Array:
    """The elements of an array as whole numbers of 8 bytes at most."""
    return array.reshape(-1).view(f"u{min(array.dtype.itemsize, 8)}")


def _context(array: Array) -> DeviceContext:
    """The context of where an array is."""
    return DeviceContext.get(CPUPlace() if isinstance(array, np.ndarray) else CUDAPlace(array.data.device_id))


def _beside(array: Array, shape: tuple[int, ...], dtype: Any) -> Array:
    return _context(array).empty(shape, dtype)


def _host(array: Array) -> np.ndarray[Any, Any]:
    result: np.ndarray[Any, Any] = _context(array).to_host(array)
    return result


register_array_stats("cuda", DeviceArrayStats())
