"""Convolutions of each channel with a separate filter, on the host.

numpy makes a product of matrices for each channel. Native code goes along rows of the image, all elements of a filter
at once: each element of the image is read from the cache then, and activations around it share its loops. Sums have
another order there, so that results differ in their last digits.
"""

from collections.abc import Sequence
from functools import partial
from itertools import product
from math import prod

import numpy as np

from fluidnb.memory import strided
from fluidnb.op import Array, Binder
from fluidnb_kernels.emit import reading
from fluidnb_kernels.one_call import Emit, OneCall, Scratch
from fluidnb_kernels.sliding import Axis, batch_inner

#: Bytes of columns that are made at once: what stays in the cache.
_COLUMNS = 1 << 19
#: Elements of a filter up to which all are taken at once.
_MOST = 49
#: Rows of results that are shorter are joined to one, with the padding between them.
_SHORT = 28


class _Form:
    """The order in memory of images [n, c, rows, columns], and their windows.

    Args:
        inner: whether the batch is innermost: [c, rows, columns, n].
    """

    def __init__(self, n: int, c: int, axes: Sequence[Axis], inner: bool) -> None:
        self.rows, self.columns = axes
        self.inner, self.channels = inner, c
        self.lead: tuple[int, ...] = (c,) if inner else (n, c)
        self.tail: tuple[int, ...] = (n,) if inner else ()
        self.at = len(self.lead)
        #: The size of the image in each of the phases of the strides: places of windows, and those behind the last one.
        self.places = [a.out + (a.window - 1) * a.dilation // a.stride for a in axes]
        self.joins = self.columns.out * prod(self.tail) < _SHORT

    def of(self, x: Array) -> Array:
        """An image in the order of memory."""
        return np.moveaxis(x, 0, -1) if self.inner else x

    def shape(self, *sizes: int) -> tuple[int, ...]:
        """That of an image with other rows and columns."""
        return (*self.lead, *sizes, *self.tail)

    def part(self, x: Array, rows: slice, columns: slice) -> Array:
        """Some rows and columns of an image in the order of memory."""
        return x[(*[slice(None)] * self.at, rows, columns)]


def fits(x: Array, w: Array, out: Array, axes: Sequence[Axis], groups: int) -> bool:
    """Whether a convolution of images [n, c, rows, columns] has a filter for each channel, and dense operands."""
    if len(axes) != 2 or not groups == x.shape[1] == w.shape[0] > 1 or prod(w.shape[2:]) > _MOST:
        return False
    dense = x.flags.c_contiguous and out.flags.c_contiguous or batch_inner(x) and batch_inner(out)
    return bool(dense and x.size and out.size and x.dtype == w.dtype == out.dtype)


def convolve(b: Binder, x: Array, w: Array, out: Array, axes: Sequence[Axis]) -> None:
    """Emit the convolution of images [n, c, rows, columns] with a filter [c, 1, rows, columns]."""
    n, c = x.shape[:2]
    form = _Form(n, c, axes, batch_inner(x))
    phases = prod(a.stride for a in axes) * prod(form.places)
    image = b.tmp((n * c * max(prod(a.reach for a in axes), phases),), x.dtype)
    depth = prod(w.shape[2:]) * prod(a.out for a in axes) * prod(form.tail)
    columns = min(max(_COLUMNS // x.itemsize, depth), prod(form.lead) * depth)
    joined = n * c * form.rows.out * form.places[1] if form.joins else 0
    results = b.tmp((max(columns, joined),), x.dtype)
    call = OneCall(partial(_by_products, form), partial(_by_rows, form))
    b(call, x, reading(b, w, (c, *w.shape[2:])), out, image, results)


def image_gradient(b: Binder, g: Array, w: Array, dx: Array, axes: Sequence[Axis]) -> bool:
    """Emit the gradient of the images where it is a convolution with filters that are turned by half a circle.

    Returns:
        Whether it is.
    """
    if any(a.stride != 1 or a.low > (a.window - 1) * a.dilation for a in axes):
        return False
    turned = b.tmp(w.shape, w.dtype)
    b(np.copyto, turned, w[:, :, ::-1, ::-1])
    back = [Axis(a.out, a.window, 1, a.dilation, (a.window - 1) * a.dilation - a.low, a.size) for a in axes]
    convolve(b, g, turned, dx, back)
    return True


def _by_products(form: _Form, emit: Emit, x: Array, w: Array, out: Array, image: Array, results: Array) -> None:
    """As products of the columns of some channels with their filters."""
    c, rows, columns, window = form.channels, form.rows, form.columns, w.shape[1:]
    shape = form.shape(rows.reach, columns.reach)
    whole = image[: prod(shape)].reshape(shape)
    emit(np.copyto, whole, np.zeros((), x.dtype))
    emit(np.copyto, form.part(whole, rows.inside, columns.inside), form.of(x))
    whole, out = whole.reshape(-1, *shape[form.at :]), form.of(out).reshape(prod(form.lead), 1, -1)
    depth, places = prod(window), out.shape[2]
    step = max(1, min(results.size // (depth * places), c))
    of_channel, of_row, of_element, *of_image = whole.strides
    strides = (of_channel, of_row * rows.dilation, of_element * columns.dilation,
               of_row * rows.stride, of_element * columns.stride, *of_image)  # fmt: skip
    for begin in range(0, len(whole), c):
        for first in range(begin, begin + c, step):
            last = min(first + step, begin + c)
            count = last - first
            part = results[: count * depth * places].reshape(count, *window, rows.out, columns.out, *form.tail)
            emit(np.copyto, part, strided(whole[first:last], part.shape, strides))
            filters = w[first - begin : last - begin].reshape(count, 1, depth)
            emit(np.matmul, filters, part.reshape(count, depth, places), out=out[first:last])


def _by_rows(
    form: _Form, emit: Emit, scratch: Scratch, x: Array, w: Array, out: Array, image: Array, results: Array
) -> None:
    """As sums of parts of the padded image, each times an element of the filters."""
    rows, columns = form.rows, form.columns
    x, out = form.of(x), form.of(out)
    height, width = form.places
    shape = (rows.stride, columns.stride, *form.shape(height, width))
    phases = image[: prod(shape)].reshape(shape)
    for phase in product(range(rows.stride), range(columns.stride)):
        _place(form, emit, x, phases[phase], phase)
    total = out
    if form.joins:  # [n, c, places], or [c, places, n]
        whole = results[: prod(form.shape(rows.out, width))].reshape(form.shape(rows.out, width))
        total = _joined(form, whole)[(*[slice(None)] * form.at, slice((rows.out - 1) * width + columns.out))]
    one = scratch(total.shape, x.dtype)
    for k, (i, j) in enumerate(product(*map(range, w.shape[1:]))):
        (i_phase, top), (j_phase, left) = _tap(rows, i), _tap(columns, j)
        plane = phases[i_phase, j_phase]
        if form.joins:
            first = top * width + left
            part = _joined(form, plane)[(*[slice(None)] * form.at, slice(first, first + total.shape[form.at]))]
        else:
            part = form.part(plane, slice(top, top + rows.out), slice(left, left + columns.out))
        factor = w[:, i, j].reshape(-1, *(1,) * (total.ndim - form.at))
        emit(np.multiply, part, factor, one if k else total)
        if k:
            emit(np.add, total, one, total)
    if form.joins:
        emit(np.copyto, out, form.part(whole, slice(None), slice(columns.out)))


def _joined(form: _Form, image: Array) -> Array:
    """An image with its rows as one."""
    return image.reshape(*form.lead, -1, *form.tail)


def _tap(axis: Axis, i: int) -> tuple[int, int]:
    """The phase of an element of the window, and its place there for the first window."""
    place, phase = divmod(i * axis.dilation, axis.stride)
    return phase, place


def _place(form: _Form, emit: Emit, x: Array, plane: Array, phase: tuple[int, ...]) -> None:
    """Put a phase of an image into its memory, with zeros around."""
    (rows, of_rows), (columns, of_columns) = map(_inside, (form.rows, form.columns), phase, form.places)
    everything = slice(None)
    borders = (
        (slice(rows.start), everything), (slice(rows.stop, None), everything), (rows, slice(columns.start)),
        (rows, slice(columns.stop, None)),
    )  # fmt: skip
    for border in borders:
        part = form.part(plane, *border)
        if part.size:
            emit(np.copyto, part, np.zeros((), x.dtype))
    part = form.part(plane, rows, columns)
    if part.size:
        emit(np.copyto, part, form.part(x, of_rows, of_columns))


def _inside(axis: Axis, phase: int, size: int) -> tuple[slice, slice]:
    """The places of a phase that hold elements of the image, and these elements."""
    start = min(size, max(0, -(-(axis.low - phase) // axis.stride)))
    first = phase + start * axis.stride - axis.low
    count = max(0, min(size - start, -(-(axis.size - first) // axis.stride)))
    return slice(start, start + count), slice(first, first + count * axis.stride, axis.stride)
