"""Convolutions on the host: images unrolled into columns, and products of matrices.

Windows are unrolled into columns a few rows at a time, so that they stay in the cache. Where the batch is innermost in
memory, one product serves the whole batch; otherwise there is a product for each image.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod

import numpy as np

from fluidnb.memory import strided
from fluidnb.op import Array, Binder
from fluidnb_kernels.conv import depthwise, winograd
from fluidnb_kernels.cuda import Source, ctype, each, elements, wide_dtype
from fluidnb_kernels.cuda.sliding_windows import numbers_of
from fluidnb_kernels.emit import FLOATS, reading, writing, written
from fluidnb_kernels.sliding import Axis, batch_inner, image, padded
from fluidnb_kernels.tensor.strided_copy import WORDS


def _kernels() -> Iterator[str]:
    yield from (f"columns<{WORDS[size]}>" for size in (2, 4, 8))
    for dtype in elements(FLOATS):
        for column in dict.fromkeys((dtype, wide_dtype(dtype))):
            yield f"images<{ctype(column)}, {ctype(dtype)}>"


CUDA = Source(__file__, "im2col.cu", _kernels)


def depth_of(x: Array, axes: Sequence[Axis]) -> int:
    """The number of rows of columns: elements of a window in all channels."""
    return int(x.shape[1]) * prod(a.window for a in axes)


def to_columns(b: Binder, x: Array, columns: Array, axes: Sequence[Axis], together: bool = False) -> None:
    """Emit the windows of images as columns [n, depth, windows], or [depth, n, windows] with ``together``."""
    n, channels, places = len(x), x.shape[1], prod(a.out for a in axes)
    steps = (places, n * places) if together else (depth_of(x, axes) * places, places)
    count = n * channels * places
    kernel = f"columns<{WORDS[x.dtype.itemsize]}>"
    each(b, CUDA, kernel, count, x, columns, *numbers_of(axes), *map(np.int64, (channels, *steps)))


def to_images(b: Binder, columns: Array, x: Array, axes: Sequence[Axis]) -> None:
    """Emit images whose elements are the sums of those of columns that came from them."""
    kernel = f"images<{ctype(columns.dtype)}, {ctype(x.dtype)}>"
    each(b, CUDA, kernel, x.size, columns, x, *numbers_of(axes))


#: Bytes of columns that are made at once: what stays in the cache.
COLUMNS = 1 << 19
#: Products up to this many multiplications go without repacking in BLAS, which pays where filters are small.
SMALL = 1_000_000


class Unrolled:
    """The windows of a batch of images [n, c, …] as columns."""

    def __init__(self, b: Binder, x: Array, axes: Sequence[Axis], filters: int, groups: int, inner: bool) -> None:
        self.b, self.axes, self.count, self.groups, self.inner = b, axes, filters, groups, inner
        self.n, self.c, self.dtype = x.shape[0], x.shape[1], x.dtype
        self.window, self.out = tuple(a.window for a in axes), tuple(a.out for a in axes)
        #: The columns of a window of one element are the image itself.
        self.is_image = self.out == x.shape[2:] and all(a.window == a.stride == 1 and a.reach == a.size for a in axes)
        self._buffer: Array = None

    def chunks(self) -> Iterator[tuple[slice, slice]]:
        """The parts, as images and rows of windows."""
        rows = self.out[0]
        if self.n == 0:
            return
        if self.is_image:
            yield slice(0, self.n), slice(0, rows)
            return
        row = self.c * prod(self.window) * prod(self.out[1:]) * self.dtype.itemsize
        images, step = self.n, rows
        if self.inner:
            row *= self.n
            work = row // self.dtype.itemsize // self.groups * (self.count // self.groups)
            step = min(COLUMNS // row, max(SMALL // work, 1)) if work <= SMALL else COLUMNS // row
        elif row * rows > COLUMNS:
            images, step = 1, COLUMNS // row
        else:
            images = COLUMNS // (row * rows)
        step, images = max(1, min(step, rows)), max(1, min(images, self.n))
        for first in range(0, self.n, images):
            for top in range(0, rows, step):
                yield slice(first, min(first + images, self.n)), slice(top, min(top + step, rows))

    def buffer(self, images: slice, rows: slice) -> Array:
        """A workspace for the columns of a part: [n, c, window…, rows, …] in the memory order of columns."""
        n = images.stop - images.start
        shape = (self.c, *self.window, rows.stop - rows.start, *self.out[1:])
        if self._buffer is None:  # the first part is the largest
            self._buffer = self.b.tmp((n * prod(shape),), self.dtype)
        flat = self._buffer[: n * prod(shape)]
        return np.moveaxis(flat.reshape(*shape, n), -1, 0) if self.inner else flat.reshape(n, *shape)

    def columns(self, whole: Array, images: slice, rows: slice) -> Array:
        """Emit the columns of a part of padded images; gives them as matrices."""
        if self.is_image:
            return self.matrix(whole, images, rows)
        target = self.buffer(images, rows)
        part = whole[images, :, rows.start * self.axes[0].stride :]
        n, c, *steps = part.strides
        strides = (n, c, *(s * a.dilation for s, a in zip(steps, self.axes, strict=True)),
                   *(s * a.stride for s, a in zip(steps, self.axes, strict=True)))  # fmt: skip
        source = strided(part, target.shape, strides)
        if self.inner:
            self.b(np.copyto, np.moveaxis(target, 0, -1), np.moveaxis(source, 0, -1))
        else:
            self.b(np.copyto, target, source)
        return self.matrices(target)

    def matrices(self, columns: Array) -> Array:
        """Columns as matrices [groups, channels and window, places] or one of these for each image."""
        depth = self.c // self.groups * prod(self.window)
        if self.inner:
            return np.moveaxis(columns, 0, -1).reshape(self.groups, depth, -1)
        return columns.reshape(columns.shape[0], self.groups, depth, -1)

    def matrix(self, y: Array, images: slice, rows: slice) -> Array:
        """A part of an image, in the order of columns, as matrices [groups, channels, places] (for each image)."""
        depth = y.shape[1] // self.groups
        if self.inner:
            return np.moveaxis(y, 0, -1)[:, rows].reshape(self.groups, depth, -1)
        part = y[images, :, rows]
        return part.reshape(part.shape[0], self.groups, depth, -1)

    def dense(self, y: Array, copied: bool) -> Array:
        """An image in the order of columns: itself, or a workspace (into which it is copied)."""
        if (np.moveaxis(y, 0, -1) if self.inner else y).flags.c_contiguous:
            return y
        whole = image(self.b, y.shape, y.dtype, 0 if self.inner else None)
        if copied:
            self.b(np.copyto, whole, y)
        return whole

    def padded(self, x: Array) -> Array:
        """Images with their padding, dense where columns are views of them."""
        whole, inside = padded(self.b, x, self.axes, 0, 0 if self.inner else None)
        if inside is not None:
            self.b(np.copyto, inside, x)
            return whole
        return self.dense(x, True) if self.is_image else x

    def filters(self, w: Array) -> tuple[int, int, int]:
        """The shape of a filter [f, c / groups, window…] as matrices."""
        return self.groups, w.shape[0] // self.groups, self.c // self.groups * prod(self.window)


def convolve(b: Binder, x: Array, w: Array, out: Array, axes: Sequence[Axis], groups: int) -> None:
    """Emit the convolution of images [n, c, …] with a filter [f, c / groups, window…]."""
    if x.dtype.itemsize < 4:
        return _widened(b, convolve, x, w, out, axes, groups)
    if winograd.pays(b, x, w, axes, groups, kept=True):
        return winograd.convolve(b, x, w, out, axes)
    if depthwise.fits(x, w, out, axes, groups):
        return depthwise.convolve(b, x, w, out, axes)
    part = Unrolled(b, x, axes, w.shape[0], groups, batch_inner(x) or batch_inner(out))
    weights = reading(b, w, part.filters(w))
    whole, result = part.padded(x), part.dense(out, False)
    for images, rows in part.chunks():
        b(np.matmul, weights, part.columns(whole, images, rows), out=part.matrix(result, images, rows))
    if result is not out:
        b(np.copyto, out, result)


def filter_gradient(b: Binder, x: Array, g: Array, dw: Array, axes: Sequence[Axis], groups: int) -> None:
    """Emit the gradient of a convolution's filter."""
    if x.dtype.itemsize < 4:
        return _widened(b, filter_gradient, x, g, dw, axes, groups)
    if depthwise.fits(x, dw, g, axes, groups):
        return depthwise.filter_gradient(b, x, g, dw, axes)
    part = Unrolled(b, x, axes, dw.shape[0], groups, batch_inner(x) or batch_inner(g))
    groups, filters, depth = part.filters(dw)
    shape = (groups, depth, filters)  # the transposed product is the quicker one
    total, single = b.tmp(shape, dw.dtype), b.tmp(shape, dw.dtype)
    whole, slopes = part.padded(x), part.dense(g, True)
    for k, (images, rows) in enumerate(part.chunks()):
        columns, slope = part.columns(whole, images, rows), part.matrix(slopes, images, rows).swapaxes(-1, -2)
        target = total if k == 0 else single
        if part.inner:
            b(np.matmul, columns, slope, out=target)
        else:
            each = b.tmp((images.stop - images.start, *shape), dw.dtype)
            b(np.matmul, columns, slope, out=each)
            b(np.add.reduce, each, 0, None, target)
        if k:
            b(np.add, total, single, out=total)
    if part.n == 0:
        b(np.copyto, total, b.const(0, dw.dtype))
    result = writing(b, dw, part.filters(dw))
    b(np.copyto, result, total.swapaxes(-1, -2))
    return written(b, dw, result)


