"""accuracy: how many labels are among the best guesses."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Array, Binder, Context, op
from fluidnb_kernels.emit import store
from fluidnb_kernels.metric.counts import count_right
from fluidnb_kernels.rules import fits


def _infer(c: Context) -> None:
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


def count(hits: Array, share: Array | None, correct: Array | None, total: Array | None) -> None:
    """Write the share of rows with a hit, their number, and that of all rows; None without a consumer."""
    rows, found = len(hits), int(hits.any(1).sum())
    store((share, correct, total), (found / rows if rows else 0.0, found, rows))


@op(
    "accuracy",
    inputs={"Out": "the best values of each row (not read)", "Indices: int64[N, k]": "where they are",
            "Label: int64[N, 1]": "the right place"},
    outputs={"Accuracy": "float32 [1]: the share of right rows", "Correct": "int32 [1]: how many they are",
             "Total": "int32 [1]: how many rows there are"},
    cost="Indices",
    infer=_infer,
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
    return b(count, hits, b["Accuracy"], b["Correct"], b["Total"])
