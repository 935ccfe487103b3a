"""sequence_expand and sequence_expand_as: rows or sequences repeated as often as another variable's sequences say."""

from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op
from fluidnb_kernels import verbs
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.sequences import as_level, offsets_of, owners, ranges, require_lod


def _counts(c: Context) -> Array:
    """The repetitions of each row or sequence of X: the lengths of Y's level that ``ref_level`` names."""
    lod, level = c.lod("Y"), c.attr("ref_level", -1)
    require_lod(c, "Y")
    c.require(
        -1 <= level < len(lod), "Invalid Attr(ref_level): it must name a level of the LoD of Input(Y).",
        expected=f"-1 to {len(lod) - 1}", received=level, hint="-1 is the last level.",
    )  # fmt: skip
    return np.diff(lod[level])


def _rows(c: Context) -> tuple[Array, tuple[Any, ...]]:
    """Indices of the result's rows in X, in order, and the LoD of the result."""
    counts, lod = _counts(c), c.lod("X")
    if not lod:
        return owners(counts), ()
    offsets = np.array(lod[0], np.int64)
    repeated = owners(counts)
    lengths = np.diff(offsets)[repeated]
    return ranges(offsets[:-1][repeated], lengths), (as_level(lengths),)


def _infer(c: Context) -> None:
    x, lod = c["X"], c.lod("X")
    c.require(
        len(lod) <= 1, "Level number of Input(X)'s lod should not be greater than 1.",
        expected="rows, or sequences of rows", received=f"a LoD of {len(lod)} levels",
    )  # fmt: skip
    if not c.runtime:
        return c.set("Out", (-1, *x.shape[1:]), x.dtype, lod)
    repeats, items = len(_counts(c)), len(lod[0]) - 1 if lod else x.shape[0]
    c.require(
        items == repeats,
        "Input(X) of sequence_expand must have one " + ("sequence" if lod else "row")
        + " for each sequence of Input(Y) at ref_level.",
        expected=f"{repeats}, as Input(Y) has", received=items,
    )  # fmt: skip
    rows, out_lod = _rows(c)
    return c.set("Out", (len(rows), *x.shape[1:]), x.dtype, out_lod)


@op(
    "sequence_expand",
    inputs={"X: any[n, …]": "with sequences or without", "Y: any lod": "its LoD counts, not its values"},
    outputs={"Out": "the rows or sequences of X, each as often as Y says; with LoD when X has one"},
    attrs={"ref_level": Attr("int", -1, "the level of Y whose lengths count; -1 is the last", ge=-1)},
    infer=_infer,
    grad=default_grad("X", "Y", "Out@GRAD", wrt=["X"]),
    cuda=True,
)
def sequence_expand(b: Binder) -> None:
    """Out = row i of X, or its sequence i where it has sequences, as often as sequence i of Y is long.

    Lengths are those of level ``ref_level`` of Y. A length of 0 leaves the row or sequence out.

    Example:
        >>> from fluidnb.testing import run_op
        >>> y = (np.zeros((3, 1)), [[2, 0, 1]])
        >>> run_op("sequence_expand", {"X": [[1.0], [2.0], [3.0]], "Y": y})["Out"].ravel()
        array([1., 1., 3.])

    Source: Fluid's sequence_expand_op.
    """
    verbs.gather(b, b["X"], _rows(b)[0], b["Out"])


@grad_op("sequence_expand_grad", dtype_slot="Out@GRAD", cuda=FLOATS)
def sequence_expand_grad(b: Binder) -> None:
    """dX = the sum of the gradients of all copies."""
    verbs.scatter_add(b, b["Out@GRAD"], _rows(b)[0], b["X@GRAD"])


def _as_infer(c: Context) -> None:
    x, lod = c["X"], c.lod("Y")
    require_lod(c, "Y", levels=1)
    rows = -1
    c.check_inputs("X")
    if c.runtime:
        c.require(
            x.shape[0] == len(lod[0]) - 1, "Input(X) of sequence_expand_as must have one row for each sequence of Y.",
            expected=len(lod[0]) - 1, received=x.shape[0],
        )  # fmt: skip
        rows = lod[0][-1]
    c.set("Out", (rows, *x.shape[1:]), x.dtype, lod)


@op(
    "sequence_expand_as",
    inputs={"X: any[sequences, …]": "", "Y: any lod": "its LoD counts, not its values"},
    outputs={"Out": "[rows of Y, …], with the LoD of Y"},
    infer=_as_infer,
    grad=default_grad("X", "Y", "Out@GRAD", wrt=["X"]),
    cuda=True,
)
def sequence_expand_as(b: Binder) -> None:
    """Out = row i of X for each row of sequence i of Y.

    Example:
        >>> from fluidnb.testing import run_op
        >>> y = (np.zeros((3, 1)), [[2, 1]])
        >>> run_op("sequence_expand_as", {"X": [[1.0], [2.0]], "Y": y})["Out"].array.ravel()
        array([1., 1., 2.])

    Source: Fluid's sequence_expand_as_op.
    """
    verbs.gather(b, b["X"], owners(np.diff(offsets_of(b, "Y"))), b["Out"])


@grad_op("sequence_expand_as_grad", dtype_slot="Out@GRAD", cuda=FLOATS)
def sequence_expand_as_grad(b: Binder) -> None:
    """dX = the sum of the gradients of the rows of each sequence."""
    verbs.scatter_add(b, b["Out@GRAD"], owners(np.diff(offsets_of(b, "Y"))), b["X@GRAD"])
