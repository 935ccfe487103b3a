"""roi_pool: the largest pixel of each part of a region."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Array, Binder, default_grad, grad_op, op
from fluidnb_kernels.cuda import by_rows, ctype
from fluidnb_kernels.detection.regions import ATTRS, CUDA, INPUTS, counts_of, images_of, launch, owners, region_infer
from fluidnb_kernels.emit import FLOATS, store
from fluidnb_kernels.verbs import summing


def edges(first: int, last: int, count: int, size: int) -> tuple[list[int], list[int]]:
    """Starts and ends of the parts of a region along an axis."""
    step = np.float32(max(last - first + 1, 1)) / np.float32(count)
    spots = np.arange(count + 1, dtype=np.float32) * step
    starts = np.floor(spots[:-1]).astype(np.int64) + first
    ends = np.ceil(spots[1:]).astype(np.int64) + first
    return np.clip(starts, 0, size).tolist(), np.clip(ends, 0, size).tolist()


def pool(
    x: Array, rois: Array, counts: Array, scale: float, sizes: tuple[int, int], out: Array | None, spots: Array | None
) -> None:
    """Write the largest pixel of each part of each region, and its index in the plane; 0 and -1 where there is none."""
    pixels = rois * rois.dtype.type(scale)
    pixels = (np.sign(pixels) * np.floor(np.abs(pixels) + 0.5)).astype(np.int64)  # halves away from zero
    shape = (len(rois), x.shape[1], *sizes)
    best, where = np.zeros(shape, x.dtype), np.full(shape, -1, np.int64)
    height, width = x.shape[2:]
    for i, ((left, top, right, bottom), n) in enumerate(zip(pixels, images_of(counts, len(rois)), strict=True)):
        rows, columns = edges(top, bottom, shape[2], height), edges(left, right, shape[3], width)
        for j, (y0, y1) in enumerate(zip(*rows, strict=True)):
            for k, (x0, x1) in enumerate(zip(*columns, strict=True)):
                if y1 > y0 and x1 > x0:
                    part = x[n, :, y0:y1, x0:x1].reshape(x.shape[1], -1)
                    spot = part.argmax(1)
                    best[i, :, j, k] = part[np.arange(len(part)), spot]
                    where[i, :, j, k] = (y0 + spot // (x1 - x0)) * width + x0 + spot % (x1 - x0)
    store((out, spots), (best, where))


def pool_grad(g: Array, spots: Array, counts: Array, dx: Array) -> None:
    """Write the gradient of `pool`."""
    total = np.zeros((*dx.shape[:2], dx.shape[2] * dx.shape[3]), dx.dtype)
    r, c, i, j = np.nonzero(spots >= 0)
    np.add.at(total, (images_of(counts, len(g))[r], c, spots[r, c, i, j]), g[r, c, i, j])
    dx[...] = total.reshape(dx.shape)


@op(
    "roi_pool",
    inputs=INPUTS,
    outputs={
        "Out": "[regions, c, pooled_height, pooled_width]",
        "Argmax~": "int64, same shape: where each was in its plane, counted row by row; -1 for none",
    },
    attrs=ATTRS,
    infer=region_infer,
    grad=default_grad("X", "ROIs", "RoisNum", "Argmax", "Out@GRAD", wrt=["X"]),
    dtypes=FLOATS,
    dtype_slot="X",
    cuda=FLOATS,
)
def roi_pool(b: Binder) -> None:
    """Out[r, c, i, j] = the largest pixel of X in part (i, j) of region r; 0 where the part has none.

    A region goes from its rounded left and top to its rounded right and bottom; part i of n of a length goes from
    ``floor(i · length / n)`` to before ``ceil((i + 1) · length / n)``.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = np.arange(9.0).reshape(1, 1, 3, 3)
        >>> run_op("roi_pool", {"X": x, "ROIs": ([[0.0, 0.0, 1.0, 1.0]], [[1]])})["Out"].ravel()
        array([4.])

    Source: Girshick, "Fast R-CNN" (2015); Fluid's roi_pool_op.
    """
    x, outs = b["X"], (b["Out"], b["Argmax"])
    result = next((out for out in outs if out is not None), None)
    if not b.on_cuda:
        sizes = b.attr("pooled_height"), b.attr("pooled_width")
        b(pool, x, b["ROIs"], counts_of(b), b.attr("spatial_scale"), sizes, *outs)
    elif result is not None and result.size:
        launch(b, "pool", x, result, x, *(np.uintp(0) if out is None else out for out in outs))


@grad_op("roi_pool_grad", dtype_slot="Out@GRAD", cuda=FLOATS)
def roi_pool_grad(b: Binder) -> None:
    """dX = the sum of dOut over the parts whose largest pixel it was."""
    g, dx, spots = b["Out@GRAD"], b["X@GRAD"], b["Argmax"]
    if not b.on_cuda:
        return b(pool_grad, g, spots, counts_of(b), dx)
    with summing(b, dx) as total:
        if g.size:
            regions, channels, oh, ow = g.shape
            sizes = [np.int64(n) for n in (channels, dx.shape[2] * dx.shape[3], oh * ow)]
            name = f"pool_grad<{ctype(g.dtype)}>"
            by_rows(b, CUDA, name, regions, channels * oh * ow, g, spots, owners(b, regions), total, *sizes)
    return None
