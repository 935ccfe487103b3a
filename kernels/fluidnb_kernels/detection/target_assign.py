"""target_assign: copies the target of each prior from the object that it is matched with."""

from __future__ import annotations

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import Array, Attr, Binder, Context, op
from fluidnb_kernels.cuda import Source, by_rows, ctype, each, of_dtype, typed
from fluidnb_kernels.sequences import one_sequence_each, owners, require_lod

_DTYPES = ("float32", "float64", "int32", "int64")

CUDA = Source(__file__, "target_assign.cu", typed(("matched negatives", _DTYPES)))


def _infer(c: Context) -> None:
    x, match = c["X"], c["MatchIndices"]
    c.check_inputs()
    for slot in ("X", "NegIndices"):
        if c.has(slot):
            require_lod(c, slot, 1)
            if c.runtime:
                one_sequence_each(c, slot, match.shape[0], f"{match.shape[0]}, the rows of MatchIndices")
    if c.runtime:
        c.require(x.shape[1] > 0, "Input(X) of target_assign has no columns to take.", expected="1 or more", received=0)
    c.set("Out", (*match.shape, x.shape[2]), x.dtype)
    c.set("OutWeight", (*match.shape, 1), np.float32)


def assign(
    x: Array, match: Array, level: Array, negative: tuple[Array, Array] | None, mismatch: int,
    out: Array | None, weight: Array | None,
) -> None:  # fmt: skip
    """Write targets [images, priors, width] and weights [images, priors, 1], either None, given negatives by image."""
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
    cuda=_DTYPES,
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
    x, match, chosen, level = b["X"], b["MatchIndices"], b["NegIndices"], np.array(b.lod("X")[0], np.int64)
    image = None if chosen is None else owners(np.diff(b.lod("NegIndices")[0]))
    if not b.on_cuda:
        negative = None if image is None else (image, chosen[:, 0])
        return b(assign, x, match, level, negative, b.attr("mismatch_value"), b["Out"], b["OutWeight"])
    outs = [np.uintp(0) if b[slot] is None else b[slot] for slot in ("Out", "OutWeight")]
    columns, width = x.shape[1:]
    value, sizes = x.dtype.type(b.attr("mismatch_value")), [np.int64(n) for n in (columns, width, match.shape[1])]
    match, level = of_dtype(b, match, np.dtype(np.int32)), b.table(level.astype(np.int32))
    by_rows(b, CUDA, f"matched<{ctype(x.dtype)}>", match.size, max(width, 1), x, match, level, *outs, value, *sizes)
    if image is not None and chosen.size:
        chosen, image = of_dtype(b, chosen, np.dtype(np.int32)), b.table(image.astype(np.int32))
        each(b, CUDA, f"negatives<{ctype(x.dtype)}>", len(chosen), chosen, image, *outs, value, *sizes[1:])
    return None
