"""accuracy: how many labels are among the best guesses."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Binder, Context, kernel, op
from fluidnb_kernels.metric.counts import count_right

Array = Any


def _infer(c: Context) -> None:
    indices, label = c["Indices"], c["Label"]
    c.require(
        indices.ndim == 2, "Indices of accuracy should be a 2-D tensor.",
        expected="[N, k]", received=list(indices.shape),
    )  # fmt: skip
    c.require(
        label.ndim == 2 and label.shape[1] in (1, -1), "Label of accuracy should have the shape [N, 1].",
        expected=[indices.shape[0], 1], received=list(label.shape),
    )  # fmt: skip
    c.require(
        indices.shape[0] == label.shape[0] or -1 in (indices.shape[0], label.shape[0]),
        "Label and Indices of accuracy must have the same number of rows.",
        expected=indices.shape[0], received=label.shape[0],
    )  # fmt: skip
    for slot, dtype in (("Accuracy", np.float32), ("Correct", np.int32), ("Total", np.int32)):
        c.set(slot, (1,), dtype)


def count(hits: Array, share: Array | None, correct: Array | None, total: Array | None) -> None:
    """Write how many rows have a hit.

    Args:
        hits: bool [N, k].
        share: float32 [1], written: rows with a hit among all; or None.
        correct: int32 [1], written: rows with a hit; or None.
        total: int32 [1], written: all rows; or None.

    Example:
        >>> n = np.zeros(1, "int32"); count(np.array([[True], [False]]), None, n, None); n
        array([1], dtype=int32)
    """
    rows, found = len(hits), int(hits.any(1).sum())
    for out, value in ((share, found / rows if rows else 0.0), (correct, found), (total, rows)):
        if out is not None:
            out[...] = value


@op(
    "accuracy",
    inputs={"Out": "the best values of each row (not read)", "Indices: int64[N, k]": "where they are",
            "Label: int64[N, 1]": "the right place"},
    outputs={"Accuracy": "float32 [1]: the share of right rows", "Correct": "int32 [1]: how many they are",
             "Total": "int32 [1]: how many rows there are"},
    cost="Indices",
    infer=_infer,
    dtype_slot="Out",
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
    hits = b.tmp(indices.shape, bool)
    b(np.equal, indices, label, out=hits)
    b(count, hits, b["Accuracy"], b["Correct"], b["Total"])


@kernel("accuracy", place="cuda")
def accuracy_on_cuda(b: Binder) -> None:
    """Blocks count, one of them joins their counts."""
    count_right(b, b["Indices"], b["Label"], b["Accuracy"], b["Correct"], b["Total"])
