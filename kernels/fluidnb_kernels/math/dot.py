"""dot, cos_sim and squared_l2_distance: how alike the rows of two matrices are."""

from collections.abc import Iterator

import numpy as np

from fluidnb.op import Array, Binder, Context, default_grad, grad_op, op, product
from fluidnb_kernels.arithmetic import values
from fluidnb_kernels.cuda import CTYPES, Source, by_rows, ctype, each_line, wide_dtype, writing_as, written_as
from fluidnb_kernels.cuda.axis_reduction import Fold, fold, fold_types
from fluidnb_kernels.emit import FLOATS, apply, reading
from fluidnb_kernels.reduce.reduction_kernels import NUMBERS
from fluidnb_kernels.rules import agree, same_shape
from fluidnb_kernels.tensor import strided_copy


def _kernels() -> Iterator[str]:
    yield from (f"fold<f::{name}, {types}>" for name in ("products", "total") for types in fold_types(NUMBERS))
    for dtype in FLOATS:
        own = CTYPES[dtype]
        yield from (f"{name}<{own}>" for name in ("dot_grad", "cos_sim", "distance"))
        sums = {own, CTYPES["float32" if dtype.endswith("16") else dtype]}
        yield from (f"{name}<{own}, {other}>" for name in ("cos_sim_grad", "distance_grad") for other in sorted(sums))


#: How alike rows are, on GPUs.
CUDA = Source(__file__, "dot.cu", _kernels)
#: The sum of the products of two tensors' elements.
PRODUCTS = Fold("f::products", then="f::total")


def _dot_infer(c: Context) -> None:
    same_shape(c, "X", "Y")
    x = c["X"]
    c.require(x.ndim in (1, 2), "Input(X) of dot must have one or two dimensions.", received=list(x.shape))
    c.set("Out", x.shape[:-1] or (1,), x.dtype, c.lod("X"))


@op(
    "dot",
    inputs={"X: float[N] | float[M, N]": "vectors", "Y": "same shape"},
    outputs={"Out": "[1] or [M]: the products of rows"},
    cost="X",
    infer=_dot_infer,
    grad=default_grad("X", "Y", "Out@GRAD"),
    cuda=NUMBERS,
)
def dot(b: Binder) -> None:
    """Out = sum(X · Y) along the last dimension.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("dot", {"X": [[1.0, 2.0]], "Y": [[3.0, 4.0]]})["Out"]
        array([11.])

    Source: Paddle's dot_op.
    """
    if b.on_cuda:
        x = b["X"]
        return fold(b, CUDA, PRODUCTS, x, [x.ndim - 1], b["Out"], y=b["Y"])
    x, out = b["X"], b["Out"]
    b(np.add.reduce, apply(b, np.multiply, x, b["Y"]), -1, None, out.reshape(x.shape[:-1]))


@grad_op("dot_grad", dtype_slot="X", cuda=FLOATS)
def dot_grad(b: Binder) -> None:
    """dX = dOut · Y; dY = dOut · X."""
    if b.on_cuda:
        x, g = b["X"], b["Out@GRAD"]
        operands = x, b["Y"], g, b["X@GRAD"], b["Y@GRAD"]
        return by_rows(b, CUDA, f"dot_grad<{ctype(x.dtype)}>", g.size, x.shape[-1], *operands, np.int64(x.shape[-1]))
    g = b["Out@GRAD"].reshape(*b["X"].shape[:-1], 1)
    for slot, other in (("X@GRAD", b["Y"]), ("Y@GRAD", b["X"])):
        if b.wants(slot):
            b(np.multiply, g, other, out=b[slot])


def _pair_rule(c: Context) -> None:
    """Both have as many columns, and as many rows unless Y has one."""
    x, y, name = c["X"], c["Y"], c.definition.type
    c.require(x.ndim >= 2, f"The rank of Input(X) of {name} must not be less than 2.", received=list(x.shape))
    fits = agree(x.shape[1:], y.shape[1:]) and (y.shape[0] in (1, -1, x.shape[0]) or x.shape[0] == -1)
    c.require(
        fits, f"Input(X) and Input(Y) of {name} do not fit.",
        expected=f"{list(x.shape)}, or one row of it", received=list(y.shape),
    )  # fmt: skip


def _cos_infer(c: Context) -> None:
    _pair_rule(c)
    x, y = c["X"], c["Y"]
    c.set("Out", (x.shape[0], 1), x.dtype, c.lod("X"))
    c.set("XNorm", (x.shape[0], 1), x.dtype)
    c.set("YNorm", (y.shape[0], 1), x.dtype)


def _width(x: Array) -> int:
    return int(np.prod(x.shape[1:], dtype=np.int64))


def _rows(x: Array) -> Array:
    return x.reshape(len(x), _width(x))


def _down(b: Binder, t: Array, out: Array) -> None:
    """Emit ``out = t``, summed over rows where ``out`` has one."""
    if len(out) == len(t):
        b(np.copyto, out, t)
    else:
        b(np.add.reduce, t, 0, None, out, True)


