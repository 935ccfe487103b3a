"""gather, gather_nd, scatter and scatter_nd_add: parts of a tensor by their numbers."""

import math

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op, values_of
from fluidnb.op.c_code import Constant, c_code
from fluidnb.op.define import forward_of
from fluidnb.op.scalar_fast_path import copy_row
from fluidnb_kernels import verbs
from fluidnb_kernels.rows import values as rows_values
from fluidnb_kernels.rules import agree, integer, require_fixed
from fluidnb_kernels.tensor import row_indexing


def _gather_axis(c: Context) -> int:
    """The dimension of gather: an attribute, or a variable, which has the number only while running."""
    return integer(c, "axis", "Axis")


def _gather_infer(c: Context) -> None:
    x, index, axis = c["X"], c["Index"], _gather_axis(c)
    c.check_inputs()
    if c.has("Axis") and not c.runtime:
        return c.set("Out", [-1] * x.ndim, x.dtype)
    c.require(
        -x.ndim <= axis < x.ndim, "Attr(axis) of gather must name a dimension of X.",
        expected=f"{-x.ndim} to {x.ndim - 1}", received=axis,
    )  # fmt: skip
    axis %= x.ndim
    return c.set("Out", (*x.shape[:axis], index.shape[0], *x.shape[axis + 1 :]), x.dtype)


def add_rows(total: Array, index: Array, rows: Array, axis: int) -> None:
    """Add rows to those of the total that an index names, as often as it names them."""
    if axis == 0 and total.flags.c_contiguous and rows.flags.c_contiguous and index.size * total.size:
        return rows_values.sum_rows(total, index.reshape(-1), rows.reshape(index.size, *total.shape[1:]))
    return np.add.at(np.moveaxis(total, axis, 0), index, np.moveaxis(rows, axis, 0))


@op(
    "gather",
    inputs={
        "X": "at least one dimension",
        "Index: int[n] | int[n, 1]": "indices of rows",
        "Axis?: int[] | int[1]": "axis as a variable of one element",
    },
    outputs={"Out": "those rows, in the order of Index"},
    attrs={
        "axis": Attr("int", 0, "the dimension whose elements are the rows, from the end when negative"),
        "overwrite": Attr("bool", True, "accepted for old programs: gradients of a row taken twice always add up"),
    },
    infer=_gather_infer,
    grad=default_grad("X", "Index", "Axis", "Out@GRAD", wrt=["X"]),
    guard=values_of("Axis"),
    dtype_slot="X",
    cuda=True,
)
def gather(b: Binder) -> None:
    """Out[i] = X[Index[i]], along ``axis``.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("gather", {"X": [1.0, 2.0, 3.0], "Index": np.array([2, 0])})["Out"]
        array([3., 1.])

    Source: Fluid's gather_op.
    """
    x, index, out, axis = b["X"], b["Index"], b["Out"], _gather_axis(b)
    if b.on_cuda:
        row_indexing.take(b, x, index, out, sides(x.shape, axis), back=True)
    elif index.size == 1 and axis == 0:
        b(copy_row, x, index.reshape(()), out[0, ...])
    else:
        b(np.ndarray.take, x, index.reshape(-1), axis, out)


def sides(shape: tuple[int, ...], axis: int) -> tuple[int, int, int]:
    """The product of sizes before a dimension, its size, and the product after it."""
    axis %= len(shape)
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def sum_back(b: Binder, g: Array, index: Array, dx: Array, axis: int) -> None:
    """Emit the gradient of rows that were taken: each added where it came from, on either place."""
    verbs.fill(b, dx)
    if b.on_cuda:
        row_indexing.add(b, g, index, dx, sides(dx.shape, axis), back=True)
    else:
        b(add_rows, dx, index.reshape(-1), g, axis)


def put_back(b: Binder, g: Array, index: Array, dx: Array, axis: int) -> None:
    """Emit the gradient of elements that were taken once along an axis: each where it came from, 0 elsewhere."""
    verbs.fill(b, dx)
    if not dx.ndim:
        g, index, dx = (a.reshape(1) for a in (g, index, dx))
    if b.on_cuda:
        row_indexing.along(b, "put", g, index, dx, dx, axis % dx.ndim)
    else:
        b(np.put_along_axis, dx, index, g, axis)


@grad_op("gather_grad", guard=values_of("Axis"), dtype_slot="X", cuda=row_indexing.SUMMED)
def gather_grad(b: Binder) -> None:
    """dX = 0, with each row of dOut added where it came from."""
    sum_back(b, b["Out@GRAD"], b["Index"], b["X@GRAD"], _gather_axis(b))


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


def _scatter_infer(c: Context) -> None:
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
    infer=_scatter_infer,
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


def places(index: Array, shape: tuple[int, ...], type: str) -> tuple[Array, ...]:
    """An index as numpy takes it: an array for each of the first dimensions."""
    sizes = np.array(shape[: index.shape[-1]])
    outside = ((index < 0) | (index >= sizes)).any(-1)
    if outside.any():
        raise EnforceNotMet(
            f"Input(Index) of {type} names a place that does not exist.",
            expected=f"0 to {(sizes - 1).tolist()}", received=index[outside][0].tolist(),
        )  # fmt: skip
    return tuple(np.moveaxis(index, -1, 0))


def take_places(x: Array, index: Array, type: str, out: Array) -> None:
    """Write the parts that an index names."""
    out[...] = x[places(index, x.shape, type)]


def add_places(total: Array, index: Array, type: str, parts: Array) -> None:
    """Add parts to those that an index names, as often as it names them."""
    np.add.at(total, places(index, total.shape, type), parts)


