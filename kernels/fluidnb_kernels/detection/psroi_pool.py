"""psroi_pool: the mean of each part of a region, in the channel that belongs to the part."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op
from fluidnb_kernels.cuda import Source, typed
from fluidnb_kernels.detection.regions import ATTRS, REGIONS, check_regions, emit, emit_grad, images_of
from fluidnb_kernels.emit import FLOATS

CUDA = Source(__file__, "psroi_pool.cu", typed(("means spread", FLOATS)))


def sides(rois: Array, scale: float) -> tuple[Array, Array]:
    """Starts and ends [regions, 2] of regions in pixels, along columns and along rows."""
    whole = np.copysign(np.floor(abs(rois) + 0.5), rois).astype(rois.dtype)  # halves away from zero
    factor, one = rois.dtype.type(scale), rois.dtype.type(1)
    return whole[:, :2] * factor, (whole[:, 2:] + one) * factor


def edges(start: Any, end: Any, count: int, size: int) -> tuple[Array, Array]:
    """Starts and ends of the parts of a region along an axis."""
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
    """Write the mean of each part of each region [regions, c, rows, columns]; 0 where a part has no pixel."""
    out[...] = 0
    sizes = out.shape[2:]
    split = by_part(x, sizes)
    for (r, i, j), part in _parts(rois, counts, scale, x.shape, sizes):
        out[r, :, i, j] = split[part].mean((1, 2))


def pool_grad(g: Array, rois: Array, counts: Array, scale: float, dx: Array) -> None:
    """Write the gradient of `pool`."""
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
    cuda=FLOATS,
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
    emit(b, pool, b.attr("spatial_scale"), "means", source=CUDA)


@grad_op("psroi_pool_grad", cuda=FLOATS)
def psroi_pool_grad(b: Binder) -> None:
    """dX = the sum of dOut over the parts that a pixel is in, each divided by its pixels."""
    emit_grad(b, pool_grad, b.attr("spatial_scale", 1.0), "spread", source=CUDA)
