"""Convolutions with windows of 3 x 3 on the host by Winograd's minimal filtering, F(2 x 2, 3 x 3).

Four results that lie in a square take 16 products in place of 36: those of a transformed square of 4 x 4 elements of
the image by the transformed filter, element by element, which for all channels and squares are 16 products of
matrices. The transforms are sums. Results differ from those of direct products in their last digits.

Source: Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015.
"""

from collections.abc import Sequence
from math import prod
from weakref import WeakValueDictionary

import numpy as np

from fluidnb.memory import flags
from fluidnb.op import Array, Binder
from fluidnb_kernels.cuda.types import address_of
from fluidnb_kernels.emit import reading
from fluidnb_kernels.sliding import Axis, batch_inner

#: Channels and filters from which on it is quicker, and numbers of results: those for which the filter's transform in
#: every run pays too, and those where it is kept.
_CHANNELS, _RESULTS, _FEW_RESULTS = 32, 256, 32
#: Bytes of transformed squares that are computed at once: about what a cache holds.
_BYTES = 1 << 21
_ROW = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]], np.float32)
#: The transform of a filter: 16 numbers of its 9.
_FILTER = np.kron(_ROW, _ROW)
#: That of a filter that is turned by half a circle.
_TURNED = np.ascontiguousarray(_FILTER[:, ::-1])


def pays(b: Binder, x: Array, w: Array, axes: Sequence[Axis], groups: int, kept: bool) -> bool:
    """Whether a convolution of images ``x``, or its gradient, has the form for it and is quicker so.

    Args:
        kept: whether the filter's transform may be kept between runs.
    """
    if x.dtype != np.float32 or groups != 1 or len(axes) != 2 or min(w.shape[:2]) < _CHANNELS:
        return False
    if any(a.window != 3 or a.stride != 1 or a.dilation != 1 or a.low > 2 for a in axes):
        return False
    return len(x) * prod(a.out for a in axes) >= (_FEW_RESULTS if kept and _is_constant(b, w) else _RESULTS)


def convolve(b: Binder, x: Array, w: Array, out: Array, axes: Sequence[Axis]) -> None:
    """Emit the convolution of images [n, c, rows, columns] with a filter [f, c, 3, 3]."""
    _filter_images(b, x, _filters(b, w), out, axes)


def image_gradient(b: Binder, g: Array, w: Array, dx: Array, axes: Sequence[Axis]) -> None:
    """Emit the gradient of the images: a convolution of ``g`` with the filter turned by half a circle."""
    turned = b.tmp((16, *w.shape[:2]), np.float32)
    b(np.matmul, _TURNED, _rows(b, w).T, out=turned.reshape(16, -1))
    back = [Axis(a.out, 3, 1, 1, 2 - a.low, a.size) for a in axes]
    _filter_images(b, g, turned.swapaxes(1, 2), dx, back)


class _Part:
    """Memory for numbers of the squares in some rows of them: [leading…, n, rows, columns], or with n innermost."""

    def __init__(self, b: Binder, leading: tuple[int, ...], rows: int, columns: int, n: int, inner: bool) -> None:
        self._leading, self._columns, self._n, self._inner = leading, columns, n, inner
        self._flat = b.tmp((prod(leading) * rows * columns * n,), np.float32)

    def of(self, rows: int) -> Array:
        """The array for a number of rows, which is at most that of the memory."""
        beside = ((), (self._n,)) if self._inner else ((self._n,), ())
        shape = (*self._leading, *beside[0], rows, self._columns, *beside[1])
        return self._flat[: prod(shape)].reshape(shape)


