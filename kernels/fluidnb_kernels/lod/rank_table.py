"""lod_rank_table, max_sequence_len: which sequences are longest, and how long."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Array, Attr, Binder, op
from fluidnb.values.rank_table import LoDRankTable


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
