"""Rank tables: sequences from the longest to the shortest, and rows in that order."""

from collections.abc import Collection
from typing import Any

import numpy as np

from fluidnb.op import EMPTY, GRAD, Array, Attr, Binder, Context, OpDef, OpDesc, grad_names, grad_op, op
from fluidnb.op.grad import grad_desc
from fluidnb.values.rank_table import LoDRankTable
from fluidnb_kernels import verbs
from fluidnb_kernels.lod.take_sequences import cut, sequences


@op(
    "lod_rank_table",
    inputs={"X: any lod": "sequences"},
    outputs={"Out": "their table: (index, length), the longest first"},
    attrs={"level": Attr("int", 0, "the level whose sequences are ranked", ge=0)},
    dtype_slot="X",
    host_only="works on offsets and lengths, which are kept on the host",
)
def lod_rank_table(b: Binder) -> None:
    """Out = (index, length) of each sequence of a level of X, by falling length; equal ones keep their order.

    The table is a value of its own kind, a LoDRankTable; loops read it, so it stays the same object over runs.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("lod_rank_table", {"X": (np.zeros((14, 1)), [[5, 3, 2, 4]])})["Out"]
        LoDRankTable([(0, 5), (3, 4), (1, 3), (2, 2)])

    Source: developer guide, section on RNNs; Fluid's lod_rank_table_op.
    """
    lod, level = b.lod("X"), b.attr("level")
    b.require(
        level < len(lod), f"lod_rank_table ranks the sequences of level {level}, and {b.name('X')} has no such level.",
        expected=f"a LoD of {level + 1} levels or more", received=f"{len(lod)} levels",
        hint="feed sequences: layers.data(lod_level=1), and a LoDTensor or (array, lengths).",
    )  # fmt: skip
    table = b.put("Out", b.memory.holder(b.outputs["Out"][0], LoDRankTable))
    table.reset(lod, level)  # while binding, for operators bound after it, and in each run
    b(table.reset, lod, level)


def steps(table: LoDRankTable) -> int:
    """The number of steps of the longest sequence."""
    items = table.items()
    return items[0][1] if items else 0


def active(table: LoDRankTable, step: int) -> int:
    """The number of sequences longer than a step, which begins at 0."""
    return sum(length > step for _, length in table.items())


def write_steps(table: LoDRankTable, out: Array) -> None:
    """Write the number of steps of the longest sequence."""
    out[...] = steps(table)


@op(
    "max_sequence_len",
    inputs={"RankTable: table": "the table of lod_rank_table"},
    outputs={"Out": "int64 [1]: the length of the longest sequence"},
    infer=lambda c: c.set("Out", (1,), np.int64),
    host_only="works on offsets and lengths, which are kept on the host",
)
def max_sequence_len(b: Binder) -> None:
    """Out = the length of the longest sequence of a rank table, 0 where there is none.

    Example:
        >>> from fluidnb.testing import run_op
        >>> from fluidnb.values.rank_table import LoDRankTable
        >>> run_op("max_sequence_len", {"RankTable": LoDRankTable(((0, 5, 8),))})["Out"]
        array([5])

    Source: Fluid's max_sequence_len_op.
    """
    b(write_steps, b["RankTable"], b["Out"])


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