def _filter_images(b: Binder, x: Array, filters: Array, out: Array, axes: Sequence[Axis]) -> None:
    """Emit the convolution with a filter that is transformed to [16, f, c]."""
    inner, n, (_, count, channels) = batch_inner(x) or batch_inner(out), len(x), filters.shape
    # [c, n, rows, columns], or [c, rows, columns, n] where the batch is innermost in memory
    source, target = (np.moveaxis(a, 0, -1) if inner else a.swapaxes(0, 1) for a in (x, out))
    at, (height, width) = (1 if inner else 2), [-(-a.out // 2) for a in axes]
    most = max(_BYTES, filters.nbytes // 4) // (16 * 4 * max(count, channels) * width * n)
    parts = -(-height // max(1, min(most, height)))
    step = -(-height // parts)
    halves = _Part(b, (2, channels), 2 * height + 2, width + 1, n, inner).of(2 * height + 2)
    _pad(b, source, halves, at, axes)
    rows_of, squares_of, products_of, sums_of, one_of = (
        _Part(b, leading, step, columns, n, inner)
        for leading, columns in (
            ((4, 2, channels), width + 1), ((4, 4, channels), width), ((4, 4, count), width), ((2, 4, count), width),
            ((count,), width),
        )
    )  # fmt: skip
    for first in range(0, height, step):
        last = min(first + step, height)
        rows, squares, products, sums, one = (
            part.of(last - first) for part in (rows_of, squares_of, products_of, sums_of, one_of)
        )
        taps = [halves[_at(at + 1, slice(2 * first + i, 2 * last + i - 1, 2))] for i in range(4)]
        _differences(b, taps, rows)
        for (even, odd), square in zip(rows, squares, strict=True):
            before, behind = _at(at + 1, slice(width)), _at(at + 1, slice(1, None))
            _differences(b, [even[before], odd[before], even[behind], odd[behind]], square)
        b(np.matmul, filters, squares.reshape(16, channels, -1), out=products.reshape(16, count, -1))
        for i, total in enumerate(sums):
            _sum(b, i, products, total, total)
        for second, total in enumerate(sums):
            results = target[_at(at, slice(2 * first + second, 2 * last, 2))]
            for i in (0, 1):
                result = results[_at(at + 1, slice(i, None, 2))]
                kept = tuple(map(slice, result.shape))  # an odd number of rows or columns ends in a square
                _sum(b, i, [part[kept] for part in total], one[kept], result)


def _pad(b: Binder, source: Array, halves: Array, at: int, axes: Sequence[Axis]) -> None:
    """Emit images with their padding, the even columns of it and the odd ones: so they follow each other in memory."""
    rows, columns = axes
    b(np.copyto, halves, b.const(0, np.float32))
    source = source[_at(at, slice(halves.shape[at + 1] - rows.low))]
    for odd, half in enumerate(halves):
        first = (odd - columns.low) % 2
        start = (columns.low + first) // 2
        some = source[_at(at + 1, slice(first, first + 2 * (half.shape[at + 1] - start), 2))]
        inside = slice(rows.low, rows.low + some.shape[at]), slice(start, start + some.shape[at + 1])
        b(np.copyto, half[(*_at(at, inside[0]), inside[1])], some)


def _differences(b: Binder, taps: Sequence[Array], out: Array) -> None:
    """Emit the four differences and sums of four neighbours."""
    one, two, three, four = taps
    b(np.subtract, one, three, out=out[0])
    b(np.add, two, three, out=out[1])
    b(np.subtract, three, two, out=out[2])
    b(np.subtract, two, four, out=out[3])


def _sum(b: Binder, which: int, parts: Sequence[Array], one: Array, out: Array) -> None:
    """Emit the first or the second sum of four products."""
    if which == 0:
        b(np.add, parts[0], parts[1], out=one)
        b(np.add, one, parts[2], out=out)
    else:
        b(np.subtract, parts[1], parts[2], out=one)
        b(np.subtract, one, parts[3], out=out)


def _at(axis: int, index: slice) -> tuple[slice, ...]:
    return (*[slice(None)] * axis, index)


class _Transformed:
    """A filter of a parameter that no run changes, transformed by the first.

    Attributes:
        filters: [16, f, c].
    """

    def __init__(self, b: Binder, count: int, channels: int) -> None:
        self.filters: Array = b.keep((16, count, channels), np.float32)
        self._there = False

    def forget(self) -> None:
        """Transform it at the next run: another program may have been given other values at the same address."""
        self._there = False

    def __call__(self, w: Array, filters: Array) -> None:
        if not (self._there and flags.values["constant_filters"]):
            np.matmul(_FILTER, w.T, out=filters.reshape(16, -1))
            self._there = True


#: Address and shape of a parameter -> its transformed filter, for runs with any batch size.
_transformed: WeakValueDictionary[tuple[int, tuple[int, ...]], _Transformed] = WeakValueDictionary()


def _is_constant(b: Binder, w: Array) -> bool:
    """Whether FLAGS_constant_filters says that a filter stays as it is."""
    if not flags.values["constant_filters"] or w is not b["Filter"] or not w.flags.c_contiguous:
        return False
    return b.memory.is_constant(b.inputs["Filter"][0])


def _rows(b: Binder, w: Array) -> Array:
    """A filter [f, c, 3, 3] as rows of nine numbers."""
    return reading(b, w, (w.shape[0] * w.shape[1], 9))


def _filters(b: Binder, w: Array) -> Array:
    """Emit a filter as 16 matrices [f, c]."""
    if not _is_constant(b, w):
        filters = b.tmp((16, *w.shape[:2]), np.float32)
        b(np.matmul, _FILTER, _rows(b, w).T, out=filters.reshape(16, -1))
        return filters
    key = address_of(w), w.shape
    kept = _transformed.get(key)
    if kept is None:
        kept = _transformed[key] = _Transformed(b, *w.shape[:2])
    kept.forget()
    b(kept, _rows(b, w), kept.filters)
    return kept.filters
