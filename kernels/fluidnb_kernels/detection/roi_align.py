"""roi_align: regions of images read at evenly spaced points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, kernel, op
from fluidnb_kernels.cuda.compute_dtype import wide_dtype, writing_as, written_as
from fluidnb_kernels.detection.regions import ATTRS, INPUTS, boxes, counts_of, images_of, launch, owners, region_infer
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.tensor.strided_copy import fill

Array = Any


@dataclass(frozen=True, slots=True)
class Points:
    """How regions are read.

    Args:
        sizes: rows and columns of the result.
        scale: pixels for one unit of a box.
        ratio: points for each element of the result along an axis; 0 or less for one each pixel.
        aligned: whether pixels are squares with a middle.
    """

    sizes: tuple[int, int]
    scale: float
    ratio: int
    aligned: bool


def weights(start: Any, end: Any, count: int, size: int, how: Points) -> tuple[slice, Array]:
    """How much each pixel along an axis gives to each element of a region's result.

    Args:
        start: where the region starts, in pixels.
        end: where it ends.
        size: pixels.

    Returns:
        The pixels that give anything, and their shares [count, pixels].

    Example:
        >>> weights(np.float64(0), np.float64(2), 1, 4, Points((1, 1), 1.0, 2, False))
        (slice(0, 3, None), array([[0.25, 0.5 , 0.25]]))
    """
    length = end - start
    if not how.aligned:
        length = max(length, type(length)(1))
    step = length / type(length)(count)
    each = how.ratio if how.ratio > 0 else max(int(np.ceil(length / type(length)(count))), 0)
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


def _parts(rois: Array, counts: Array, shape: tuple[int, ...], how: Points) -> Iterator[tuple[Any, ...]]:
    """For each region its part of the images, and the shares of rows and columns."""
    dtype = rois.dtype.type
    boxes = rois * dtype(how.scale) - dtype(0.5 if how.aligned else 0)
    for box, n in zip(boxes, images_of(counts, len(rois)), strict=True):
        rows, down = weights(box[1], box[3], how.sizes[0], shape[2], how)
        columns, across = weights(box[0], box[2], how.sizes[1], shape[3], how)
        yield (n, slice(None), rows, columns), down, across


def align(x: Array, rois: Array, counts: Array, how: Points, out: Array) -> None:
    """Write the result of each region.

    Args:
        x: images [n, c, h, w].
        rois: boxes [regions, 4].
        counts: how many regions each image has.
        out: [regions, c, rows, columns], written.
    """
    for i, (part, down, across) in enumerate(_parts(rois, counts, x.shape, how)):
        out[i] = down @ x[part] @ across.T


def align_grad(g: Array, rois: Array, counts: Array, how: Points, dx: Array) -> None:
    """Write the gradient of `align`.

    Args:
        rois: boxes [regions, 4].
        counts: how many regions each image has.
    """
    dx[...] = 0
    for i, (part, down, across) in enumerate(_parts(rois, counts, dx.shape, how)):
        dx[part] += down.T @ g[i] @ across


def _how(c: Context) -> Points:
    sizes = (c.attr("pooled_height", 1), c.attr("pooled_width", 1))
    return Points(sizes, c.attr("spatial_scale", 1.0), c.attr("sampling_ratio", -1), c.attr("aligned", False))


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
    b(align, b["X"], b["ROIs"], counts_of(b), _how(b), b["Out"])


@grad_op("roi_align_grad")
def roi_align_grad(b: Binder) -> None:
    """dX = the sum of what each pixel has given, by its share."""
    b(align_grad, b["Out@GRAD"], b["ROIs"], counts_of(b), _how(b), b["X@GRAD"])


@kernel("roi_align", place="cuda", dtypes=FLOATS)
def roi_align_on_cuda(b: Binder) -> None:
    """A thread for each element of a region's result."""
    x, out = b["X"], b["Out"]
    if out.size:
        launch(b, "align", x, out, x, boxes(b, x.dtype), owners(b, len(out)), out)


@kernel("roi_align_grad", place="cuda", dtypes=FLOATS)
def roi_align_grad_on_cuda(b: Binder) -> None:
    """Regions overlap: they are added up with atomics."""
    g, dx = b["Out@GRAD"], b["X@GRAD"]
    total = writing_as(b, dx, wide_dtype(dx.dtype))
    fill(b, total)
    if g.size:
        launch(b, "align_grad", dx, g, g, boxes(b, dx.dtype), owners(b, len(g)), total)
    written_as(b, dx, total)
