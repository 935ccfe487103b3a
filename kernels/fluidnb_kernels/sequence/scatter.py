"""sequence_scatter: sequences of updates, added to the rows of a matrix."""

import numpy as np

from fluidnb.op import Array, Binder, Context, default_grad, grad_op, like_forward, op
from fluidnb_kernels import verbs
from fluidnb_kernels.emit import reading, writing, written
from fluidnb_kernels.rules import check_below, whole_numbers
from fluidnb_kernels.sequence import token_ids
from fluidnb_kernels.sequences import offsets_of, owners, require_lod
from fluidnb_kernels.tensor.row_indexing import SUMMED


def _infer(c: Context) -> None:
    x = c["X"]
    whole_numbers(c, "Ids")
    c.require(x.ndim == 2, "Input(X) of sequence_scatter must be a matrix.", expected="[n, m]", received=list(x.shape))
    for slot in ("Ids", "Updates"):
        require_lod(c, slot, levels=1)
    if c.runtime:
        lod = c.lod("Ids")
        c.require(
            lod == c.lod("Updates") and len(lod[0]) == x.shape[0] + 1,
            "Input(Ids) and Input(Updates) of sequence_scatter must have one sequence for each row of Input(X).",
            expected=f"the same LoD, with {x.shape[0]} sequences",
            received=f"{[list(n) for n in lod]} and {[list(n) for n in c.lod('Updates')]}",
        )  # fmt: skip
        c.require(
            c["Updates"].size == lod[0][-1] == c["Ids"].size,
            "Input(Ids) and Input(Updates) of sequence_scatter must have one number in each row.",
            expected=f"[{lod[0][-1]}, 1]", received=f"{list(c['Ids'].shape)} and {list(c['Updates'].shape)}",
        )  # fmt: skip
    c.set("Out", x.shape, x.dtype, c.lod("X"))


def add_updates(x: Array, rows: Array, ids: Array, updates: Array, out: Array) -> None:
    """Write a matrix with ``updates`` [k] added to its elements at ``rows`` and ``ids`` [k]."""
    message = "Input(Ids) of sequence_scatter must name columns of Input(X)."
    check_below(ids, x.shape[1], message, "columns are counted from 0.")
    np.copyto(out, x)
    np.add.at(out, (rows, ids), updates)


def pick(g: Array, rows: Array, ids: Array, out: Array) -> None:
    """Write the elements of a matrix at ``rows`` and ``ids`` [k]."""
    out[...] = g[rows, ids]


def _flat(b: Binder, slot: str) -> Array:
    return reading(b, b[slot], (b[slot].size,))


@op(
    "sequence_scatter",
    inputs={
        "X: float[n, m]": "",
        "Ids: int[k, 1] lod": "n sequences of columns",
        "Updates: float[k, 1] lod": "with the LoD of Ids",
    },
    outputs={"Out": "like X"},
    cost="Updates",
    infer=_infer,
    grad=default_grad("Ids", "Updates", "Out@GRAD", wrt=["X", "Updates"]),
    dtype_slot="X",
    cuda=SUMMED,
)
def sequence_scatter(b: Binder) -> None:
    """Out = X, with Updates[j] added to Out[i, Ids[j]] for each j of sequence i.

    Example:
        >>> from fluidnb.testing import run_op
        >>> inputs = {"X": np.zeros((2, 2)), "Ids": ([[0], [1], [1]], [[1, 2]]), "Updates": (np.ones((3, 1)), [[1, 2]])}
        >>> run_op("sequence_scatter", inputs)["Out"]
        array([[1., 0.],
               [0., 2.]])

    Source: Fluid's sequence_scatter_op.
    """
    if b.on_cuda:  # a column outside of X stops the kernel
        return token_ids.scatter(b, b["X"], b["Ids"], b["Updates"], offsets_of(b, "Ids"), b["Out"])
    rows = owners(np.diff(offsets_of(b, "Ids")))
    b(add_updates, b["X"], rows, _flat(b, "Ids"), _flat(b, "Updates"), b["Out"])


def _grad_infer(c: Context) -> None:
    if c.runtime:
        g, lod = c["Out@GRAD"], c.lod("Ids")
        c.require(
            g.ndim == 2 and len(lod) > 0 and len(lod[-1]) == g.shape[0] + 1 and lod[-1][-1] == c["Ids"].size,
            "Input(Ids) of sequence_scatter_grad must have one sequence for each row of Input(Out@GRAD).",
            expected=f"{g.shape[0]} sequences", received=[list(n) for n in lod],
        )  # fmt: skip
        if c.has("Updates"):
            c.require(
                c["Updates"].size == c["Ids"].size,
                "Input(Updates) of sequence_scatter_grad must have a number for each of Input(Ids).",
                expected=c["Ids"].size, received=c["Updates"].size,
            )  # fmt: skip
    like_forward(c)


@grad_op("sequence_scatter_grad", infer=_grad_infer, dtype_slot="Out@GRAD", cuda=True)
def sequence_scatter_grad(b: Binder) -> None:
    """dX = dOut; dUpdates[j] = dOut[i, Ids[j]]."""
    g, out = b["Out@GRAD"], b["Updates@GRAD"]
    if b.wants("X@GRAD"):
        verbs.copy(b, b["X@GRAD"], g)
    if not b.wants("Updates@GRAD"):
        return
    rows = owners(np.diff(offsets_of(b, "Ids")))
    if b.on_cuda:
        token_ids.pick(b, g, b["Ids"], rows, out)
    else:
        flat = writing(b, out, (out.size,))
        b(pick, g, rows, _flat(b, "Ids"), flat)
        written(b, out, flat)
