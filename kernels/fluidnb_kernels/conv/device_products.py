"""Convolutions on a GPU: products of matrices with the windows unrolled into columns, or each channel by itself.

Columns are computed for a few images at a time, so that a large batch needs no large workspace. A window of one element
needs no columns.
"""

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from fluidnb.op import Array, Binder
from fluidnb_kernels.conv.host_products import depth_of, to_columns, to_images
from fluidnb_kernels.cuda import THREADS, Source, ctype, each, of_dtype, typed, wide_dtype, writing_as, written_as
from fluidnb_kernels.cuda.gemm import gemm
from fluidnb_kernels.cuda.sliding_windows import numbers_of
from fluidnb_kernels.elementwise.launch import CUDA as ELEMENTWISE
from fluidnb_kernels.elementwise.launch import binary
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.sliding import Axis
from fluidnb_kernels.tensor.strided_copy import fill, layout_of, move

#: Convolutions whose channels are a group each.
CUDA = Source(__file__, "depthwise.cu", typed(("apart apart_images apart_filter", FLOATS)))

#: Bytes of columns that are computed at once.
COLUMNS = 1 << 28


def _is_image(axes: Sequence[Axis]) -> bool:
    """Whether the columns of an image are the image itself."""
    return all(a.window == a.stride == 1 and a.low == 0 and a.out == a.size for a in axes)


def parts_of(x: Array, axes: Sequence[Axis]) -> list[slice]:
    """The images whose columns are made at once."""
    image = depth_of(x, axes) * prod(a.out for a in axes) * x.dtype.itemsize
    step = max(1, len(x) if _is_image(axes) else COLUMNS // max(image, 1))
    return [slice(first, min(first + step, len(x))) for first in range(0, len(x), step)]


def products(b: Binder, w: Array, x: Array, out: Array, tx: bool = False) -> None:
    """Emit ``out[n, group] = w[group] · x[n, group]`` in as few batches as that takes."""
    images, groups = x.shape[:2]
    if images <= groups:
        for n in range(images):
            gemm(b, w, x[n], out[n], tx)
    else:
        for group in range(groups):
            gemm(b, w[group], x[:, group], out[:, group], tx)


def _sizes(x: Array, w: Array, axes: Sequence[Axis]) -> tuple[Any, ...]:
    """The windows, how many filters there are, and how many of them each channel has."""
    return *numbers_of(axes), np.int64(len(w)), np.int64(len(w) // x.shape[1])


def _by_parts(b: Binder, x: Array, y: Array, axes: Sequence[Axis], groups: int) -> Iterator[tuple[Array, ...]]:
    """For each part of a batch its images, a workspace for their columns, and columns and results as matrices."""
    depth, places, parts = depth_of(x, axes), prod(a.out for a in axes), parts_of(x, axes)
    room = None if _is_image(axes) or not parts else b.tmp((parts[0].stop, depth, places), y.dtype)
    for part in parts:
        n = part.stop - part.start
        columns = x[part] if room is None else room[:n]
        result = y[part].reshape(n, groups, y.shape[1] // groups, places)
        yield x[part], columns, columns.reshape(n, groups, depth // groups, places), result


def convolve(b: Binder, x: Array, w: Array, out: Array, axes: Sequence[Axis], groups: int) -> None:
    """Emit the convolution of images [n, c, …] with a filter [f, c / groups, window…]."""
    if x.shape[1] == groups:
        return each(b, CUDA, f"apart<{ctype(x.dtype)}>", out.size, x, w, out, *_sizes(x, w, axes))
    weights = w.reshape(groups, -1, depth_of(x, axes) // groups)
    for images, columns, matrix, result in _by_parts(b, x, out, axes, groups):
        if not _is_image(axes):
            to_columns(b, images, columns, axes)
        products(b, weights, matrix, result)


def image_gradient(b: Binder, g: Array, w: Array, dx: Array, axes: Sequence[Axis], groups: int) -> None:
    """Emit the gradient of a convolution's images, which is the transposed convolution of ``g``."""
    if dx.shape[1] == groups:
        return each(b, CUDA, f"apart_images<{ctype(g.dtype)}>", dx.size, g, w, dx, *_sizes(dx, w, axes))
    if not _is_image(axes):  # products are rounded once, after they are added up
        g, w = (of_dtype(b, v, wide_dtype(dx.dtype)) for v in (g, w))
    weights = w.reshape(groups, -1, depth_of(dx, axes) // groups)
    for images, columns, matrix, slopes in _by_parts(b, dx, g, axes, groups):
        products(b, weights, slopes, matrix, True)
        if not _is_image(axes):
            to_images(b, columns, images, axes)


def filter_gradient(b: Binder, x: Array, g: Array, dw: Array, axes: Sequence[Axis], groups: int) -> None:
    """Emit the gradient of a convolution's filter."""
    places = prod(a.out for a in axes)
    if x.shape[1] == groups:
        if dw.size:
            threads = min(THREADS, max(32, 1 << max(len(x) * places - 1, 0).bit_length()))
            kernel = CUDA[f"apart_filter<{ctype(x.dtype)}>"]
            b(kernel, (dw.size,), (threads,), 0, x, g, dw, *_sizes(x, dw, axes), np.int64(len(x)))
        return None
    parts = parts_of(x, axes)
    if not parts:
        return fill(b, dw)
    total = dw
    if len(parts) > 1:  # sums of parts are rounded once
        x, g = (of_dtype(b, v, wide_dtype(dw.dtype)) for v in (x, g))
        total = writing_as(b, dw, x.dtype)
    result = total.reshape(groups, len(dw) // groups, -1)
    # the columns of all images side by side, and their gradients likewise
    depths = depth_of(x, axes), g.shape[1]
    rooms = [b.tmp((depth * parts[0].stop * places,), x.dtype) for depth in depths]
    for part in parts:
        n = part.stop - part.start
        columns, slopes = (
            room[: depth * n * places].reshape(depth, n, places) for room, depth in zip(rooms, depths, strict=True)
        )
        if _is_image(axes):
            move(b, columns, x[part], of=layout_of(x[part], (n, depths[0], places)).swapaxes(0, 1))
        else:
            to_columns(b, x[part], columns, axes, together=True)
        move(b, slopes, g[part], of=layout_of(g[part], (n, depths[1], places)).swapaxes(0, 1))
        columns, slopes = (v.reshape(groups, len(v) // groups, -1) for v in (columns, slopes))
        gemm(b, slopes, columns, result, ty=True, beta=float(part.start > 0))
    written_as(b, dw, total)


def add(b: Binder, out: Array, more: Array) -> None:
    """Emit ``out += more``, of the same shape."""
    shape = tuple(out.shape)
    binary(b, ELEMENTWISE, "f::add", out, more, out, (shape, shape, shape))
