"""multiplex: each row taken from one of several tensors."""

import numpy as np

from fluidnb.op import Array, Binder, Context, default_grad, grad_op, op
from fluidnb_kernels.emit import zeros
from fluidnb_kernels.rules import agree, joint
from fluidnb_kernels.tensor import row_indexing
from fluidnb_kernels.tensor.gather_scatter import check_rows


def _infer(c: Context) -> None:
    ids, xs = c["Ids"], c.all("X")
    c.check_inputs("Ids")
    c.require(len(xs) > 1, "multiplex needs at least two candidates.", expected="> 1", received=len(xs))
    shape = xs[0].shape
    for i, x in enumerate(xs[1:], 1):
        c.require(
            agree(shape, x.shape), "The candidates of multiplex must have the same shape.",
            expected=list(shape), received=f"{list(x.shape)} of {c.name('X', i)}",
        )  # fmt: skip
        shape = joint(shape, x.shape)
    c.require(
        -1 in (ids.shape[0], shape[0]) or ids.shape[0] <= shape[0], "multiplex has more rows to choose than there are.",
        expected=f"at most {shape[0]}", received=ids.shape[0],
    )  # fmt: skip
    c.set("Out", (ids.shape[0], *shape[1:]), xs[0].dtype, c.lod("X"))


def choose(ids: Array, xs: list[Array], out: Array) -> None:
    """Write each row from the candidate that its number names."""
    check_rows(ids, len(xs), "Input(Ids) of multiplex")
    for k, x in enumerate(xs):
        rows = np.flatnonzero(ids == k)
        out[rows] = x[rows]


def give_back(ids: Array, g: Array, k: int, dx: Array) -> None:
    """Write the rows of a gradient that belong to one candidate."""
    rows = np.flatnonzero(ids == k)
    dx[rows] = g[rows]


@op(
    "multiplex",
    inputs={"Ids: int32[N, 1]": "which candidate", "X*: any[N, …]": "candidates of one shape"},
    outputs={"Out": "[N, …]: rows of the candidates"},
    infer=_infer,
    grad=default_grad("Ids", "X", "Out@GRAD", wrt=["X"]),
    dtype_slot="X",
    cuda=True,
)
def multiplex(b: Binder) -> None:
    """Out[i] = X[Ids[i]][i].

    Example:
        >>> from fluidnb.testing import run_op
        >>> xs = [np.array([[1.0], [2.0]]), np.array([[7.0], [8.0]])]
        >>> run_op("multiplex", {"Ids": np.array([[1], [0]], "int32"), "X": xs})["Out"].ravel()
        array([7., 2.])

    Source: Fluid's multiplex_op.
    """
    ids, xs, out = b["Ids"], b.all("X"), b["Out"]
    if not b.on_cuda:
        return b(choose, ids.reshape(-1), xs, out)
    for k, x in enumerate(xs):
        row_indexing.choose(b, x, ids, out, (k, len(xs)), others=False)
    return None


@grad_op("multiplex_grad", dtype_slot="X", cuda=True)
def multiplex_grad(b: Binder) -> None:
    """dX[k] = dOut in the rows that were taken from X[k], 0 elsewhere."""
    ids, g, count = b["Ids"], b["Out@GRAD"], len(b.all("X"))
    for k in range(count):
        if not b.wants("X@GRAD", k):
            continue
        dx = b.all("X@GRAD")[k]
        if b.on_cuda:
            row_indexing.choose(b, g, ids, dx, (k, count), others=True)
        else:
            zeros(b, dx)
            b(give_back, ids.reshape(-1), g, k, dx)
