"""psroi_pool: the mean of each part of a region, in the channel that belongs to the part."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, kernel, op
from fluidnb_kernels.cuda import CTYPES, Source, ctype
from fluidnb_kernels.cuda.compute_dtype import wide_dtype, writing_as, written_as
from fluidnb_kernels.cuda.row_grid import by_rows
from fluidnb_kernels.detection.regions import ATTRS, REGIONS, boxes, check_regions, counts_of, images_of, owners
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.tensor.strided_copy import fill

Array = Any

_NAMES = ("means", "spread")
CUDA = Source(__file__, "psroi_pool.cu", lambda: (f"{name}<{CTYPES[t]}>" for name in _NAMES for t in FLOATS))


def sides(rois: Array, scale: float) -> tuple[Array, Array]:
    """Where regions start and end, in pixels.

    Args:
        rois: [regions, 4].
        scale: pixels for one unit of a box.

    Returns:
        Starts and ends [regions, 2]: along columns, along rows.

    Example:
        >>> sides(np.array([[0.4, 1.0, 2.5, 3.0]]), 0.5)
        (array([[0. , 0.5]]), array([[2., 2.]]))
    """
    whole = np.copysign(np.floor(abs(rois) + 0.5), rois).astype(rois.dtype)  # halves away from zero
    factor, one = rois.dtype.type(scale), rois.dtype.type(1)
    return whole[:, :2] * factor, (whole[:, 2:] + one) * factor


def edges(start: Any, end: Any, count: int, size: int) -> tuple[Array, Array]:
    """Where the parts of a region start and end along an axis.

    Args:
        start: where the region starts, in pixels.
        end: where it ends.
        size: pixels of the image.

    Example:
        >>> edges(np.float64(0.5), np.float64(3), 2, 4)
        (array([0, 1]), array([2, 3]))
    """
    step = max(end - start, type(start)(0.1)) / type(start)(count)
    spots = np.arange(count + 1, dtype=step.dtype) * step + start
    first, last = np.floor(spots[:-1]), np.ceil(spots[1:])
    return np.clip(first, 0, size).astype(np.int64), np.clip(last, 0, size).astype(np.int64)


def _parts(
    rois: Array, counts: Array, scale: float, shape: tuple[int, ...], sizes: tuple[int, int]
) -> Iterator[tuple[tuple[int, int, int], tuple[Any, ...]]]:
    """The parts that have pixels: region, row, column; and their pixels in [n, channels, rows, columns, h, w]."""
    for r, (start, end, n) in enumerate(zip(*sides(rois, scale), images_of(counts, len(rois)), strict=True)):
        down, across = edges(start[1], end[1], sizes[0], shape[2]), edges(start[0], end[0], sizes[1], shape[3])
        for i, j in product(*map(range, sizes)):
            rows, columns = slice(down[0][i], down[1][i]), slice(across[0][j], across[1][j])
            if rows.stop > rows.start and columns.stop > columns.start:
                yield (r, i, j), (n, slice(None), i, j, rows, columns)


def by_part(x: Array, sizes: tuple[int, int]) -> Array:
    """Images [n, channels · rows · columns, h, w] as [n, channels, rows, columns, h, w]."""
    return x.reshape(len(x), -1, *sizes, *x.shape[2:])


def pool(x: Array, rois: Array, counts: Array, scale: float, out: Array) -> None:
    """Write the mean of each part of each region.

    Args:
        x: images [n, c · rows · columns, h, w].
        rois: boxes [regions, 4].
        counts: how many regions each image has.
        scale: pixels for one unit of a box.
        out: [regions, c, rows, columns], written; 0 where a part has no pixel.
    """
    out[...] = 0
    sizes = out.shape[2:]
    split = by_part(x, sizes)
    for (r, i, j), part in _parts(rois, counts, scale, x.shape, sizes):
        out[r, :, i, j] = split[part].mean((1, 2))


def pool_grad(g: Array, rois: Array, counts: Array, scale: float, dx: Array) -> None:
    """Write the gradient of `pool`.

    Args:
        rois: boxes [regions, 4].
        counts: how many regions each image has.
        scale: pixels for one unit of a box.
    """
    total = np.zeros(dx.shape, dx.dtype)
    split = by_part(total, g.shape[2:])
    for (r, i, j), part in _parts(rois, counts, scale, dx.shape, g.shape[2:]):
        pixels = split[part]
        pixels += (g[r, :, i, j] / g.dtype.type(pixels[0].size))[:, None, None]
    dx[...] = total


def _infer(c: Context) -> None:
    check_regions(c)
    x, channels = c["X"], c.attr("output_channels")
    rows, columns = c.attr("pooled_height", 1), c.attr("pooled_width", 1)
    c.require(
        x.shape[1] in (-1, channels * rows * columns),
        "Input(X) of psroi_pool must have a channel for each part of each channel of Out.",
        expected=f"{channels} · {rows} · {columns} = {channels * rows * columns} channels",
        received=f"{x.shape[1]} channels",
    )  # fmt: skip
    c.set("Out", (c["ROIs"].shape[0], channels, rows, columns), x.dtype)


@op(
    "psroi_pool",
    inputs={"X: float[n, output_channels · pooled_height · pooled_width, h, w]": "images"} | REGIONS,
    outputs={"Out": "[regions, output_channels, pooled_height, pooled_width]"},
    attrs={**ATTRS, "output_channels": Attr("int", doc="channels of Out", gt=0)},
    infer=_infer,
    grad=default_grad("X", "ROIs", "RoisNum", "Out@GRAD", wrt=["X"]),
    dtypes=FLOATS,
    dtype_slot="X",
)
def psroi_pool(b: Binder) -> None:
    """Out[r, c, i, j] = the mean of channel (c, i, j) of X in part (i, j) of region r; 0 where the part has no pixel.

    A region goes from its rounded left and top to behind its rounded right and bottom, and is at least a tenth of a
    pixel wide and high; part i of n of a length goes from ``floor(i · length / n)`` to before
    ``ceil((i + 1) · length / n)``.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x, attrs = np.arange(8.0).reshape(1, 2, 2, 2), {"pooled_height": 2, "output_channels": 1}
        >>> run_op("psroi_pool", {"X": x, "ROIs": ([[0.0, 0.0, 1.0, 1.0]], [[1]])}, attrs)["Out"].ravel()
        array([0.5, 6.5])

    Source: Dai et al., "R-FCN" (2016); Fluid's psroi_pool_op.
    """
    b(pool, b["X"], b["ROIs"], counts_of(b), b.attr("spatial_scale"), b["Out"])


@grad_op("psroi_pool_grad")
def psroi_pool_grad(b: Binder) -> None:
    """dX = the sum of dOut over the parts that a pixel is in, each divided by its pixels."""
    b(pool_grad, b["Out@GRAD"], b["ROIs"], counts_of(b), b.attr("spatial_scale", 1.0), b["X@GRAD"])


def _launch(b: Binder, name: str, x: Array, out: Array, *operands: Array) -> None:
    """Emit a launch with a thread for each element of a region's result."""
    regions, channels, oh, ow = out.shape
    sizes = np.int64(channels), np.int64(x.shape[2]), np.int64(x.shape[3]), np.int32(oh), np.int32(ow)
    given = *operands[:1], boxes(b, x.dtype), owners(b, regions), *operands[1:]
    scale = np.float64(b.attr("spatial_scale", 1.0))
    by_rows(b, CUDA, f"{name}<{ctype(x.dtype)}>", regions, channels * oh * ow, *given, *sizes, scale)


@kernel("psroi_pool", place="cuda", dtypes=FLOATS)
def psroi_pool_on_cuda(b: Binder) -> None:
    """A thread for each part of a region."""
    x, out = b["X"], b["Out"]
    if out.size:
        _launch(b, "means", x, out, x, out)


@kernel("psroi_pool_grad", place="cuda", dtypes=FLOATS)
def psroi_pool_grad_on_cuda(b: Binder) -> None:
    """Regions overlap: they are added up with atomics."""
    g, dx = b["Out@GRAD"], b["X@GRAD"]
    total = writing_as(b, dx, wide_dtype(dx.dtype))
    fill(b, total)
    if g.size:
        _launch(b, "spread", dx, g, g, total)
    written_as(b, dx, total)