@op(
    "cos_sim",
    inputs={"X: float[N, D]": "", "Y: float[N, D]": "1 row for all"},
    outputs={"Out": "[N, 1]: cosines", "XNorm~": "[N, 1]: lengths of the rows of X", "YNorm~": "lengths of those of Y"},
    cost="3 * X",
    infer=_cos_infer,
    grad=default_grad("X", "Y", "XNorm", "YNorm", "Out", "Out@GRAD"),
    dtypes=FLOATS,
    cuda=FLOATS,
)
def cos_sim(b: Binder) -> None:
    """Out = sum(X · Y) / (XNorm · YNorm) for each row.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("cos_sim", {"X": [[1.0, 0.0], [3.0, 4.0]], "Y": [[1.0, 0.0]]})["Out"]
        array([[1. ],
               [0.6]])

    Source: Fluid's cos_sim_op.
    """
    if b.on_cuda:
        x, y = b["X"], b["Y"]
        operands = x, y, b["Out"], b["XNorm"], b["YNorm"], np.int64(len(x)), np.int64(len(y))
        return each_line(b, CUDA, f"cos_sim<{ctype(x.dtype)}>", max(len(x), len(y)), _width(x), 1, *operands)
    x, y = values(b, _rows(b["X"]), _rows(b["Y"]))
    lengths = []
    for slot, value in (("XNorm", x), ("YNorm", y)):
        length = np.sqrt((value * value).sum(1))
        if b.wants(slot):
            length.into(b[slot])
            length = x.slot(slot)
        lengths.append(length)
    ((x * y).sum(1) / np.multiply(*lengths)).into(b["Out"])


@grad_op("cos_sim_grad", dtype_slot="X", cuda=FLOATS)
def cos_sim_grad(b: Binder) -> None:
    """dX = dOut · (Y / (XNorm · YNorm) - Out · X / XNorm²), and the like for Y, summed where Y has one row."""
    if b.on_cuda:
        x, y, dy = b["X"], b["Y"], _each_row(b)
        lengths = b["XNorm"], b["YNorm"]
        name = f"cos_sim_grad<{ctype(x.dtype)}, {ctype(x.dtype if dy is None else dy.dtype)}>"
        operands = x, y, b["Out@GRAD"], b["Out"], *lengths, b["X@GRAD"], dy, np.int32(len(y) == 1)
        by_rows(b, CUDA, name, len(x), _width(x), *operands, np.int64(_width(x)))
        return _gathered(b, dy)
    slots = _rows(b["X"]), _rows(b["Y"]), b["XNorm"], b["YNorm"], b["Out"], b["Out@GRAD"]
    x, y, x_length, y_length, out, g = values(b, *slots)
    both, pull = g / (x_length * y_length), g * out
    for slot, own, other, length in (("X", x, y, x_length), ("Y", y, x, y_length)):
        if b.wants(slot + "@GRAD"):
            t = both * other - pull / (length * length) * own
            _down(b, t.array, _rows(b[slot + "@GRAD"]))


def _distance_infer(c: Context) -> None:
    _pair_rule(c)
    x = c["X"]
    c.set("sub_result", (x.shape[0], product(x.shape[1:])), x.dtype)
    c.set("Out", (x.shape[0], 1), x.dtype, c.lod("X"))


@op(
    "squared_l2_distance",
    inputs={"X: float[N, D]": "", "Y: float[N, D]": "1 row for all"},
    outputs={"sub_result~": "X - Y, a row for each of X", "Out": "[N, 1]: squares of distances"},
    cost="2 * X",
    infer=_distance_infer,
    grad=default_grad("X", "Y", "sub_result", "Out@GRAD"),
    dtypes=FLOATS,
    cuda=FLOATS,
)
def squared_l2_distance(b: Binder) -> None:
    """Out = sum((X - Y)²) for each row.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("squared_l2_distance", {"X": [[3.0, 4.0]], "Y": [[0.0, 0.0]]})["Out"]
        array([[25.]])

    Source: Fluid's squared_l2_distance_op.
    """
    if b.on_cuda:
        x, y = b["X"], b["Y"]
        operands = x, y, b["sub_result"], b["Out"], np.int32(len(y) == 1)
        return each_line(b, CUDA, f"distance<{ctype(x.dtype)}>", len(x), _width(x), 1, *operands)
    x, y = (reading(b, b[slot], (len(b[slot]), _width(b[slot]))) for slot in ("X", "Y"))
    gap = b["sub_result"] if b.wants("sub_result") else b.like(x)
    b(np.subtract, x, y, out=gap)
    b(np.add.reduce, apply(b, np.multiply, gap, gap), 1, None, b["Out"], True)


@grad_op("squared_l2_distance_grad", dtype_slot="X", cuda=FLOATS)
def squared_l2_distance_grad(b: Binder) -> None:
    """dX = 2 · dOut · (X - Y); dY = -dX, summed where Y has one row."""
    if b.on_cuda:
        x, dy = b["X"], _each_row(b)
        name = f"distance_grad<{ctype(x.dtype)}, {ctype(x.dtype if dy is None else dy.dtype)}>"
        operands = b["sub_result"], b["Out@GRAD"], b["X@GRAD"], dy
        by_rows(b, CUDA, name, len(x), _width(x), *operands, np.int64(_width(x)))
        return _gathered(b, dy)
    gap, g = values(b, b["sub_result"], b["Out@GRAD"])
    t = (gap * (g * 2)).array
    if b.wants("X@GRAD"):
        b(np.copyto, _rows(b["X@GRAD"]), t)
    if b.wants("Y@GRAD"):
        _down(b, apply(b, np.negative, t), _rows(b["Y@GRAD"]))


def _each_row(b: Binder) -> Array:
    """The target of Y's gradient, a row for each of X: a workspace where Y has one row."""
    x, dy = b["X"], b["Y@GRAD"]
    return dy if dy is None or len(dy) == len(x) else b.tmp(x.shape, wide_dtype(x.dtype))


def _gathered(b: Binder, rows: Array) -> None:
    """Emit the sum of what `_each_row` gave where Y has one row."""
    dy = b["Y@GRAD"]
    if dy is not rows:
        sums = writing_as(b, dy, rows.dtype)
        strided_copy.fold(b, rows, sums, rows.shape, [0])
        written_as(b, dy, sums)
