"""Convolutions of each channel with a separate filter, on the host: along rows of the image, not as products.

A result is the sum of the elements of a window, each times an element of the filter. numpy adds up some channels at a
time, what a cache holds. Native code makes the same sums for all elements of a filter at once, and activations around
the convolution share its loops.
"""

from collections.abc import Sequence
from functools import partial
from itertools import product
from math import prod
from typing import Any

import numpy as np

from fluidnb.op import Array, Binder
from fluidnb_kernels.emit import reading
from fluidnb_kernels.one_call import Emit, OneCall, Scratch
from fluidnb_kernels.sliding import Axis, batch_inner

#: Bytes of results that numpy adds up at a time: two such parts and their image are in the cache.
_PART = 1 << 18
#: Elements of a filter up to which there is a sum for each.
_MOST = 49
#: Rows of results that are shorter are one row for native code, with the padding between them.
_SHORT = 28


class _Form:
    """The order in memory of images [n, c, rows, columns], and their windows.

    Args:
        inner: whether the batch is innermost: [c, rows, columns, n].
    """

    def __init__(self, n: int, c: int, axes: Sequence[Axis], inner: bool) -> None:
        self.rows, self.columns = axes
        self.inner = inner
        self.lead: tuple[int, ...] = (c,) if inner else (n, c)
        self.tail: tuple[int, ...] = (n,) if inner else ()
        self.at = len(self.lead)
        #: The size of the image in each of the phases of the strides: places of windows, and those behind the last one.
        self.places = [a.out + (a.window - 1) * a.dilation // a.stride for a in axes]
        #: Elements of results with the padding between rows, and those of the image, of a channel.
        self.joined = self.rows.out * self.places[1] * prod(self.tail)
        self.image = prod(a.stride for a in axes) * prod(self.places) * prod(self.tail)

    def of(self, x: Array) -> Array:
        """An image in the order of memory."""
        return np.moveaxis(x, 0, -1) if self.inner else x

    def part(self, x: Array, rows: slice, columns: slice) -> Array:
        """Some rows and columns of an image in the order of memory."""
        return x[(*[slice(None)] * self.at, rows, columns)]

    def over(self, memory: Array, lead: tuple[int, ...], *sizes: int) -> Array:
        """An array for some channels at the beginning of memory."""
        shape = (*lead, *sizes, *self.tail)
        return memory[: prod(shape)].reshape(shape)


def fits(x: Array, w: Array, out: Array, axes: Sequence[Axis], groups: int) -> bool:
    """Whether a convolution of images [n, c, rows, columns] has a filter for each channel, and dense operands."""
    if len(axes) != 2 or not groups == x.shape[1] == w.shape[0] > 1 or w.shape[1] != 1 or prod(w.shape[2:]) > _MOST:
        return False  # the filter of a transposed convolution may have several results for a channel
    dense = x.flags.c_contiguous and out.flags.c_contiguous or batch_inner(x) and batch_inner(out)
    return bool(dense and x.size and out.size and x.dtype == w.dtype == out.dtype)


def convolve(b: Binder, x: Array, w: Array, out: Array, axes: Sequence[Axis]) -> None:
    """Emit the convolution of images [n, c, rows, columns] with a filter [c, 1, rows, columns]."""
    n, c = x.shape[:2]
    form = _Form(n, c, axes, batch_inner(x))
    image = b.tmp((prod(form.lead) * form.image,), x.dtype)
    whole = prod(form.lead) * form.joined if _joins(form) else 0
    results = b.tmp((max(2 * _step(form, x.itemsize) * form.joined, whole),), x.dtype)
    call = OneCall(partial(_by_parts, form), partial(_at_once, form))
    b(call, x, reading(b, w, (c, *w.shape[2:])), out, image, results)


def image_gradient(b: Binder, g: Array, w: Array, dx: Array, axes: Sequence[Axis]) -> bool:
    """Emit the gradient of the images, for each phase of the strides as a convolution with part of the filters, turned.

    Returns:
        Whether it can be made so.
    """
    plans = [_back(axis) for axis in axes]
    if not all(plans):
        return False
    for (of_rows, taps, rows), (of_columns, other_taps, columns) in product(*plans):
        turned = b.tmp((*w.shape[:2], rows.window, columns.window), w.dtype)
        b(np.copyto, turned, w[:, :, taps, other_taps])
        convolve(b, g, turned, dx[:, :, of_rows, of_columns], (rows, columns))
    return True


def _back(axis: Axis) -> list[tuple[slice, slice, Axis]]:
    """For each phase of the stride its elements of the image, those of the filter, last to first, and their windows.

    Empty where a phase has no element of the filter, or windows that begin inside the image.
    """
    found = []
    for phase in range(min(axis.stride, axis.size)):
        first = (phase + axis.low) % axis.stride
        taps = range(first, axis.window, axis.stride)
        low = (len(taps) - 1) * axis.dilation - (phase + axis.low) // axis.stride
        if not taps or low < 0 or axis.stride > 1 < axis.dilation:
            return []
        size = len(range(phase, axis.size, axis.stride))
        turned = slice(taps[-1], first - 1 if first else None, -axis.stride)
        windows = Axis(axis.out, len(taps), 1, axis.dilation, low, size)
        found.append((slice(phase, None, axis.stride), turned, windows))
    return found


def filter_gradient(b: Binder, x: Array, g: Array, dw: Array, axes: Sequence[Axis]) -> None:
    """Emit the gradient of the filters: for each of their elements a product of two vectors for each channel.

    A NaN or infinity in an image spreads over all elements of its channel's filter.
    """
    n, c = x.shape[:2]
    form = _Form(n, c, axes, batch_inner(x))
    image = b.tmp((prod(form.lead) * form.image,), x.dtype)
    slopes = b.tmp((prod(form.lead) * form.joined,), x.dtype)
    b(OneCall(partial(_products, form)), x, g, dw, image, slopes, b.tmp(form.lead, x.dtype))


def _step(form: _Form, itemsize: int) -> int:
    """The number of channels that numpy takes at a time."""
    return max(1, min(form.lead[-1], _PART // (itemsize * form.joined)))


def _joins(form: _Form) -> bool:
    """Whether native code takes rows together."""
    return form.columns.out * prod(form.tail) < _SHORT


def _by_parts(form: _Form, emit: Emit, x: Array, w: Array, out: Array, image: Array, results: Array) -> None:
    """Some channels of an image after the other, with rows as one."""
    x, out, step, c = form.of(x), form.of(out), _step(form, x.itemsize), form.lead[-1]
    for i in range(prod(form.lead[:-1])):
        for first in range(0, c, step):
            last = min(first + step, c)
            one: tuple[Any, ...] = (slice(first, last),) if form.inner else (slice(i, i + 1), slice(first, last))
            other = results[step * form.joined :]
            _sums(form, emit, x[one], w[first:last], out[one], image, results, _rows(form, other, x[one].shape))


def _at_once(
    form: _Form, emit: Emit, scratch: Scratch, x: Array, w: Array, out: Array, image: Array, results: Array
) -> None:
    """All channels together."""
    x, out = form.of(x), form.of(out)
    if _joins(form):
        term = scratch(_rows(form, results, x.shape).shape, x.dtype)
        return _sums(form, emit, x, w, out, image, results, term)
    return _sums(form, emit, x, w, out, image, None, scratch(out.shape, x.dtype))


def _rows(form: _Form, memory: Array, shape: tuple[int, ...]) -> Array:
    """Memory for the results of some channels as one row of each, up to the last result."""
    width = form.places[1]
    whole = form.over(memory, shape[: form.at], form.rows.out * width)
    return whole[(*[slice(None)] * form.at, slice((form.rows.out - 1) * width + form.columns.out))]


def _sums(
    form: _Form, emit: Emit, x: Array, w: Array, out: Array, image: Array, joined: Array | None, term: Array
) -> None:
    """The results of some channels, in the order of memory.

    Args:
        image: memory for the image in its phases.
        joined: memory for results with the padding between rows; None for results of separate rows.
        term: memory for one product.
    """
    rows, columns = form.rows, form.columns
    lead, width = x.shape[: form.at], form.places[1]
    phases = _phases(form, emit, x, image)
    total = out if joined is None else _rows(form, joined, x.shape)
    for k, (i, j) in enumerate(product(*map(range, w.shape[1:]))):
        (i_phase, top), (j_phase, left) = _tap(rows, i), _tap(columns, j)
        plane = phases[i_phase, j_phase]
        if joined is None:
            part = form.part(plane, slice(top, top + rows.out), slice(left, left + columns.out))
        else:
            first = top * width + left
            part = plane.reshape(*lead, -1, *form.tail)
            part = part[(*[slice(None)] * form.at, slice(first, first + total.shape[form.at]))]
        factor = w[:, i, j].reshape(-1, *(1,) * (total.ndim - form.at))
        emit(np.multiply, part, factor, term if k else total)
        if k:
            emit(np.add, total, term, total)
    if joined is not None:
        whole = form.over(joined, lead, rows.out, width)
        emit(np.copyto, out, form.part(whole, slice(None), slice(columns.out)))


def _products(form: _Form, emit: Emit, x: Array, g: Array, dw: Array, image: Array, slopes: Array, each: Array) -> None:
    """The gradient of each element of the filters, from slopes with zeros where the image has its padding.

    Args:
        each: memory for the products, [c] or [n, c].
    """
    x, g, tail = form.of(x), form.of(g), prod(form.tail)
    phases, (rows, columns), width = _phases(form, emit, x, image), (form.rows, form.columns), form.places[1]
    whole = form.over(slopes, form.lead, rows.out, width)
    emit(np.copyto, form.part(whole, slice(None), slice(columns.out)), g)
    behind = form.part(whole, slice(None), slice(columns.out, None))
    if behind.size:
        emit(np.copyto, behind, np.zeros((), x.dtype))
    size = ((rows.out - 1) * width + columns.out) * tail
    vectors = whole.reshape(*form.lead, -1)[..., :size]
    for i, j in product(*map(range, dw.shape[2:])):
        (i_phase, top), (j_phase, left) = _tap(rows, i), _tap(columns, j)
        first = (top * width + left) * tail
        part = phases[i_phase, j_phase].reshape(*form.lead, -1)[..., first : first + size]
        emit(np.vecdot, part, vectors, each)
        if form.inner:
            emit(np.copyto, dw[:, 0, i, j], each)
        else:
            emit(np.add.reduce, each, 0, None, dw[:, 0, i, j])


def _phases(form: _Form, emit: Emit, x: Array, image: Array) -> Array:
    """The phases of an image in memory for it, with zeros around."""
    strides = form.rows.stride, form.columns.stride
    shape = *strides, *x.shape[: form.at], *form.places, *form.tail
    phases = image[: prod(shape)].reshape(shape)
    for phase in product(*map(range, strides)):
        _place(form, emit, x, phases[phase], phase)
    return phases


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
