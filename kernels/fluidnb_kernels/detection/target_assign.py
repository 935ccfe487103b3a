"""target_assign: copies the target of each prior from the object that it is matched with."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import Attr, Binder, Context, kernel, op
from fluidnb_kernels.cuda import CTYPES, Source, ctype
from fluidnb_kernels.cuda.cast import of_dtype
from fluidnb_kernels.cuda.grid import each
from fluidnb_kernels.cuda.row_grid import by_rows
from fluidnb_kernels.rules import whole_numbers
from fluidnb_kernels.sequences import owners, require_lod

Array = Any

_DTYPES = ("float32", "float64", "int32", "int64")

CUDA = Source(
    __file__, "target_assign.cu", lambda: (f"{name}<{CTYPES[t]}>" for name in ("matched", "negatives") for t in _DTYPES)
)


def _infer(c: Context) -> None:
    x, match = c["X"], c["MatchIndices"]
    c.require(
        x.ndim == 3, "Input(X) of target_assign must have three dimensions.",
        expected="[objects, priors or 1, width]", received=list(x.shape),
    )  # fmt: skip
    c.require(
        match.ndim == 2, "Input(MatchIndices) of target_assign must be a matrix.",
        expected="[images, priors]", received=list(match.shape),
    )  # fmt: skip
    whole_numbers(c, "MatchIndices")
    require_lod(c, "X", 1)
    if c.has("NegIndices"):
        negative = c["NegIndices"]
        c.require(
            negative.ndim == 2 and negative.shape[1] in (1, -1), "Input(NegIndices) of target_assign must be a column.",
            expected="[negatives, 1]", received=list(negative.shape),
        )  # fmt: skip
        whole_numbers(c, "NegIndices")
        require_lod(c, "NegIndices", 1)
    if c.runtime:
        for slot in ("X", "NegIndices"):
            if c.has(slot):
                found = len(c.lod(slot)[0]) - 1
                c.require(
                    found == match.shape[0], f"Input({slot}) of target_assign must have a sequence for each image.",
                    expected=f"{match.shape[0]}, the rows of MatchIndices", received=found,
                )  # fmt: skip
        c.require(
            x.shape[1] > 0, "Input(X) of target_assign has no columns to take.", expected="1 or more", received=0
        )
    c.set("Out", (*match.shape, x.shape[2]), x.dtype)
    c.set("OutWeight", (*match.shape, 1), np.float32)


def assign(
    x: Array, match: Array, level: Array, negative: tuple[Array, Array] | None, mismatch: int,
    out: Array | None, weight: Array | None,
) -> None:  # fmt: skip
    """Write targets and weights.

    Args:
        x: [objects, priors or 1, width].
        match: [images, priors], the object of each prior, counted within its image; -1 for none.
        level: offsets of the objects of each image.
        negative: the image and the prior of each negative, or None.
        out: [images, priors, width], written, or None.
        weight: [images, priors, 1], written, or None.

    Raises:
        EnforceNotMet: an index is outside.
    """
    found = match > -1
    if (match >= np.diff(level)[:, None]).any():
        image, prior = np.argwhere(match >= np.diff(level)[:, None])[0]
        raise EnforceNotMet(
            "An element of MatchIndices of target_assign is no object of its image.",
            expected=f"-1 or below {level[image + 1] - level[image]}, the objects of image {image}",
            received=f"{match[image, prior]} for prior {prior}",
        )  # fmt: skip
    if negative is not None and len(negative[1]) and not 0 <= negative[1].min() <= negative[1].max() < match.shape[1]:
        raise EnforceNotMet(
            "An element of NegIndices of target_assign is no prior.",
            expected=f"0 to {match.shape[1] - 1}", received=f"{negative[1].min()} to {negative[1].max()}",
        )  # fmt: skip
    if out is not None:
        out[...] = mismatch
        image, prior = np.nonzero(found)
        out[image, prior] = x[level[image] + match[image, prior], prior % x.shape[1]]
    if weight is not None:
        weight[..., 0] = found
    if negative is not None:
        for target, value in ((out, mismatch), (weight, 1)):
            if target is not None:
                target[negative] = value


@op(
    "target_assign",
    inputs={
        "X: float[objects, priors or 1, width] lod": "targets; a sequence for each image",
        "MatchIndices: int32[images, priors]": "the object of each prior, counted within its image; -1 for none",
        "NegIndices?: int32[negatives, 1] lod": "priors that learn the background; a sequence for each image",
    },
    outputs={
        "Out": "[images, priors, width]: the target of each prior",
        "OutWeight": "float32 [images, priors, 1]: 1 for a prior with an object and for a negative, else 0",
    },
    attrs={"mismatch_value": Attr("int", 0, "the target of a prior without an object, and of a negative")},
    infer=_infer,
    dtypes=_DTYPES,
    dtype_slot="X",
)
def target_assign(b: Binder) -> None:
    """Out[i, j] = X[first object of image i + MatchIndices[i, j], j mod columns], or mismatch_value for no object.

    Example:
        >>> from fluidnb.testing import run_op
        >>> inputs = {"X": ([[[5.0]], [[7.0]]], [[2]]), "MatchIndices": np.array([[1, -1, 0]])}
        >>> found = run_op("target_assign", inputs)
        >>> found["Out"].ravel().tolist(), found["OutWeight"].ravel().tolist()
        ([7.0, 0.0, 5.0], [1.0, 0.0, 1.0])

    Source: Liu et al., "SSD: Single Shot MultiBox Detector" (2016); Fluid's target_assign_op.
    """
    negative = None
    if b["NegIndices"] is not None:
        negative = owners(np.diff(b.lod("NegIndices")[0])), b["NegIndices"][:, 0]
    level = np.array(b.lod("X")[0], np.int64)
    b(assign, b["X"], b["MatchIndices"], level, negative, b.attr("mismatch_value"), b["Out"], b["OutWeight"])


@kernel("target_assign", place="cuda", dtypes=_DTYPES)
def target_assign_on_cuda(b: Binder) -> None:
    """A row of threads for each prior, then one thread for each negative."""
    x, outs = b["X"], [np.uintp(0) if b[slot] is None else b[slot] for slot in ("Out", "OutWeight")]
    match = of_dtype(b, b["MatchIndices"], np.dtype(np.int32))
    images, priors = match.shape
    objects, columns, width = x.shape
    value = x.dtype.type(b.attr("mismatch_value"))
    sizes = np.int64(columns), np.int64(width), np.int64(priors)
    level, name = b.table(np.array(b.lod("X")[0], np.int32)), ctype(x.dtype)
    by_rows(b, CUDA, f"matched<{name}>", images * priors, max(width, 1), x, match, level, *outs, value, *sizes)
    if b["NegIndices"] is not None and b["NegIndices"].size:
        chosen = of_dtype(b, b["NegIndices"], np.dtype(np.int32))
        image = b.table(owners(np.diff(b.lod("NegIndices")[0])).astype(np.int32))
        each(b, CUDA, f"negatives<{name}>", len(chosen), chosen, image, *outs, value, *sizes[1:])
