"""The parts that operators over regions of images share: the image of a region, attributes, checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context
from fluidnb_kernels.cuda import Source, by_rows, ctype, each, of_dtype, typed, wide_dtype
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.sequences import one_sequence_each, require_lod
from fluidnb_kernels.verbs import summing

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
    """Require images, and regions of each of them."""
    c.check_inputs()
    if not c.has("RoisNum"):
        require_lod(c, "ROIs")
        if c.runtime:
            one_sequence_each(c, "ROIs", c["X"].shape[0])


def region_infer(c: Context) -> None:
    """Rule: one small image for each region."""
    check_regions(c)
    x, rois = c["X"], c["ROIs"]
    shape = (rois.shape[0], x.shape[1], c.attr("pooled_height", 1), c.attr("pooled_width", 1))
    c.set("Out", shape, x.dtype)
    c.set("Argmax", shape, np.int64)


def counts_of(b: Binder) -> Array:
    """Number of regions of each image: a constant if a LoD gives it, else the variable."""
    return b["RoisNum"] if b.has("RoisNum") else np.diff(b.lod("ROIs")[-1])


def images_of(counts: Array, regions: int) -> Array:
    """The image of each region."""
    return np.repeat(np.arange(len(counts)), counts)[:regions]


CUDA = Source(__file__, "regions.cu", typed(("owners",), ("align align_grad pool pool_grad", FLOATS)))


def owners(b: Binder, regions: int) -> Array:
    """The image of each region, int32: a table where the LoD has it, else computed from the counts."""
    counts = counts_of(b)
    if not b.has("RoisNum"):
        return b.table(images_of(counts, regions).astype(np.int32))
    image = b.tmp((regions,), np.int32)
    each(b, CUDA, "owners", regions, of_dtype(b, counts, np.dtype(np.int64)), image, np.int64(len(counts)))
    return image


def launch(
    b: Binder, name: str, x: Array, result: Array, first: Array, *args: Any, source: Source = CUDA,
    channels: bool = True,
) -> None:  # fmt: skip
    """Emit a launch over the parts of regions, and over their channels; those come between the first operands."""
    (regions, count, oh, ow), (h, w) = result.shape, x.shape[2:]
    sizes = *map(np.int64, (count, h, w)), np.int32(oh), np.int32(ow), np.float64(b.attr("spatial_scale", 1.0))
    if name.startswith("align"):
        sizes += np.int32(b.attr("sampling_ratio", -1)), np.int32(b.attr("aligned", False))
    operands = first, of_dtype(b, b["ROIs"], wide_dtype(x.dtype)), owners(b, regions), *args
    threads = count * oh * ow if channels else oh * ow
    by_rows(b, source, f"{name}<{ctype(x.dtype)}>", regions, threads, *operands, *sizes)


def emit(b: Binder, host: Callable[..., None], how: Any, name: str, **launched: Any) -> None:
    """Emit the results of regions: a call of a function of the host, or a launch."""
    x, out = b["X"], b["Out"]
    if not b.on_cuda:
        b(host, x, b["ROIs"], counts_of(b), how, out)
    elif out.size:
        launch(b, name, x, out, x, out, **launched)


def emit_grad(b: Binder, host: Callable[..., None], how: Any, name: str, **launched: Any) -> None:
    """Emit the gradient of `emit`; since regions overlap, a GPU adds it up with atomics."""
    g, dx = b["Out@GRAD"], b["X@GRAD"]
    if not b.on_cuda:
        return b(host, g, b["ROIs"], counts_of(b), how, dx)
    with summing(b, dx) as total:
        if g.size:
            launch(b, name, dx, g, g, total, **launched)
    return None