def image_gradient(b: Binder, g: Array, w: Array, dx: Array, axes: Sequence[Axis], groups: int) -> None:
    """Emit the gradient of a convolution's images, which is the transposed convolution of ``g``."""
    if g.dtype.itemsize < 4:
        return _widened(b, image_gradient, g, w, dx, axes, groups)
    if winograd.pays(b, dx, w, axes, groups, kept=False):
        return winograd.image_gradient(b, g, w, dx, axes)
    if depthwise.fits(g, w, dx, axes, groups) and depthwise.image_gradient(b, g, w, dx, axes):
        return None
    part = Unrolled(b, dx, axes, w.shape[0], groups, batch_inner(g) or batch_inner(dx))
    if part.inner and axes[0].window > 1 and axes[0].stride == axes[0].dilation == 1:
        return _row_by_row(b, part, g, w, dx)
    weights = reading(b, w, part.filters(w)).swapaxes(-1, -2)
    slopes = part.dense(g, True)
    if part.is_image:
        total, inside = part.dense(dx, False), None
    else:
        total, inside = padded(b, dx, axes, None, 0 if part.inner else None)
        b(np.copyto, total, b.const(0, dx.dtype))
    for images, rows in part.chunks():
        slope = part.matrix(slopes, images, rows)
        if part.is_image:
            b(np.matmul, weights, slope, out=part.matrix(total, images, rows))
            continue
        columns = part.buffer(images, rows)
        b(np.matmul, weights, slope, out=part.matrices(columns))
        for taps in product(*map(range, part.window)):
            first = axes[0].tap(taps[0], rows.start, rows.stop)
            others = (a.tap(i) for i, a in zip(taps[1:], axes[1:], strict=True))
            view = total[(images, slice(None), first, *others)]
            b(np.add, view, columns[(slice(None), slice(None), *taps)], out=view)
    if total is not dx:
        b(np.copyto, dx, total if inside is None else inside)


