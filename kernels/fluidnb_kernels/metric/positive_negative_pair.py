"""positive_negative_pair: how often a score puts two answers to a query in the right order."""

from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, op
from fluidnb_kernels.rules import fits


def _infer(c: Context) -> None:
    score = c["Score"]
    fits(c, "Score", (-1, -1), "Score of positive_negative_pair is a matrix.", "[N, K]")
    for slot in ("Label", "QueryID"):
        message = f"{slot} of positive_negative_pair has one number for each row of Score."
        fits(c, slot, (score.shape[0], 1), message)
    c.check_inputs("AccumulatePositivePair", "AccumulateNegativePair", "AccumulateNeutralPair")
    for slot in ("PositivePair", "NegativePair", "NeutralPair"):
        c.set(slot, (1,), np.float32)


def pairs(score: Array, label: Array, query: Array, weight: Array | None, before: Any, outs: Any) -> None:
    """Count pairs of one query with different labels: in the right order, in the wrong one, and with equal scores.

    A pair counts the mean of its two weights; one with equal scores is wrong, too. ``before`` and ``outs`` may be None.
    """
    i, j = np.nonzero(np.triu(query[:, None] == query, 1) & (label[:, None] != label))
    weights = np.ones(len(i)) if weight is None else (weight[i] + weight[j]) / 2
    right = (score[i] - score[j]) * (label[i] - label[j]) > 0
    counts = weights[right].sum(), weights[~right].sum(), weights[score[i] == score[j]].sum()
    for out, count, old in zip(outs, counts, before, strict=True):
        if out is not None:
            out[...] = count + (0 if old is None else old.item())


@op(
    "positive_negative_pair",
    inputs={
        "Score: float[N, K]": "", "Label: float[N, 1]": "", "QueryID: int64[N, 1]": "to which query a row belongs",
        "AccumulatePositivePair?: float[1]": "is added", "AccumulateNegativePair?: float[1]": "is added",
        "AccumulateNeutralPair?: float[1]": "is added", "Weight?: float[N, 1]": "what a row counts",
    },
    outputs={
        "PositivePair": "[1]: pairs in the right order", "NegativePair": "[1]: pairs in the wrong order",
        "NeutralPair": "[1]: pairs with equal scores",
    },
    attrs={"column": Attr("int", 0, "which column of Score; negative counts from the end")},
    infer=_infer,
    dtype_slot="Score",
    host_only="counts matches of a whole pass, one after the other",
)  # fmt: skip
def positive_negative_pair(b: Binder) -> None:
    """Of all pairs i, j of rows with one QueryID and different Labels, how many does Score put in the Labels' order.

    PositivePair = the sum of (w[i] + w[j]) / 2 over pairs with (s[i] - s[j]) · (l[i] - l[j]) > 0, NegativePair = that
    over the others, NeutralPair = that over those with s[i] = s[j]; s is column ``column`` of Score.

    Example:
        >>> from fluidnb.testing import run_op
        >>> rows = {"Score": [[0.1], [0.9]], "Label": [[0.0], [1.0]], "QueryID": [[3], [3]]}
        >>> run_op("positive_negative_pair", rows)["PositivePair"]
        array([1.], dtype=float32)

    Source: Fluid's positive_negative_pair_op.
    """
    names = ("Positive", "Negative", "Neutral")
    score = b["Score"]
    b.require(
        -score.shape[1] <= b.attr("column") < score.shape[1], "Score of positive_negative_pair has no such column.",
        expected=f"0 to {score.shape[1] - 1}", received=b.attr("column"),
    )  # fmt: skip
    weight = None if b["Weight"] is None else b["Weight"][:, 0]
    rows = score[:, b.attr("column")], b["Label"][:, 0], b["QueryID"][:, 0], weight
    before = [b[f"Accumulate{n}Pair"] for n in names]
    b(pairs, *rows, before, [b[f"{n}Pair"] if b.wants(f"{n}Pair") else None for n in names])
