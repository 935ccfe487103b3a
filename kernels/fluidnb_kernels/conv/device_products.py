"""Convolutions on a GPU: products of matrices with the windows unrolled into columns, or each channel by itself.

Images are taken as [n, c, …]; others are brought into that order first. Columns are made for a few images at a time, so
that a large batch needs no large workspace. A window of one element needs no columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from fluidnb.op import Binder
from fluidnb_kernels.conv.depthwise import convolve_apart, filter_apart, images_apart
from fluidnb_kernels.conv.im2col import depth_of, to_columns, to_images
from fluidnb_kernels.cuda.cast import of_dtype
from fluidnb_kernels.cuda.compute_dtype import wide_dtype, writing_as, written_as
from fluidnb_kernels.cuda.gemm import gemm
from fluidnb_kernels.elementwise.launch import CUDA as ELEMENTWISE
from fluidnb_kernels.elementwise.launch import binary
from fluidnb_kernels.sliding import CHANNEL_LAST, Axis
from fluidnb_kernels.tensor.strided_copy import fill, lay, move

Array = Any

#: Bytes of columns that are made at once.
COLUMNS = 1 << 28


def reading(b: Binder, x: Array, layout: str) -> Array:
    """Images as [n, c, …]: themselves, or a workspace into which they are brought."""
    if layout not in CHANNEL_LAST:
        return x
    first = writing(b, x, layout)
    move(b, first, x, of=np.moveaxis(lay(x), -1, 1))
    return first


def writing(b: Binder, out: Array, layout: str) -> Array:
    """What is written for images of a layout: themselves, or a workspace [n, c, …] that `written` brings back."""
    return b.tmp((len(out), out.shape[-1], *out.shape[1:-1]), out.dtype) if layout in CHANNEL_LAST else out


def written(b: Binder, out: Array, view: Array) -> None:
    """Bring back what `writing` gave, where it is a workspace."""
    if view is not out:
        move(b, out, view, of=np.moveaxis(lay(view), 1, -1))


def _is_image(axes: Sequence[Axis]) -> bool:
    """Whether the columns of an image are the image itself."""
    return all(a.window == a.stride == 1 and a.low == 0 and a.out == a.size for a in axes)


def _parts(x: Array, axes: Sequence[Axis]) -> list[slice]:
    """The images whose columns are made at once."""
    image = depth_of(x, axes) * prod(a.out for a in axes) * x.dtype.itemsize
    step = max(1, len(x) if _is_image(axes) else COLUMNS // max(image, 1))
    return [slice(first, min(first + step, len(x))) for first in range(0, len(x), step)]


def _products(b: Binder, w: Array, x: Array, out: Array, tx: bool = False) -> None:
    """Emit ``out[n, group] = w[group] · x[n, group]`` in as few batches as that takes."""
    images, groups = x.shape[:2]
    if images <= groups:
        for n in range(images):
            gemm(b, w, x[n], out[n], tx)
    else:
        for group in range(groups):
            gemm(b, w[group], x[:, group], out[:, group], tx)


def convolve(b: Binder, x: Array, w: Array, out: Array, axes: Sequence[Axis], groups: int) -> None:
    """Emit the convolution of images with a filter.

    Args:
        x: images [n, c, …].
        w: filter [f, c / groups, window…].
        out: [n, f, …], written.
    """
    if x.shape[1] == groups:
        return convolve_apart(b, x, w, out, axes)
    depth, places = depth_of(x, axes), prod(a.out for a in axes)
    weights, parts = w.reshape(groups, -1, depth // groups), _parts(x, axes)
    room = None if _is_image(axes) or not parts else b.tmp((parts[0].stop, depth, places), x.dtype)
    for part in parts:
        n = part.stop - part.start
        columns = x[part] if room is None else room[:n]
        if room is not None:
            to_columns(b, x[part], columns, axes)
        made = out[part].reshape(n, groups, len(w) // groups, places)
        _products(b, weights, columns.reshape(n, groups, depth // groups, places), made)
    return None


def image_gradient(b: Binder, g: Array, w: Array, dx: Array, axes: Sequence[Axis], groups: int) -> None:
    """Emit the gradient of a convolution's images, which is the transposed convolution of ``g``.

    Args:
        g: gradient of the result [n, f, …].
        w: filter [f, c / groups, window…].
        dx: gradient of the images [n, c, …], written.
    """
    if dx.shape[1] == groups:
        return images_apart(b, g, w, dx, axes)
    depth, places, direct = depth_of(dx, axes), prod(a.out for a in axes), _is_image(axes)
    if not direct:  # products are rounded once, after they are added up
        g, w = (of_dtype(b, v, wide_dtype(dx.dtype)) for v in (g, w))
    weights, parts = w.reshape(groups, -1, depth // groups), _parts(dx, axes)
    room = None if direct or not parts else b.tmp((parts[0].stop, depth, places), g.dtype)
    for part in parts:
        n = part.stop - part.start
        columns = dx[part] if room is None else room[:n]
        slopes = g[part].reshape(n, groups, len(w) // groups, places)
        _products(b, weights, slopes, columns.reshape(n, groups, depth // groups, places), True)
        if room is not None:
            to_images(b, columns, dx[part], axes)
    return None


def filter_gradient(b: Binder, x: Array, g: Array, dw: Array, axes: Sequence[Axis], groups: int) -> None:
    """Emit the gradient of a convolution's filter.

    Args:
        x: images [n, c, …].
        g: gradient of the result [n, f, …].
        dw: gradient of the filter [f, c / groups, window…], written.
    """
    if x.shape[1] == groups:
        return filter_apart(b, x, g, dw, axes)
    parts = _parts(x, axes)
    if not parts:
        return fill(b, dw)
    total = dw
    if len(parts) > 1:  # sums of parts are rounded once
        x, g = (of_dtype(b, v, wide_dtype(dw.dtype)) for v in (x, g))
        total = writing_as(b, dw, x.dtype)
    result = total.reshape(groups, len(dw) // groups, -1)
    for part, columns, slopes in _side_by_side(b, parts, x, g, axes):
        columns, slopes = (v.reshape(groups, len(v) // groups, -1) for v in (columns, slopes))
        gemm(b, slopes, columns, result, ty=True, beta=float(part > 0))
    written_as(b, dw, total)
    return None


def _side_by_side(
    b: Binder, parts: Sequence[slice], x: Array, g: Array, axes: Sequence[Axis]
) -> Iterator[tuple[int, Array, Array]]:
    """Emit for each part of a batch its columns [depth, places of all images], and its gradients likewise."""
    most, depth, places = parts[0].stop, depth_of(x, axes), prod(a.out for a in axes)
    room, slope_room = (b.tmp((rows * most * places,), x.dtype) for rows in (depth, g.shape[1]))
    for k, part in enumerate(parts):
        n = part.stop - part.start
        columns, slopes = (v[: rows * n * places] for v, rows in ((room, depth), (slope_room, g.shape[1])))
        columns, slopes = columns.reshape(depth, n, places), slopes.reshape(-1, n, places)
        if _is_image(axes):
            move(b, columns, x[part], of=lay(x[part], (n, depth, places)).swapaxes(0, 1))
        else:
            to_columns(b, x[part], columns, axes, together=True)
        move(b, slopes, g[part], of=lay(g[part], (n, g.shape[1], places)).swapaxes(0, 1))
        yield k, columns, slopes


def add(b: Binder, out: Array, more: Array) -> None:
    """Emit ``out += more``, of the same shape."""
    shape = tuple(out.shape)
    binary(b, ELEMENTWISE, "f::add", out, more, out, (shape, shape, shape))
