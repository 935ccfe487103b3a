"""reorder_lod_tensor_by_rank: sequences in the order of a rank table, and back."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from fluidnb.op import EMPTY, GRAD, Array, Binder, Context, OpDef, OpDesc, grad_names, grad_op, op
from fluidnb.op.grad import grad_desc
from fluidnb_kernels import verbs
from fluidnb_kernels.lod.take_sequences import cut, sequences

_READS = {"X": "sequences, or a row for each", "RankTable: table": "the table of lod_rank_table"}


def ranks(b: Binder) -> Any:
    """Guard of operators that take a rank table: its items, and the levels above that which was ranked."""
    table = b["RankTable"]
    return None if table is None else (tuple(table.items()), table.coarse_lod)


def _infer(c: Context) -> None:
    if not c.runtime:
        x = c["X"]
        c.set("Out", x.shape, x.dtype, c.lod("X"))


def _grad(desc: OpDesc, definition: OpDef, no_grad: Collection[str]) -> list[OpDesc]:
    (target,) = grad_names(desc, "X", no_grad)
    ins = {"X": [n + GRAD for n in desc.outs["Out"]], "RankTable": desc.ins["RankTable"]}
    return [] if target == EMPTY else [grad_desc("reorder_lod_tensor_by_rank_grad", desc, ins, {"Out": [target]})]


def _reordered(b: Binder, back: bool) -> Array:
    """Make Out; gives which row of X comes to each place."""
    x, lod = b["X"], b.lod("X")
    order = [i for i, _ in b["RankTable"].items()]
    b.require(
        sequences(lod, len(x)) == len(order),
        "reorder_lod_tensor_by_rank takes as many sequences as the table has.",
        expected=len(order), received=f"{sequences(lod, len(x))} in {b.name('X')}",
    )  # fmt: skip
    levels, rows = cut(lod, np.argsort(order).tolist() if back else order)
    b.set("Out", x.shape, x.dtype, levels)
    return rows


@op(
    "reorder_lod_tensor_by_rank",
    inputs=_READS,
    outputs={"Out": "the same, the longest sequence of the table first"},
    infer=_infer,
    grad=_grad,
    guard=ranks,
    dtype_slot="X",
    cuda=True,
)
def reorder_lod_tensor_by_rank(b: Binder) -> None:
    """Out = the sequences of X (its rows, where it has none) in the order of the table.

    Example:
        >>> from fluidnb.testing import run_op
        >>> from fluidnb.values.rank_table import LoDRankTable
        >>> table = LoDRankTable(((0, 1, 4, 6),))
        >>> run_op("reorder_lod_tensor_by_rank", {"X": [[1.0], [2.0], [3.0]], "RankTable": table})["Out"].ravel()
        array([2., 3., 1.])

    Source: Fluid's reorder_lod_tensor_by_rank_op.
    """
    rows = _reordered(b, back=False)
    verbs.gather(b, b["X"], rows, b["Out"])


@grad_op("reorder_lod_tensor_by_rank_grad", infer=None, guard=ranks, dtype_slot="X", cuda=True)
def reorder_lod_tensor_by_rank_grad(b: Binder) -> None:
    """Out = X with its sequences in the order that they had before; X and Out are the gradients of Out and X."""
    rows = _reordered(b, back=True)
    verbs.gather(b, b["X"], rows, b["Out"])
