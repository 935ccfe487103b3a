"""What operators over regions of images share: which image a region belongs to, attributes, checks."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, Context
from fluidnb_kernels.cuda import CTYPES, Source, ctype
from fluidnb_kernels.cuda.cast import of_dtype
from fluidnb_kernels.cuda.compute_dtype import wide_dtype
from fluidnb_kernels.cuda.grid import each
from fluidnb_kernels.cuda.row_grid import by_rows
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.sequences import require_lod

Array = Any

#: Slots of regions.
REGIONS = {
    "ROIs: float[regions, 4] lod": "left, top, right, bottom; a sequence for each image",
    "RoisNum?: int[n]": "how many regions each image has, instead of sequences",
}
INPUTS = {"X: float[n, c, h, w]": "images"} | REGIONS

#: Attributes of regions.
ATTRS = {
    "pooled_height": Attr("int", 1, "rows of the result", gt=0),
    "pooled_width": Attr("int", 1, "columns of the result", gt=0),
    "spatial_scale": Attr("float", 1.0, "pixels of X for one unit of ROIs", gt=0),
}


def check_regions(c: Context) -> None:
    """Require images, and regions of each of them.

    Raises:
        RuleError: X holds no images, ROIs no boxes, or no sequence for each image.
    """
    name, x, rois = c.definition.type, c["X"], c["ROIs"]
    c.require(
        x.ndim == 4, f"Input(X) of {name} must be a batch of images.", expected="[batch, channels, height, width]",
        received=list(x.shape),
    )  # fmt: skip
    c.require(
        rois.ndim == 2 and rois.shape[1] in (4, -1), f"Input(ROIs) of {name} must hold boxes.",
        expected="[regions, 4]: left, top, right, bottom", received=list(rois.shape),
    )  # fmt: skip
    if not c.has("RoisNum"):
        require_lod(c, "ROIs")
        count = len(c.lod("ROIs")[-1]) - 1 if c.runtime else -1
        c.require(
            not c.runtime or count == x.shape[0], f"Input(ROIs) of {name} must have a sequence for each image.",
            expected=x.shape[0], received=count,
        )  # fmt: skip


def region_infer(c: Context) -> None:
    """Rule: one small image for each region."""
    check_regions(c)
    x, rois = c["X"], c["ROIs"]
    shape = (rois.shape[0], x.shape[1], c.attr("pooled_height", 1), c.attr("pooled_width", 1))
    c.set("Out", shape, x.dtype)
    c.set("Argmax", shape, np.int64)


def counts_of(b: Binder) -> Array:
    """Number of regions of each image: a constant if a LoD gives it, else the variable."""
    if not b.has("RoisNum"):
        return np.diff(b.lod("ROIs")[-1])
    counts = b["RoisNum"]
    b.require(
        counts.ndim == 1, f"Input(RoisNum) of {b.definition.type} must have one number for each image.",
        expected="[images]", received=list(counts.shape),
    )  # fmt: skip
    return counts


def images_of(counts: Array, regions: int) -> Array:
    """The image of each region.

    Args:
        counts: how many regions each image has.

    Example:
        >>> images_of(np.array([1, 2]), 3)
        array([0, 1, 1])
    """
    return np.repeat(np.arange(len(counts)), counts)[:regions]


_TYPED = ("align", "align_grad", "pool", "pool_grad")

CUDA = Source(__file__, "regions.cu", lambda: ["owners", *(f"{name}<{CTYPES[t]}>" for name in _TYPED for t in FLOATS)])


def owners(b: Binder, regions: int) -> Array:
    """The image of each region: a table where sequences say it, else computed from the counts.

    Returns:
        int32 [regions].
    """
    counts = counts_of(b)
    if not b.has("RoisNum"):
        return b.table(images_of(counts, regions).astype(np.int32))
    image = b.tmp((regions,), np.int32)
    each(b, CUDA, "owners", regions, of_dtype(b, counts, np.dtype(np.int64)), image, np.int64(len(counts)))
    return image


def boxes(b: Binder, dtype: Any) -> Array:
    """The regions in the precision in which kernels compute."""
    return of_dtype(b, b["ROIs"], wide_dtype(dtype))


def launch(b: Binder, name: str, x: Array, out: Array, *args: Any) -> None:
    """Emit a launch over regions, and over channels and parts of each."""
    (regions, channels, oh, ow), (h, w) = out.shape, x.shape[2:]
    sizes = *map(np.int64, (channels, h, w)), np.int32(oh), np.int32(ow), np.float64(b.attr("spatial_scale", 1.0))
    if name.startswith("align"):
        sizes += np.int32(b.attr("sampling_ratio", -1)), np.int32(b.attr("aligned", False))
    by_rows(b, CUDA, f"{name}<{ctype(x.dtype)}>", regions, channels * oh * ow, *args, *sizes)
