"""index_select, index_sample, masked_select, multiplex: elements chosen by numbers or by a mask."""

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op
from fluidnb.op.c_code import Constant, c_code
from fluidnb.values.copies import on_host
from fluidnb_kernels import verbs
from fluidnb_kernels.emit import zeros
from fluidnb_kernels.rules import agree, checked, joint, one_axis
from fluidnb_kernels.tensor import row_indexing
from fluidnb_kernels.tensor.gather_scatter import check_rows, sides, sum_back


def _check(index: Array, size: int, type: str) -> None:
    if index.size and not (0 <= index.min() and index.max() < size):
        bad = index[(index < 0) | (index >= size)].ravel()[0]
        raise EnforceNotMet(
            f"Input(Index) of {type} names an element that does not exist.", expected=f"0 to {size - 1}",
            received=int(bad),
        )  # fmt: skip


def select(x: Array, index: Array, axis: int, out: Array) -> None:
    """Write elements along an axis by their numbers."""
    _check(index, x.shape[axis], "index_select")
    x.take(index, axis, out, "clip")


def _axis(c: Context) -> int:
    return one_axis(c, c.attr("dim", 0), c["X"].ndim, "dim")


def _select_infer(c: Context) -> None:
    x, index, axis = c["X"], c["Index"], _axis(c)
    c.check_inputs()
    c.set("Out", (*x.shape[:axis], index.shape[0], *x.shape[axis + 1 :]), x.dtype)


@op(
    "index_select",
    inputs={"X": "at least one dimension", "Index: int[n]": "which elements"},
    outputs={"Out": "like X, but n long along dim"},
    attrs={"dim": Attr("int", 0, "the dimension along which elements are chosen; from the end when negative")},
    infer=_select_infer,
    grad=default_grad("X", "Index", "Out@GRAD", wrt=["X"]),
    dtype_slot="X",
    cuda=True,
)
def index_select(b: Binder) -> None:
    """Out[..., i, ...] = X[..., Index[i], ...] along ``dim``.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("index_select", {"X": [[1.0, 2.0]], "Index": np.array([1, 0, 1])}, {"dim": 1})["Out"]
        array([[2., 1., 2.]])

    Source: Paddle's index_select_op.
    """
    x, index, axis, out = b["X"], b["Index"], _axis(b), b["Out"]
    if b.on_cuda:
        row_indexing.take(b, x, index, out, sides(x.shape, axis))
    else:
        b(select, x, index, axis, out)


@grad_op("index_select_grad", dtype_slot="X", cuda=row_indexing.SUMMED)
def index_select_grad(b: Binder) -> None:
    """dX = 0, with each element of dOut added where it came from."""
    sum_back(b, b["Out@GRAD"], b["Index"], b["X@GRAD"], _axis(b))


def sample(x: Array, index: Array, out: Array) -> None:
    """Write elements of each row by their numbers in it."""
    _check(index, x.shape[1], "index_sample")
    out[...] = np.take_along_axis(x, index, 1)


def add_samples(total: Array, index: Array, values: Array) -> None:
    """Add values to the elements of each row that an index names, as often as it names them."""
    np.add.at(total, (np.arange(len(total))[:, None], index), values)


@op(
    "index_sample",
    inputs={"X: float[n, d]": "", "Index: int[n, k]": "which elements of each row"},
    outputs={"Out": "[n, k]"},
    infer=checked(lambda c: c.set("Out", c["Index"].shape, c["X"].dtype, c.lod("X"))),
    grad=default_grad("X", "Index", "Out@GRAD", wrt=["X"]),
    dtype_slot="X",
    cuda=True,
)
def index_sample(b: Binder) -> None:
    """Out[i, j] = X[i, Index[i, j]].

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("index_sample", {"X": [[1.0, 2.0], [3.0, 4.0]], "Index": np.array([[1], [0]])})["Out"]
        array([[2.],
               [3.]])

    Source: Paddle's index_sample_op.
    """
    x, index, out = b["X"], b["Index"], b["Out"]
    if b.on_cuda:
        row_indexing.along(b, "taken", x, index, out, x, 1)
    else:
        b(sample, x, index, out)


@grad_op("index_sample_grad", dtype_slot="X", cuda=row_indexing.SUMMED)
def index_sample_grad(b: Binder) -> None:
    """dX = 0, with each element of dOut added where it came from."""
    dx = b["X@GRAD"]
    verbs.fill(b, dx)
    if b.on_cuda:
        row_indexing.along(b, "added", b["Out@GRAD"], b["Index"], dx, dx, 1)
    else:
        b(add_samples, dx, b["Index"], b["Out@GRAD"])


def _chosen(c: Context) -> int:
    """The number of elements that the mask selects."""
    return int(np.count_nonzero(on_host(c["Mask"])))


def _mask_infer(c: Context) -> None:
    x, mask = c["X"], c["Mask"]
    c.require(
        agree(x.shape, mask.shape) and np.dtype(mask.dtype) == bool, "Input(Mask) of masked_select must fit X.",
        expected=f"bool {list(x.shape)}", received=f"{np.dtype(mask.dtype).name} {list(mask.shape)}",
    )  # fmt: skip
    c.set("Y", (_chosen(c) if c.runtime else -1,), x.dtype)


def pick(x: Array, mask: Array, out: Array) -> None:
    """Write the elements that a mask chooses."""
    out[...] = x[mask]


def put_back(out: Array, mask: Array, values: Array) -> None:
    """Write values where a mask holds."""
    out[mask] = values


@op(
    "masked_select",
    inputs={"X": "any shape", "Mask: bool": "the same shape"},
    outputs={"Y": "[n]: the elements for which Mask holds, in order"},
    infer=_mask_infer,
    grad=default_grad("X", "Mask", "Y@GRAD", wrt=["X"]),
    guard=_chosen,
    data_shape=True,
    dtype_slot="X",
    cuda=True,
)
def masked_select(b: Binder) -> None:
    """Y = the elements of X for which Mask holds.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("masked_select", {"X": [1.0, 2.0, 3.0], "Mask": np.array([True, False, True])})["Y"]
        array([1., 3.])

    Source: Paddle's masked_select_op.
    """
    x, mask, y = b["X"], b["Mask"], b["Y"]
    if b.on_cuda:
        row_indexing.take(b, x, row_indexing.places(b, mask, y.size), y, (1, x.size, 1))
    else:
        b(pick, x, mask, y)


@grad_op("masked_select_grad", guard=_chosen, dtype_slot="X", cuda=True)
def masked_select_grad(b: Binder) -> None:
    """dX = dY where Mask holds, 0 elsewhere."""
    dx, g = b["X@GRAD"], b["Y@GRAD"]
    verbs.fill(b, dx)
    if b.on_cuda:
        flat = dx.reshape(-1)
        row_indexing.along(b, "put", g, row_indexing.places(b, b["Mask"], g.size), flat, flat, 0)
    else:
        b(put_back, dx, b["Mask"], g)


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


@c_code("index_select", function="gather", file="gather_scatter.c")
@c_code("index_select_grad", function="gather_grad", file="gather_scatter.c")
def _index_select_in_c(c: Context) -> dict[str, Constant]:
    sizes = zip(("OUTER", "HEIGHT", "INNER"), sides(c["X"].shape, _axis(c)), strict=True)
    return {"COUNT": c["Index"].size, **dict(sizes)}
