"""auc: the area under a curve of a classifier's quality, over all batches so far."""

from __future__ import annotations

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import Array, Attr, Binder, Context, op
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.rules import agree, whole_numbers

CURVES = ("ROC", "PR")


def area(positive: Array, negative: Array, curve: str) -> float:
    """The area under a curve, by trapezoids between thresholds; 0 for ROC where one of the kinds is missing."""
    hits, misses = np.cumsum(positive[::-1], dtype=np.float64), np.cumsum(negative[::-1], dtype=np.float64)
    if not hits[-1] or curve == "ROC" and not misses[-1]:
        return 0.0
    recall = np.concatenate([[0.0], hits / hits[-1]])
    if curve == "ROC":
        across, up = np.concatenate([[0.0], misses / misses[-1]]), recall
    else:
        precision = np.divide(hits, hits + misses, out=np.ones_like(hits), where=hits + misses > 0)
        across, up = recall, np.concatenate([precision[:1], precision])
    return float(((across[1:] - across[:-1]) * (up[1:] + up[:-1]) / 2).sum())


def count(scores: Array, labels: Array, thresholds: int, positive: Array, negative: Array) -> None:
    """Add rows to the buckets of their scores (0 to 1), by whether their label is 0."""
    if scores.size and not (scores.min() >= 0 and scores.max() <= 1):
        raise EnforceNotMet(
            "Input(Predict) of auc must hold probabilities.",
            expected="0 to 1", received=f"{scores.min()} to {scores.max()}",
        )  # fmt: skip
    bucket, yes = (scores * thresholds).astype(np.int64), labels != 0
    positive += np.bincount(bucket[yes], minlength=len(positive))
    negative += np.bincount(bucket[~yes], minlength=len(negative))


def measure(
    predict: Array, labels: Array, thresholds: int, slide: int, curve: str, stats: tuple[Array, Array], out: Array
) -> None:
    """Add a batch to the statistics and write the area under the curve.

    The last column of ``predict`` is the positive class; ``stats`` are [max(slide, 1), thresholds + 1] of positive and
    negative rows.
    """
    if slide:
        for stat in stats:
            stat[:-1] = stat[1:].copy()
            stat[-1] = 0
    count(predict[:, -1], labels.reshape(-1), thresholds, stats[0][-1], stats[1][-1])
    out[...] = area(stats[0].sum(0), stats[1].sum(0), curve)


def _infer(c: Context) -> None:
    predict, label = c["Predict"], c["Label"]
    c.require(
        predict.ndim == 2 and predict.shape[1] in (1, 2, -1),
        "Input(Predict) of auc must be a matrix of probabilities.",
        expected="[N, 2] or [N, 1]", received=list(predict.shape),
    )  # fmt: skip
    c.require(not c.has("InsTagWeight"), "auc takes no weights.", received=c.name("InsTagWeight"))
    whole_numbers(c, "Label")
    c.require(
        -1 in (label.size, predict.shape[0]) or label.size == predict.shape[0],
        "Input(Label) of auc must hold a label for each row of Predict.",
        expected=f"{predict.shape[0]} labels", received=label.size,
    )  # fmt: skip
    want = [max(c.attr("slide_steps"), 1), c.attr("num_thresholds") + 1]
    for slot in ("StatPos", "StatNeg"):
        c.require(
            agree(c[slot].shape, want), f"Input({slot}) of auc does not fit its attributes.",
            expected=f"int64 {want}: a row for each batch that counts", received=list(c[slot].shape),
        )  # fmt: skip
        c.set(slot + "Out", want, c[slot].dtype)
    c.set("AUC", (1,), np.float64)


@op(
    "auc",
    inputs={
        "Predict: float[N, 2]": "probabilities; the last column is that of the positive class",
        "Label: int64[N, 1]": "0 or 1",
        "StatPos: int64[max(slide_steps, 1), num_thresholds + 1]": "positive rows in each bucket",
        "StatNeg: int64[max(slide_steps, 1), num_thresholds + 1]": "the same for negative rows",
        "InsTagWeight?": "Paddle 2: weights",
    },
    outputs={"AUC": "float64 [1]: the area", "StatPosOut": "StatPos with this batch", "StatNegOut": "StatNeg with it"},
    attrs={
        "curve": Attr("string", "ROC", "ROC: true against false positives; PR: precision against recall", enum=CURVES),
        "num_thresholds": Attr("int", (2 << 12) - 1, "how many buckets there are, less one", gt=0),
        "slide_steps": Attr("int", 1, "how many batches count; 0 for all so far", ge=0),
    },
    cost="Predict",
    infer=_infer,
    alias={"StatPosOut": "StatPos", "StatNegOut": "StatNeg"},
    inplace=True,
    side_effect=True,
    dtypes=FLOATS,
    dtype_slot="Predict",
    host_only="counts matches of a whole pass, one after the other",
)
def auc(b: Binder) -> None:
    """AUC = the area under the curve over the batches that count; the statistics take in this batch.

    Example:
        >>> from fluidnb.testing import run_op
        >>> none = np.zeros((1, 5), "int64")
        >>> batch = {"Predict": [[0.1, 0.9], [0.8, 0.2]], "Label": [[1], [0]], "StatPos": none, "StatNeg": none}
        >>> run_op("auc", batch, {"num_thresholds": 4})["AUC"]
        array([1.])

    Source: Fluid's auc_op.
    """
    stats = tuple(b[slot + "Out"] for slot in ("StatPos", "StatNeg"))
    for slot, stat in zip(("StatPos", "StatNeg"), stats, strict=True):
        if stat is not b[slot]:
            b(np.copyto, stat, b[slot])
    settings = (b.attr(name) for name in ("num_thresholds", "slide_steps", "curve"))
    b(measure, b["Predict"], b["Label"], *settings, stats, b["AUC"])
