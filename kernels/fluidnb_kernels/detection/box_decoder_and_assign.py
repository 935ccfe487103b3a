"""box_decoder_and_assign: the boxes of all classes, and that of the likeliest one."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, Context, kernel, op
from fluidnb_kernels.cuda import CTYPES, Source, ctype
from fluidnb_kernels.cuda.cast import of_dtype
from fluidnb_kernels.cuda.compute_dtype import wide_dtype
from fluidnb_kernels.cuda.row_grid import by_rows
from fluidnb_kernels.detection.boxes import four_wide
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.rules import agree

Array = Any

CUDA = Source(
    __file__, "box_classes.cu", lambda: (f"{name}<{CTYPES[t]}>" for name in ("boxes", "best") for t in FLOATS)
)


def _infer(c: Context) -> None:
    four_wide(c, "PriorBox")
    prior, target, score = c["PriorBox"], c["TargetBox"], c["BoxScore"]
    spread = c["PriorBoxVar"].shape
    c.require(
        agree(spread, (4,)), "Input(PriorBoxVar) of box_decoder_and_assign must hold four variances.",
        expected=[4], received=list(spread),
    )  # fmt: skip
    c.require(
        agree(score.shape, (prior.shape[0], -1)),
        "Input(BoxScore) of box_decoder_and_assign has a row for each prior, and a column for each class.",
        expected=[prior.shape[0], "classes"], received=list(score.shape),
    )  # fmt: skip
    wide = 4 * score.shape[1] if score.shape[1] >= 0 else -1
    c.require(
        agree(target.shape, (prior.shape[0], wide)),
        "Input(TargetBox) of box_decoder_and_assign has four columns for each class.",
        expected=[prior.shape[0], wide], received=list(target.shape),
    )  # fmt: skip
    c.set("DecodeBox", target.shape, target.dtype, c.lod("TargetBox"))
    c.set("OutputAssignBox", prior.shape, prior.dtype, c.lod("PriorBox"))


def decode(
    prior: Array, spread: Array, code: Array, score: Array, most: float, out: Array | None, best: Array | None
) -> None:
    """Write the box of each class, and that of the class with the highest score.

    Args:
        prior: [n, 4].
        spread: [4]: factors of the codes.
        code: [n, 4 · classes].
        score: [n, classes].
        most: the largest logarithm by which a box may grow.
        out: the shape of ``code``, written, or None.
        best: [n, 4], written, or None.
    """
    one, two = prior.dtype.type(1), prior.dtype.type(2)
    size = (prior[:, 2:] - prior[:, :2] + one)[:, None]
    middle = prior[:, None, :2] + size / two
    moved = code.reshape(len(code), -1, 4) * spread
    place = moved[..., :2] * size + middle
    reach = np.exp(np.minimum(moved[..., 2:], prior.dtype.type(most))) * size / two
    boxes = np.concatenate([place - reach, place + reach - one], -1)
    if out is not None:
        out[...] = boxes.reshape(out.shape)
    if best is not None:
        best[...] = prior
        if score.shape[1] > 1 and len(score):
            likeliest = score[:, 1:].argmax(1) + 1
            rows = np.flatnonzero(score[np.arange(len(score)), likeliest] > -1)
            best[rows] = boxes[rows, likeliest[rows]]


@op(
    "box_decoder_and_assign",
    inputs={
        "PriorBox: float[n, 4]": "left, top, right, bottom",
        "PriorBoxVar: float[4]": "factors of the codes",
        "TargetBox: float[n, 4 · classes]": "codes of the box of each class",
        "BoxScore: float[n, classes]": "how likely each class is; class 0 is that of no object",
    },
    outputs={
        "DecodeBox": "[n, 4 · classes]: the boxes",
        "OutputAssignBox": "[n, 4]: the box of the likeliest class, or the prior where there is none",
    },
    attrs={"box_clip": Attr("float", 4.135, "the largest logarithm by which a box may grow")},
    infer=_infer,
    dtypes=FLOATS,
)
def box_decoder_and_assign(b: Binder) -> None:
    """DecodeBox = what TargetBox means for each class; OutputAssignBox = the box of the class with the highest score.

    Example:
        >>> from fluidnb.testing import run_op
        >>> given = {"PriorBox": [[0.0, 0.0, 3.0, 3.0]], "PriorBoxVar": [0.5, 0.5, 1.0, 1.0]}
        >>> given |= {"TargetBox": [[0.0] * 4 + [1.0, 0.0, 0.0, 0.0]], "BoxScore": [[0.7, 0.3]]}
        >>> run_op("box_decoder_and_assign", given)["OutputAssignBox"]
        array([[2., 0., 5., 3.]])

    Source: Dai et al., "R-FCN" (2016); Fluid's box_decoder_and_assign_op.
    """
    operands = [b[s] for s in ("PriorBox", "PriorBoxVar", "TargetBox", "BoxScore")]
    b(decode, *operands, b.attr("box_clip"), b["DecodeBox"], b["OutputAssignBox"])


@kernel("box_decoder_and_assign", place="cuda", dtypes=FLOATS)
def box_decoder_and_assign_on_cuda(b: Binder) -> None:
    """A thread for each side of a box, and for each side of the likeliest one."""
    code, score = b["TargetBox"], b["BoxScore"]
    prior, spread = (of_dtype(b, b[s], wide_dtype(code.dtype)) for s in ("PriorBox", "PriorBoxVar"))
    classes, most = score.shape[1], np.float64(b.attr("box_clip"))
    operands = prior, spread, code
    if b.wants("DecodeBox") and code.size:
        name = f"boxes<{ctype(code.dtype)}>"
        by_rows(b, CUDA, name, len(code), 4 * classes, *operands, b["DecodeBox"], most, np.int64(classes))
    if b.wants("OutputAssignBox") and len(code):
        name, score = f"best<{ctype(code.dtype)}>", of_dtype(b, score, code.dtype)
        by_rows(b, CUDA, name, len(code), 4, *operands, score, b["OutputAssignBox"], most, np.int64(classes))