def _taken(c: Context) -> tuple[int, ...]:
    """The shape of the parts that Index names in X."""
    x, index, type = c["X"], c["Index"], c.definition.type
    c.check_inputs("Index")
    depth = index.shape[-1] if index.ndim else 0
    c.require(
        0 < depth <= x.ndim, f"The last dimension of Input(Index) of {type} must say how many numbers name a part.",
        expected=f"1 to {x.ndim}, the rank of X", received=list(index.shape),
    )  # fmt: skip
    return (*index.shape[:-1], *x.shape[depth:])


def _take(b: Binder, x: Array, out: Array) -> None:
    """Emit the parts of ``x`` that Index names."""
    if b.on_cuda:
        rows, sides = row_indexing.parts(b, b["Index"], x.shape)
        row_indexing.take(b, x, rows, out, sides)
    else:
        index = b["Index"]
        shape = *index.shape[:-1], *x.shape[index.shape[-1] :]
        b(take_places, x, index, forward_of(b.definition).type, out.reshape(shape))


def _add(b: Binder, total: Array, parts: Array) -> None:
    """Emit ``parts`` added to those of ``total`` that Index names."""
    if b.on_cuda:
        rows, sides = row_indexing.parts(b, b["Index"], total.shape)
        row_indexing.add(b, parts, rows, total, sides)
    else:
        index = b["Index"]
        shape = *index.shape[:-1], *total.shape[index.shape[-1] :]
        b(add_places, total, index, forward_of(b.definition).type, parts.reshape(shape))


@op(
    "gather_nd",
    inputs={"X": "at least one dimension", "Index: int[…, d]": "d numbers for each part"},
    outputs={"Out": "[..., the other dimensions of X]: the parts"},
    infer=lambda c: c.set("Out", _taken(c) or (1,), c["X"].dtype),
    grad=default_grad("X", "Index", "Out@GRAD", wrt=["X"]),
    dtype_slot="X",
    cuda=True,
)
def gather_nd(b: Binder) -> None:
    """Out[i] = X[Index[i]], where Index[i] is a number for each of the first dimensions of X.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("gather_nd", {"X": [[1.0, 2.0], [3.0, 4.0]], "Index": np.array([[1, 0], [0, 1]])})["Out"]
        array([3., 2.])

    Source: Paddle's gather_nd_op.
    """
    _take(b, b["X"], b["Out"])


@grad_op("gather_nd_grad", dtype_slot="X", cuda=row_indexing.SUMMED)
def gather_nd_grad(b: Binder) -> None:
    """dX = 0, with each part of dOut added where it came from."""
    verbs.fill(b, b["X@GRAD"])
    _add(b, b["X@GRAD"], b["Out@GRAD"])


def _add_infer(c: Context) -> None:
    want = _taken(c)
    c.require(
        agree(c["Updates"].shape, want), "Input(Updates) of scatter_nd_add must hold a part for each of Input(Index).",
        expected=f"shape {list(want)}", received=f"shape {list(c['Updates'].shape)}",
    )  # fmt: skip
    c.set("Out", c["X"].shape, c["X"].dtype, c.lod("X"))


@op(
    "scatter_nd_add",
    inputs={
        "X": "at least one dimension",
        "Index: int[…, d]": "d numbers for each part",
        "Updates: any[…]": "[…, the other dimensions of X]: the summands",
    },
    outputs={"Out": "the shape of X"},
    cost="Updates",
    infer=_add_infer,
    grad=default_grad("Index", "Updates", "Out@GRAD", wrt=["X", "Updates"]),
    dtype_slot="X",
    cuda=row_indexing.SUMMED,
)
def scatter_nd_add(b: Binder) -> None:
    """Out = X with Updates[i] added at Index[i], as often as a place is named.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x, index = np.array([1.0, 1.0]), np.array([[1], [1]])
        >>> run_op("scatter_nd_add", {"X": x, "Index": index, "Updates": [2.0, 3.0]})["Out"]
        array([1., 6.])

    Source: Paddle's scatter_nd_add_op.
    """
    verbs.copy(b, b["Out"], b["X"])
    _add(b, b["Out"], b["Updates"])


@grad_op("scatter_nd_add_grad", infer=updates_grad, dtype_slot="Out@GRAD", cuda=True)
def scatter_nd_add_grad(b: Binder) -> None:
    """dX = dOut; dUpdates = the parts of dOut that Index names."""
    if b.wants("X@GRAD"):
        verbs.copy(b, b["X@GRAD"], b["Out@GRAD"])
    if b.wants("Updates@GRAD"):
        _take(b, b["Out@GRAD"], b["Updates@GRAD"])


@c_code("gather", "gather_grad")
def _gather_in_c(c: Context) -> dict[str, Constant]:
    require_fixed(c, "Axis")
    sizes = zip(("OUTER", "HEIGHT", "INNER"), sides(c["X"].shape, c.attr("axis", 0)), strict=True)
    return {"COUNT": c["Index"].size, **dict(sizes)}


@c_code("gather_nd", "gather_nd_grad")
def _gather_nd_in_c(c: Context) -> dict[str, Constant]:
    x, index = c["X"], c["Index"]
    depth = index.shape[-1]
    sizes = {"COUNT": math.prod(index.shape[:-1]), "DEPTH": depth, "INNER": math.prod(x.shape[depth:]), "WHOLE": x.size}
    return {**sizes, "SIZES": list(x.shape[:depth]) or [1]}
