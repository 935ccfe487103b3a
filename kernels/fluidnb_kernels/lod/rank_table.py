"""Rank tables: sequences from the longest to the shortest, rows in that order, and memories that shrink."""

from typing import Any

import numpy as np

from fluidnb.op import Array, Binder, Context, default_grad, grad_op, op, same
from fluidnb.op.attr import Attr
from fluidnb.op.rules import like_forward
from fluidnb.values.copies import on_host
from fluidnb.values.rank_table import LoDRankTable
from fluidnb_kernels import verbs
from fluidnb_kernels.gradients import gradient_by
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
    grad=gradient_by("reorder_lod_tensor_by_rank_grad", {"RankTable": "RankTable"}, {"X": "Out"}, {"Out": "X"}),
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


def _shrink_infer(c: Context) -> None:
    c.check_inputs("I")
    if not c.runtime:
        x = c["X"]
        c.set("Out", (-1, *x.shape[1:]), x.dtype, c.lod("X"))


def _going_on(b: Binder) -> int | None:
    """The guard: how many sequences continue at this step."""
    table, index = b["RankTable"], b["I"]
    return None if table is None or index is None else active(table, on_host(index).item())


def _shrunk(b: Binder) -> int:
    """Make Out; gives how many rows of X it has."""
    x, lod = b["X"], b.lod("X")
    k, have = active(b["RankTable"], on_host(b["I"]).item()), len(lod[0]) - 1 if lod else len(x)
    b.require(
        k <= have, "The memory of a recurrent network has fewer rows than unfinished sequences.",
        expected=f"{k} or more", received=have,
        hint="it needs a row for each sequence of the batch at the first step: memory(init=...) gives them.",
    )  # fmt: skip
    levels, rows = cut(lod, range(k))
    b.set("Out", (len(rows), *x.shape[1:]), x.dtype, levels)
    return len(rows)


@op(
    "shrink_rnn_memory",
    inputs={
        "X": "a row, or a sequence, for each unfinished sequence, in the order of the table",
        "RankTable: table": "the table of lod_rank_table",
        "I: int64[1]": "the step, from 0",
    },
    outputs={"Out": "those whose sequences are longer than I"},
    infer=_shrink_infer,
    grad=default_grad("X", "Out@GRAD", wrt=["X"]),
    guard=_going_on,
    dtype_slot="X",
    cuda=True,
)
def shrink_rnn_memory(b: Binder) -> None:
    """Out = the first k rows of X, for the k sequences of the table that are longer than I.

    The gradient puts zeros where X continues.

    Example:
        >>> from fluidnb.testing import run_op
        >>> from fluidnb.values.rank_table import LoDRankTable
        >>> table = LoDRankTable(((0, 1, 4, 6),))
        >>> run_op("shrink_rnn_memory", {"X": [[1.0], [2.0], [3.0]], "RankTable": table, "I": [1]})["Out"].ravel()
        array([1., 2.])

    Source: Fluid's shrink_rnn_memory_op.
    """
    rows = _shrunk(b)
    verbs.copy(b, b["Out"], b["X"], of=lambda v: v[:rows])


@grad_op("shrink_rnn_memory_grad", dtype_slot="X", unset=("Out@GRAD",), cuda=True)
def shrink_rnn_memory_grad(b: Binder) -> None:
    """dX = dOut, and zeros for the sequences that were over."""
    dx, dout = b["X@GRAD"], b["Out@GRAD"]
    k = 0 if dout is None else len(dout)
    if k < len(dx):
        verbs.fill(b, dx[k:])
    if k:
        verbs.copy(b, dx, dout, to=lambda v: v[:k])


@op(
    "rnn_memory_helper",
    inputs={"X": "what is remembered"},
    outputs={"Out": "the same"},
    attrs={"dtype": Attr("dtype", 5, "the dtype of both")},
    infer=same(),
    grad=default_grad("X", "Out", "Out@GRAD"),
    dtype_slot="X",
    cuda=True,
)
def rnn_memory_helper(b: Binder) -> None:
    """Out = X. The gradient is zero where it has no consumer, as after the last step.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("rnn_memory_helper", {"X": [1.0, 2.0]})["Out"]
        array([1., 2.])

    Source: Fluid's rnn_memory_helper_op.
    """
    verbs.copy(b, b["Out"], b["X"])


@grad_op("rnn_memory_helper_grad", infer=like_forward, dtype_slot="X", unset=("Out", "Out@GRAD"), cuda=True)
def rnn_memory_helper_grad(b: Binder) -> None:
    """dX = dOut, zero where there is none."""
    if b["Out@GRAD"] is None:
        verbs.fill(b, b["X@GRAD"])
    else:
        verbs.copy(b, b["X@GRAD"], b["Out@GRAD"])
