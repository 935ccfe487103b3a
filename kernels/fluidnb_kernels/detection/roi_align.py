"""roi_align: regions of images read at evenly spaced points."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, default_grad, grad_op, op
from fluidnb_kernels.detection.regions import ATTRS, INPUTS, emit, emit_grad, images_of, region_infer
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.rules import attributes


def weights(start: Any, end: Any, count: int, size: int, how: Any) -> tuple[slice, Array]:
    """The pixels along an axis that any element of a region's result reads, and their shares [count, pixels]."""
    length = end - start
    if not how.aligned:
        length = max(length, type(length)(1))
    step = length / type(length)(count)
    each = how.sampling_ratio if how.sampling_ratio > 0 else max(int(np.ceil(length / type(length)(count))), 0)
    spots = np.arange(count, dtype=step.dtype).reshape(-1, 1) * step
    at = (start + spots + (np.arange(each, dtype=step.dtype) + step.dtype.type(0.5)) * step / max(each, 1)).ravel()
    inside = (at >= -1) & (at <= size)
    at = np.maximum(at, 0)
    low = np.minimum(at.astype(np.int64), size - 1)
    high = np.minimum(low + 1, size - 1)
    share = np.where(low == size - 1, 0, at - low)
    first, last = (int(low.min()), int(high.max()) + 1) if low.size else (0, 1)
    out = np.zeros((count, last - first), step.dtype)
    rows = np.repeat(np.arange(count), each)
    np.add.at(out, (rows, low - first), inside * (1 - share) / max(each, 1))
    np.add.at(out, (rows, high - first), inside * share / max(each, 1))
    return slice(first, last), out


def _parts(rois: Array, counts: Array, shape: tuple[int, ...], how: Any) -> Iterator[tuple[Any, ...]]:
    """For each region its part of the images, and the shares of rows and columns."""
    dtype = rois.dtype.type
    boxes = rois * dtype(how.spatial_scale) - dtype(0.5 if how.aligned else 0)
    for box, n in zip(boxes, images_of(counts, len(rois)), strict=True):
        rows, down = weights(box[1], box[3], how.pooled_height, shape[2], how)
        columns, across = weights(box[0], box[2], how.pooled_width, shape[3], how)
        yield (n, slice(None), rows, columns), down, across


def align(x: Array, rois: Array, counts: Array, how: Any, out: Array) -> None:
    """Write the result of each region [regions, c, rows, columns]."""
    for i, (part, down, across) in enumerate(_parts(rois, counts, x.shape, how)):
        out[i] = down @ x[part] @ across.T


def align_grad(g: Array, rois: Array, counts: Array, how: Any, dx: Array) -> None:
    """Write the gradient of `align`."""
    dx[...] = 0
    for i, (part, down, across) in enumerate(_parts(rois, counts, dx.shape, how)):
        dx[part] += down.T @ g[i] @ across


@op(
    "roi_align",
    inputs=INPUTS,
    outputs={"Out": "[regions, c, pooled_height, pooled_width]"},
    attrs={
        **ATTRS,
        "sampling_ratio": Attr("int", -1, "points for each element along an axis; 0 or less for one each pixel"),
        "aligned": Attr("bool", False, "whether pixels are squares with a middle, so that boxes move by half of one"),
    },
    infer=region_infer,
    grad=default_grad("X", "ROIs", "RoisNum", "Out@GRAD", wrt=["X"]),
    dtypes=FLOATS,
    dtype_slot="X",
    cuda=FLOATS,
)
def roi_align(b: Binder) -> None:
    """Out[r, c, i, j] = the mean of X at evenly spaced points of part (i, j) of region r, between pixels linearly.

    A region is at least one pixel wide and high unless ``aligned``; points more than a pixel outside count as 0.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = np.arange(9.0).reshape(1, 1, 3, 3)
        >>> run_op("roi_align", {"X": x, "ROIs": ([[0.0, 0.0, 2.0, 2.0]], [[1]])})["Out"].ravel()
        array([4.])

    Source: He et al., "Mask R-CNN" (2017); Fluid's roi_align_op.
    """
    emit(b, align, attributes(b), "align")


@grad_op("roi_align_grad", cuda=FLOATS)
def roi_align_grad(b: Binder) -> None:
    """dX = the sum of what each pixel has given, by its share."""
    emit_grad(b, align_grad, attributes(b), "align_grad")
