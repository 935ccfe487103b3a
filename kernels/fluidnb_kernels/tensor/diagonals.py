"""tril_triu, diag_v2, diag_embed, trace and eye: diagonals and triangles."""

import math

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op, same
from fluidnb.op.c_code import Constant, c_code
from fluidnb.values import dtypes
from fluidnb_kernels import verbs
from fluidnb_kernels.cuda import Source, by_rows, typed
from fluidnb_kernels.cuda.axis_reduction import fold
from fluidnb_kernels.reduce.reduction_kernels import CUDA as REDUCE
from fluidnb_kernels.reduce.reduction_kernels import NUMBERS, TOTAL
from fluidnb_kernels.rules import checked, one_axis
from fluidnb_kernels.tensor.row_indexing import word
from fluidnb_kernels.tensor.strided_copy import WORDS, layout_of

CUDA = Source(__file__, "diagonals.cu", typed(("triangle", [word for size, word in WORDS.items() if size <= 8])))

_OFFSET = Attr("int", 0, "which diagonal: 0 the main one, positive ones above it, negative ones below")


def diagonal_view(x: Array, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Array:
    """A diagonal of matrices as a view that can be written."""
    # numpy's own view begins outside of the array where -offset does not fit a C int
    offset = max(-x.shape[axis1], min(x.shape[axis2], offset))
    view = np.diagonal(x, offset, axis1, axis2)
    if x.flags.writeable:
        view.flags.writeable = True
    return view


def _length(rows: int, columns: int, offset: int) -> int:
    """The length of a diagonal; -1 where it is unknown."""
    if -1 in (rows, columns):
        return -1
    return max(0, min(rows + min(offset, 0), columns - max(offset, 0)))


def _keep(b: Binder, x: Array, out: Array) -> None:
    """Emit ``out = x`` in a triangle, 0 elsewhere."""
    lower, k = b.attr("lower", False), b.attr("diagonal", 0)
    rows, columns = x.shape[-2:]
    if b.on_cuda:
        numbers = np.int64(rows), np.int64(columns), np.int64(k), np.int32(lower)
        return by_rows(b, CUDA, f"triangle<{word(x)}>", x.size // max(columns, 1), columns, x, out, *numbers)
    mask = np.tri(rows, columns, k if lower else k - 1, dtype=bool)
    verbs.fill(b, out)
    return b(np.copyto, out, x, where=np.broadcast_to(mask if lower else ~mask, x.shape))


def _take(b: Binder, x: Array, out: Array, at: tuple[int, ...]) -> None:
    """Emit ``out`` = a diagonal of ``x``; ``at`` is what `diagonal_view` takes beside an array."""
    verbs.copy(b, out, x, of=lambda v: diagonal_view(v, *at))


def _put(b: Binder, x: Array, out: Array, at: tuple[int, ...], beside: float = 0.0) -> None:
    """Emit ``x`` on diagonals of ``out``, one element for all of a diagonal or one each, and a number beside them."""
    verbs.fill(b, out, np.asarray(beside).astype(out.dtype).item())
    *others, length = diagonal_view(layout_of(out), *at).shape
    if length and all(others):
        x = x.reshape(*others, x.size // math.prod(others))
        verbs.copy(b, out, x, to=lambda v: diagonal_view(v, *at))


@op(
    "tril_triu",
    inputs={"X: any[…, m, n]": ""},
    outputs={"Out": "its lower or upper triangle, 0 elsewhere"},
    attrs={
        "diagonal": Attr("int", 0, "the last diagonal of a lower triangle, the first one of an upper one"),
        "lower": Attr("bool", False, "keep what is below and on it; else what is above and on it"),
    },
    infer=checked(same()),
    grad=default_grad("Out@GRAD"),
    cuda=True,
)
def tril_triu(b: Binder) -> None:
    """Out = X in a triangle of each matrix, 0 elsewhere.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("tril_triu", {"X": [[1.0, 2.0], [3.0, 4.0]]}, {"lower": True})["Out"]
        array([[1., 0.],
               [3., 4.]])

    Source: Paddle's tril_triu_op.
    """
    _keep(b, b["X"], b["Out"])


@grad_op("tril_triu_grad", cuda=True)
def tril_triu_grad(b: Binder) -> None:
    """dX = dOut in the triangle, 0 elsewhere."""
    _keep(b, b["Out@GRAD"], b["X@GRAD"])


def _diag_infer(c: Context) -> None:
    x, offset = c["X"], c.attr("offset")
    c.check_inputs()
    if x.ndim == 1:
        n = x.shape[0] + abs(offset) if x.shape[0] >= 0 else -1
        return c.set("Out", (n, n), x.dtype)
    return c.set("Out", (_length(x.shape[0], x.shape[1], offset),), x.dtype)


@op(
    "diag_v2",
    inputs={"X: any[n] | any[m, n]": "a diagonal, or a matrix"},
    outputs={"Out": "a matrix with the vector on a diagonal, or the diagonal of the matrix"},
    attrs={"offset": _OFFSET, "padding_value": Attr("float", 0.0, "the other elements of a new matrix")},
    infer=_diag_infer,
    grad=default_grad("X", "Out@GRAD"),
    cuda=True,
)
def diag_v2(b: Binder) -> None:
    """Out = a matrix with X on a diagonal, or the diagonal of the matrix X.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("diag_v2", {"X": [1.0, 2.0]})["Out"]
        array([[1., 0.],
               [0., 2.]])

    Source: Paddle's diag_v2_op.
    """
    x, out, at = b["X"], b["Out"], (b.attr("offset"),)
    if x.ndim == 2:
        return _take(b, x, out, at)
    return _put(b, x, out, at, b.attr("padding_value"))


@grad_op("diag_v2_grad", cuda=True)
def diag_v2_grad(b: Binder) -> None:
    """dX = the diagonal of dOut, or a matrix with dOut on the diagonal and 0 elsewhere."""
    g, dx = b["Out@GRAD"], b["X@GRAD"]
    (_take if dx.ndim == 1 else _put)(b, g, dx, (b.attr("offset", 0),))


def _embed_infer(c: Context) -> None:
    c.check_inputs()
    x, offset = c["Input"], c.attr("offset")
    rank = x.ndim + 1
    first, second = (one_axis(c, c.attr(n), rank, n) for n in ("dim1", "dim2"))
    c.require(first != second, "dim1 and dim2 of diag_embed must differ.", expected="two dimensions", received=first)
    n = x.shape[-1] + abs(offset) if x.shape[-1] >= 0 else -1
    rest = iter(x.shape[:-1])
    c.set("Out", [n if i in (first, second) else next(rest) for i in range(rank)], x.dtype)


def _embedded(b: Binder) -> tuple[int, ...]:
    return b.attr("offset", 0), b.attr("dim1", -2), b.attr("dim2", -1)


@op(
    "diag_embed",
    inputs={"Input: any[…, n]": ""},
    outputs={"Out": "one dimension more: matrices with Input on a diagonal"},
    attrs={
        "offset": _OFFSET,
        "dim1": Attr("int", -2, "the dimension of the rows of the matrices"),
        "dim2": Attr("int", -1, "the dimension of their columns"),
    },
    infer=_embed_infer,
    grad=default_grad("Out@GRAD"),
    cuda=True,
)
def diag_embed(b: Binder) -> None:
    """Out = matrices with the last dimension of Input on a diagonal, 0 elsewhere.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("diag_embed", {"Input": [[1.0, 2.0]]})["Out"]
        array([[[1., 0.],
                [0., 2.]]])

    Source: Paddle's diag_embed_op.
    """
    _put(b, b["Input"], b["Out"], _embedded(b))


def _embed_grad_infer(c: Context) -> None:
    g, offset = c["Out@GRAD"], c.attr("offset", 0)
    gone = {c.attr(n, d) % g.ndim for n, d in (("dim1", -2), ("dim2", -1))}
    n = g.shape[min(gone)]
    shape = [size for i, size in enumerate(g.shape) if i not in gone]
    c.set("Input@GRAD", [*shape, n if n < 0 else n - abs(offset)], g.dtype)


@grad_op("diag_embed_grad", infer=_embed_grad_infer, cuda=True)
def diag_embed_grad(b: Binder) -> None:
    """dInput = the diagonals of dOut."""
    _take(b, b["Out@GRAD"], b["Input@GRAD"], _embedded(b))


def trace_axes(c: Context) -> tuple[int, int]:
    """The dimensions of rows and columns of trace; Paddle counts rows along the first of both, whichever is axis1."""
    c.check_inputs()
    rank = c["Input"].ndim
    first, second = (one_axis(c, c.attr(n, d), rank, n) for n, d in (("axis1", 0), ("axis2", 1)))
    c.require(first != second, "axis1 and axis2 of trace must differ.", expected="two dimensions", received=first)
    return min(first, second), max(first, second)


def _trace_infer(c: Context) -> None:
    x, gone = c["Input"], trace_axes(c)
    c.set("Out", [n for i, n in enumerate(x.shape) if i not in gone] or [1], x.dtype)


@op(
    "trace",
    inputs={"Input: any[m, n, …]": "at least two dimensions"},
    outputs={"Out": "two dimensions less; [1] for one matrix"},
    attrs={
        "offset": _OFFSET,
        "axis1": Attr("int", 0, "one dimension of the matrices; the first of both is that of the rows"),
        "axis2": Attr("int", 1, "their other dimension"),
    },
    cost="Input",
    infer=_trace_infer,
    grad=default_grad("Input", "Out@GRAD"),
    cuda=NUMBERS,
)
def trace(b: Binder) -> None:
    """Out = the sum of a diagonal of each matrix.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("trace", {"Input": [[1.0, 2.0], [3.0, 4.0]]})["Out"]
        array([5.])

    Source: Paddle's trace_op.
    """
    x, out, at = b["Input"], b["Out"], (b.attr("offset", 0), *trace_axes(b))
    if not b.on_cuda:
        view = diagonal_view(x, *at)
        return b(np.add.reduce, view, -1, None, out.reshape(view.shape[:-1]))
    line = b.tmp(diagonal_view(layout_of(x), *at).shape, x.dtype)
    _take(b, x, line, at)
    return fold(b, REDUCE, TOTAL, line, [line.ndim - 1], out)


@grad_op("trace_grad", cuda=True)
def trace_grad(b: Binder) -> None:
    """dInput = dOut on the diagonals, 0 elsewhere."""
    _put(b, b["Out@GRAD"], b["Input@GRAD"], (b.attr("offset", 0), *trace_axes(b)))


def _eye_infer(c: Context) -> None:
    rows, columns = c.attr("num_rows"), c.attr("num_columns")
    c.set("Out", (rows, rows if columns == -1 else columns), dtypes.np_dtype(c.attr("dtype")))


@op(
    "eye",
    outputs={"Out": "[num_rows, num_columns]"},
    attrs={
        "num_rows": Attr("long", doc="how many rows", ge=0),
        "num_columns": Attr("long", -1, "how many columns; -1 for as many as rows", ge=-1),
        "dtype": Attr("dtype", "float32", "dtype of Out"),
    },
    infer=_eye_infer,
    cuda=True,
)
def eye(b: Binder) -> None:
    """Out = 1 on the main diagonal, 0 elsewhere.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("eye", attrs={"num_rows": 2})["Out"]
        array([[1., 0.],
               [0., 1.]], dtype=float32)

    Source: Paddle's eye_op.
    """
    out = b["Out"]
    one = np.ones(1, out.dtype)
    _put(b, b.table(one) if b.on_cuda else one, out, (0,))


@c_code("tril_triu", function="triangle")
@c_code("tril_triu_grad", function="triangle_grad")
def _triangle_in_c(c: Context) -> dict[str, Constant]:
    *outer, height, width = c["Out" if "Out" in c.outputs else "X@GRAD"].shape
    sizes = {"MATRICES": math.prod(outer), "HEIGHT": height, "WIDTH": width}
    return {**sizes, "DIAGONAL": c.attr("diagonal", 0), "SIDE": "<=" if c.attr("lower", True) else ">="}
