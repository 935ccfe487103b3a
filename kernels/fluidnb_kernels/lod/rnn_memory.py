"""shrink_rnn_memory, rnn_memory_helper: what a recurrent network remembers from one step to the next."""

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, op, same
from fluidnb.op.rules import like_forward
from fluidnb.values.copies import on_host
from fluidnb_kernels import verbs
from fluidnb_kernels.lod.rank_table import active
from fluidnb_kernels.lod.take_sequences import cut


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
