"""precision_recall: precision, recall and F1 of a classifier, by class and together."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, op
from fluidnb_kernels.rules import check_classes


def _infer(c: Context) -> None:
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


def measure(guess: Array, label: Array, weight: Array | None, before: Array | None, outs: Any) -> None:
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
    infer=_infer,
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
    b(measure, *rows, b["StatesInfo"], outs)
