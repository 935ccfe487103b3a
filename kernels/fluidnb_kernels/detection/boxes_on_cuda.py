"""box_coder, box_clip, iou_similarity and polygon_box_transform as launches."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Binder
from fluidnb_kernels.cuda import CTYPES, Source, ctype
from fluidnb_kernels.cuda.cast import of_dtype
from fluidnb_kernels.cuda.rows import by_rows
from fluidnb_kernels.cuda.wide import wide_dtype
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.sequences import offsets_of

Array = Any
_NAMES = ("encoded", "decoded", "overlaps", "clipped", "corners")

CUDA = Source(__file__, "boxes.cu", lambda: (f"{name}<{CTYPES[t]}>" for name in _NAMES for t in FLOATS))


def similar(b: Binder) -> None:
    """iou_similarity: a thread for each pair."""
    x, out = b["X"], b["Out"]
    more = np.float64(0 if b.attr("box_normalized") else 1)
    y, m = of_dtype(b, b["Y"], x.dtype), out.shape[1]
    by_rows(b, CUDA, f"overlaps<{ctype(x.dtype)}>", len(x), m, x, y, out, more, np.int64(m))


def clip(b: Binder) -> None:
    """box_clip: a row for each box; which image it is on is a table."""
    x, out, offsets = b["Input"], b["Output"], offsets_of(b, "Input")
    if out.size:
        images = b.table(np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets)))
        info, width = of_dtype(b, b["ImInfo"], wide_dtype(x.dtype)), x.size // len(x)
        by_rows(b, CUDA, f"clipped<{ctype(x.dtype)}>", len(x), width, x, info, images, out, np.int64(width))


def polygons(b: Binder) -> None:
    """polygon_box_transform: a row for each row of a plane."""
    x = b["Input"]
    n, planes, h, w = x.shape
    name = f"corners<{ctype(x.dtype)}>"
    by_rows(b, CUDA, name, n * planes * h, w, x, b["Output"], np.int64(h), np.int64(w))


def code(b: Binder) -> None:
    """box_coder: a row for each target."""
    target, out, given = b["TargetBox"], b["OutputBox"], b.attr("variance")
    wide = wide_dtype(target.dtype)
    spread = np.uintp(0) if b["PriorBoxVar"] is None else of_dtype(b, b["PriorBoxVar"], wide)
    fixed = np.int32(bool(given)), *map(np.float64, given or [1.0] * 4)
    more = np.float64(0 if b.attr("box_normalized") else 1)
    operands = of_dtype(b, b["PriorBox"], wide), spread, *fixed, target, out, more
    rows, m = out.shape[:2]
    if b.attr("code_type") == "encode_center_size":
        by_rows(b, CUDA, f"encoded<{ctype(out.dtype)}>", rows, 4 * m, *operands, np.int64(m))
    else:
        name, by_row = f"decoded<{ctype(out.dtype)}>", np.int32(b.attr("axis"))
        by_rows(b, CUDA, name, rows, 4 * m, *operands, by_row, np.int64(m))