def _widened(
    b: Binder, emit: Callable[..., None], x: Array, y: Array, out: Array, axes: Sequence[Axis], groups: int
) -> None:
    """Emit one of the products for half precision: in float32, for which there is a BLAS."""
    wide = []
    for operand in (x, y):
        wide.append(b.like(operand, np.float32))
        b(np.copyto, wide[-1], operand)
    result = b.like(out, np.float32)
    emit(b, *wide, result, axes, groups)
    b(np.copyto, out, result, casting="unsafe")


def _row_by_row(b: Binder, part: Unrolled, g: Array, w: Array, dx: Array) -> None:
    """Emit the gradient of images row by row: the rows of ``g`` that reach one, with their filters, are one product.

    So only a filter's width is added up element by element, not its height.
    """
    rows, *others = part.axes
    groups, filters, channels = part.groups, part.count // part.groups, part.c // part.groups
    # g as [groups, rows, filters, …] and the filter as [groups, rows from last to first, filters, channels, …]:
    # neighbouring rows of either are one matrix
    slopes = b.tmp((groups, rows.out, filters, *part.out[1:], part.n), g.dtype)
    b(np.copyto, slopes, np.moveaxis(np.moveaxis(g, 0, -1).reshape(groups, filters, *part.out, part.n), 2, 1))
    weights = b.tmp((groups, rows.window, filters, channels, *part.window[1:]), w.dtype)
    b(np.copyto, weights, np.moveaxis(w.reshape(groups, filters, channels, *part.window), 3, 1)[:, ::-1])
    around = (Axis(rows.size, 1, 1, 1, 0, rows.size), *others)
    total, inside = padded(b, dx, around, None, 0)
    b(np.copyto, total, b.const(0, dx.dtype))
    sums = b.tmp((part.c, *part.window[1:], *part.out[1:], part.n), dx.dtype)
    matrix = sums.reshape(groups, channels * prod(part.window[1:]), -1)
    for row in range(rows.size):
        at = row + rows.low
        first, last = max(0, at - rows.window + 1), min(rows.out, at + 1)
        if first >= last or part.n == 0:
            continue
        used = weights[:, first - (at - rows.window + 1) :][:, : last - first]
        depth = (last - first) * filters
        b(np.matmul, used.reshape(groups, depth, -1).swapaxes(-1, -2), slopes[:, first:last].reshape(groups, depth, -1),
          out=matrix)  # fmt: skip
        for taps in product(*map(range, part.window[1:])):
            view = total[(slice(None), slice(None), row, *(a.tap(i) for i, a in zip(taps, others, strict=True)))]
            b(np.add, view, np.moveaxis(sums[(slice(None), *taps)], -1, 0), out=view)
    if inside is not None:
        b(np.copyto, dx, inside)
