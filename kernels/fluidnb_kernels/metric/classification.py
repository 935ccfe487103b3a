"""accuracy, auc and precision_recall: how often a classifier is right."""

from typing import Any

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import Array, Attr, Binder, Context, op
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels.emit import FLOATS, store
from fluidnb_kernels.metric.counts import count_right
from fluidnb_kernels.rules import agree, check_classes, fits, whole_numbers


def _accuracy_infer(c: Context) -> None:
    indices, label = c["Indices"], c["Label"]
    fits(c, "Indices", (-1, -1), "Indices of accuracy should be a 2-D tensor.", "[N, k]")
    fits(c, "Label", (-1, 1), "Label of accuracy should have the shape [N, 1].", [indices.shape[0], 1])
    c.require(
        indices.shape[0] == label.shape[0] or -1 in (indices.shape[0], label.shape[0]),
        "Label and Indices of accuracy must have the same number of rows.",
        expected=indices.shape[0], received=label.shape[0],
    )  # fmt: skip
    for slot, dtype in (("Accuracy", np.float32), ("Correct", np.int32), ("Total", np.int32)):
        c.set(slot, (1,), dtype)


def count_hits(hits: Array, share: Array | None, correct: Array | None, total: Array | None) -> None:
    """Write the share of rows with a hit, their number, and that of all rows; None without a consumer."""
    rows = len(hits)
    found = int(np.count_nonzero(hits if hits.shape[1] == 1 else hits.any(1)))
    store((share, correct, total), (found / rows if rows else 0.0, found, rows))


@op(
    "accuracy",
    inputs={"Out": "the best values of each row (not read)", "Indices: int64[N, k]": "where they are",
            "Label: int64[N, 1]": "the right place"},
    outputs={"Accuracy": "float32 [1]: the share of right rows", "Correct": "int32 [1]: how many they are",
             "Total": "int32 [1]: how many rows there are"},
    cost="Indices",
    infer=_accuracy_infer,
    dtype_slot="Out", cuda=True,
)  # fmt: skip
def accuracy(b: Binder) -> None:
    """Accuracy = Correct / Total; a row is right when its label is among its Indices.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("accuracy", {"Out": [[0.9], [0.8]], "Indices": [[1], [0]], "Label": [[1], [2]]})["Accuracy"]
        array([0.5], dtype=float32)

    Source: Fluid's accuracy_op.
    """
    indices, label = b["Indices"], b["Label"]
    if b.on_cuda:
        return count_right(b, indices, label, b["Accuracy"], b["Correct"], b["Total"])
    hits = b.tmp(indices.shape, bool)
    b(np.equal, indices, label, out=hits)
    return b(count_hits, hits, b["Accuracy"], b["Correct"], b["Total"])


CURVES = ("ROC", "PR")


@c_code("accuracy")
def _accuracy_in_c(c: Context) -> dict[str, Constant]:
    return dict(zip(("ROWS", "K"), c["Indices"].shape, strict=True))


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


def measure_auc(
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


def _auc_infer(c: Context) -> None:
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
    infer=_auc_infer,
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
    b(measure_auc, b["Predict"], b["Label"], *settings, stats, b["AUC"])


def _precision_recall_infer(c: Context) -> None:
    classes = c.attr("class_number")
    c.check_inputs("Indices", "Labels")
    c.set("BatchMetrics", (6,), np.float64)
    c.set("AccumMetrics", (6,), np.float64)
    c.set("AccumStatesInfo", (classes, 4), np.float32)


def tally(guess: Array, label: Array, weight: Array | None, classes: int) -> Array:
    """True and false positives, true and false negatives of each class, float64 [classes, 4]."""
    check_classes(guess, classes)
    check_classes(label, classes)
    each = np.ones(len(guess)) if weight is None else weight
    right = guess == label
    hits = np.bincount(label[right], each[right], classes)
    false = np.bincount(guess[~right], each[~right], classes)
    missed = np.bincount(label[~right], each[~right], classes)
    return np.stack([hits, false, each.sum() - hits - false - missed, missed], 1)


def summary(states: Array) -> list[float]:
    """Precision, recall and F1, first as means over the classes, then of all rows together."""

    def share(hits: Array, others: Array) -> Array:
        whole = hits + others
        return np.where(whole > 0, hits / np.where(whole > 0, whole, 1), 1.0)

    def joined(p: float, r: float) -> float:
        return 2 * p * r / (p + r) if p + r > 0 else 0.0

    hits, false, _, missed = states.T
    p, r = share(hits, false).mean(), share(hits, missed).mean()
    q, s = share(hits.sum(), false.sum()), share(hits.sum(), missed.sum())
    return [float(x) for x in (p, r, joined(p, r), q, s, joined(q, s))]


def measure_precision_recall(guess: Array, label: Array, weight: Array | None, before: Array | None, outs: Any) -> None:
    """Write the metrics of a batch [6], of everything so far [6], and the states so far [classes, 4]."""
    batch, so_far, states = outs
    new = tally(guess, label, weight, len(states))
    batch[...] = summary(new)
    whole = new if before is None else new + before
    so_far[...] = summary(whole)
    states[...] = whole


@op(
    "precision_recall",
    inputs={
        "MaxProbs: float[N, 1]": "the best probability of each row (not read)", "Indices: int32[N, 1]": "its class",
        "Labels: int32[N, 1]": "the right class", "Weights?: float[N, 1]": "what a row counts",
        "StatesInfo?: float[C, 4]": "AccumStatesInfo of the batch before",
    },
    outputs={
        "BatchMetrics": "float64 [6]: macro precision, recall, F1, then micro", "AccumMetrics": "the same, so far",
        "AccumStatesInfo": "[C, 4]: true and false positives, true and false negatives so far",
    },
    attrs={"class_number": Attr("int", doc="how many classes there are")},
    check=lambda a: None if a["class_number"] > 0 else "class_number should be larger than 0.",
    infer=_precision_recall_infer,
    dtype_slot="MaxProbs",
    host_only="counts matches of a whole pass, one after the other",
)  # fmt: skip
def precision_recall(b: Binder) -> None:
    """Precision = TP / (TP + FP), recall = TP / (TP + FN), 1 where there is nothing; F1 is their harmonic mean.

    Example:
        >>> from fluidnb.testing import run_op
        >>> rows = {"MaxProbs": [[0.5], [0.5]], "Indices": [[0], [1]], "Labels": [[0], [0]]}
        >>> run_op("precision_recall", rows, {"class_number": 2})["BatchMetrics"][3:]
        array([0.5, 0.5, 0.5])

    Source: Fluid's precision_recall_op.
    """
    classes, weights = b.attr("class_number"), b["Weights"]
    outs = tuple(
        b[slot] if b.wants(slot) else b.tmp(shape, dtype)
        for slot, shape, dtype in (
            ("BatchMetrics", (6,), np.float64), ("AccumMetrics", (6,), np.float64),
            ("AccumStatesInfo", (classes, 4), np.float32),
        )
    )  # fmt: skip
    rows = b["Indices"][:, 0], b["Labels"][:, 0], None if weights is None else weights[:, 0]
    b(measure_precision_recall, *rows, b["StatesInfo"], outs)
