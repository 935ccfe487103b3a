"""What launches over regions share: their images, their boxes, their sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Binder
from fluidnb_kernels.cuda import CTYPES, Source, ctype
from fluidnb_kernels.cuda.cast import of_dtype
from fluidnb_kernels.cuda.grid import each
from fluidnb_kernels.cuda.rows import by_rows
from fluidnb_kernels.cuda.wide import wide_dtype
from fluidnb_kernels.detection.regions import counts_of, images_of
from fluidnb_kernels.emit import FLOATS

Array = Any
_TYPED = ("align", "align_grad", "pool", "pool_grad")

CUDA = Source(__file__, "regions.cu", lambda: ["owners", *(f"{name}<{CTYPES[t]}>" for name in _TYPED for t in FLOATS)])


def owners(b: Binder, regions: int) -> Array:
    """The image of each region: a table where sequences say it, else worked out from the counts.

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
