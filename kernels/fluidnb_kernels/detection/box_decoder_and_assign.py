"""box_decoder_and_assign: the boxes of all classes, and that of the likeliest one."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, op, product
from fluidnb_kernels.cuda import Source, by_rows, ctype, of_dtype, typed, wide_dtype
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.rules import fits

CUDA = Source(__file__, "box_classes.cu", typed(("boxes best", FLOATS)))


def _infer(c: Context) -> None:
    c.check_inputs()
    prior, target, width = c["PriorBox"], c["TargetBox"], product((4, c["BoxScore"].shape[1]))
    fits(c, "TargetBox", (-1, width), "Input(TargetBox) of box_decoder_and_assign has four columns for each class.")
    c.set("DecodeBox", target.shape, target.dtype, c.lod("TargetBox"))
    c.set("OutputAssignBox", prior.shape, prior.dtype, c.lod("PriorBox"))


def decode(
    prior: Array, spread: Array, code: Array, score: Array, most: float, out: Array | None, best: Array | None
) -> None:
    """Write the box of each class [n, 4 · classes], and that of the class with the highest score [n, 4]; or None."""
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
    cuda=FLOATS,
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
    prior, spread, code, score = (b[s] for s in ("PriorBox", "PriorBoxVar", "TargetBox", "BoxScore"))
    out, best, most = b["DecodeBox"], b["OutputAssignBox"], b.attr("box_clip")
    if not b.on_cuda:
        return b(decode, prior, spread, code, score, most, out, best)
    operands = *(of_dtype(b, v, wide_dtype(code.dtype)) for v in (prior, spread)), code
    classes, dtype = score.shape[1], ctype(code.dtype)
    numbers = np.float64(most), np.int64(classes)
    if out is not None:
        by_rows(b, CUDA, f"boxes<{dtype}>", len(code), 4 * classes, *operands, out, *numbers)
    if best is not None:
        by_rows(b, CUDA, f"best<{dtype}>", len(code), 4, *operands, of_dtype(b, score, code.dtype), best, *numbers)
    return None
