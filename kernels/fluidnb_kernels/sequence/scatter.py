"""sequence_scatter: sequences of updates, added to the rows of a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import Binder, Context, default_grad, grad_op, kernel, op
from fluidnb_kernels.rules import whole_numbers
from fluidnb_kernels.sequence import token_ids
from fluidnb_kernels.sequences import offsets_of, owners, require_lod
from fluidnb_kernels.tensor.row_indexing import SUMMED
from fluidnb_kernels.tensor.strided_copy import move
from fluidnb_kernels.views import reading, writing, written

Array = Any


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
    """Write a matrix with numbers added to some of its elements.

    Args:
        x: [n, m].
        rows: int [k].
        ids: int [k]: columns.
        updates: [k].
        out: [n, m], written.

    Raises:
        EnforceNotMet: a column is outside.

    Example:
        >>> out = np.zeros((1, 2)); add_updates(out, np.array([0, 0]), np.array([1, 1]), np.ones(2), out); out
        array([[0., 2.]])
    """
    if ids.size and not 0 <= ids.min() <= ids.max() < x.shape[1]:
        raise EnforceNotMet(
            "Input(Ids) of sequence_scatter must name columns of Input(X).", expected=f"0 to {x.shape[1] - 1}",
            received=f"{ids.min()} to {ids.max()}", hint="columns are counted from 0.",
        )  # fmt: skip
    np.copyto(out, x)
    np.add.at(out, (rows, ids), updates)


def pick(g: Array, rows: Array, ids: Array, out: Array) -> None:
    """Write some elements of a matrix.

    Args:
        g: [n, m].
        rows: int [k].
        ids: int [k]: columns.
        out: [k], written.

    Example:
        >>> out = np.zeros(1); pick(np.array([[5.0, 7.0]]), np.array([0]), np.array([1]), out); out
        array([7.])
    """
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
    rows = owners(np.diff(offsets_of(b, "Ids")))
    b(add_updates, b["X"], rows, _flat(b, "Ids"), _flat(b, "Updates"), b["Out"])


@grad_op("sequence_scatter_grad", dtype_slot="Out@GRAD")
def sequence_scatter_grad(b: Binder) -> None:
    """dX = dOut; dUpdates[j] = dOut[i, Ids[j]]."""
    g = b["Out@GRAD"]
    if b.wants("X@GRAD"):
        b(np.copyto, b["X@GRAD"], g)
    if b.wants("Updates@GRAD"):
        out = b["Updates@GRAD"]
        flat = writing(b, out, (out.size,))
        b(pick, g, owners(np.diff(offsets_of(b, "Ids"))), _flat(b, "Ids"), flat)
        written(b, out, flat)


@kernel("sequence_scatter", place="cuda", dtypes=SUMMED)
def sequence_scatter_on_cuda(b: Binder) -> None:
    """Updates in their order; a column outside of X stops the kernel."""
    token_ids.scatter(b, b["X"], b["Ids"], b["Updates"], offsets_of(b, "Ids"), b["Out"])


@kernel("sequence_scatter_grad", place="cuda")
def sequence_scatter_grad_on_cuda(b: Binder) -> None:
    """dX = dOut; dUpdates[j] = dOut[i, Ids[j]]."""
    g = b["Out@GRAD"]
    if b.wants("X@GRAD"):
        move(b, b["X@GRAD"], g)
    if b.wants("Updates@GRAD"):
        token_ids.pick(b, g, b["Ids"], owners(np.diff(offsets_of(b, "Ids"))), b["Updates@GRAD"])
