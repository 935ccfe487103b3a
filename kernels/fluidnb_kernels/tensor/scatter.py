"""scatter: rows of a tensor replaced by others, or with others added."""

from __future__ import annotations

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op
from fluidnb_kernels import verbs
from fluidnb_kernels.rules import agree
from fluidnb_kernels.tensor import row_indexing
from fluidnb_kernels.tensor.gather import sides


def check_rows(ids: Array, height: int, what: str) -> None:
    """Refuse row numbers outside a tensor."""
    if ids.size and not (0 <= ids.min() and ids.max() < height):
        bad = ids[(ids < 0) | (ids >= height)].ravel()[0]
        raise EnforceNotMet(
            f"{what} names a row that does not exist.", expected=f"0 to {height - 1}", received=int(bad)
        )


def put_rows(out: Array, ids: Array, rows: Array) -> None:
    """Write rows; of several for the same place the last one stays."""
    check_rows(ids, len(out), "Input(Ids) of scatter")
    out[ids] = rows


def sum_rows(out: Array, ids: Array, rows: Array) -> None:
    """Write the sum of all rows for the same place, in place of what was there."""
    check_rows(ids, len(out), "Input(Ids) of scatter")
    out[ids] = 0
    np.add.at(out, ids, rows)


def _infer(c: Context) -> None:
    x, ids, updates = c["X"], c["Ids"], c["Updates"]
    c.check_inputs("Ids")
    want = (ids.shape[0], *x.shape[1:])
    c.require(
        agree(updates.shape, want), "Input(Updates) of scatter must hold a row for each of Input(Ids).",
        expected=f"shape {list(want)}", received=f"shape {list(updates.shape)}",
    )  # fmt: skip
    c.set("Out", x.shape, x.dtype, c.lod("X"))


@op(
    "scatter",
    inputs={
        "X": "at least one dimension",
        "Ids: int[n] | int[n, 1]": "indices of rows",
        "Updates: any[n, …]": "new rows",
    },
    outputs={"Out": "X with other rows"},
    attrs={"overwrite": Attr("bool", True, "replace rows; else a row becomes the sum of all updates for it")},
    infer=_infer,
    grad=default_grad("Ids", "Updates", "Out@GRAD", wrt=["X", "Updates"]),
    dtype_slot="X",
    cuda=row_indexing.SUMMED,
)
def scatter(b: Binder) -> None:
    """Out = X with Out[Ids[i]] = Updates[i], or the sum of all updates for that row.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x, rows = np.array([1.0, 2.0, 3.0]), np.array([7.0, 8.0])
        >>> run_op("scatter", {"X": x, "Ids": np.array([2, 0]), "Updates": rows})["Out"]
        array([8., 2., 7.])

    Source: Fluid's scatter_op.
    """
    out, ids, rows = b["Out"], b["Ids"], b["Updates"]
    verbs.copy(b, out, b["X"])
    if not b.on_cuda:
        return b(put_rows if b.attr("overwrite") else sum_rows, out, ids.reshape(-1), rows)
    if b.attr("overwrite"):
        return row_indexing.put(b, rows, ids, out)
    row_indexing.blank(b, ids, out)
    return row_indexing.add(b, rows, ids, out, sides(out.shape, 0))


def updates_grad(c: Context) -> None:
    """Rule: the gradient of X is like that of Out, that of Updates like Updates."""
    g, updates = c["Out@GRAD"], c["Updates"]
    c.set("X@GRAD", g.shape, g.dtype, c.lod("Out@GRAD"))
    c.set("Updates@GRAD", updates.shape, updates.dtype, c.lod("Updates"))


@grad_op("scatter_grad", infer=updates_grad, dtype_slot="Out@GRAD", cuda=True)
def scatter_grad(b: Binder) -> None:
    """dX = dOut, but 0 in the rows that were replaced; dUpdates = those rows of dOut."""
    g, ids = b["Out@GRAD"], b["Ids"]
    if b.wants("X@GRAD"):
        dx = b["X@GRAD"]
        verbs.copy(b, dx, g)
        if b.on_cuda:
            row_indexing.blank(b, ids, dx)
        else:
            b(put_rows, dx, ids.reshape(-1), b.const(0, dx.dtype))
    if b.wants("Updates@GRAD"):
        if b.on_cuda:
            row_indexing.take(b, g, ids, b["Updates@GRAD"], sides(g.shape, 0))
        else:
            b(np.ndarray.take, g, ids.reshape(-1), 0, b["Updates@GRAD"], "clip")
