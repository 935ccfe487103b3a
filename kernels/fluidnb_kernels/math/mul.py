"""mul: the product of two tensors seen as matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, Context, aliases, default_grad, grad_op, kernel, op, product, second_grad
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.math import matrix_products
from fluidnb_kernels.math.matrix_products import Pair, Side
from fluidnb_kernels.views import reading, writing, written


def gemm(b: Binder, x: Any, y: Any, out: Any) -> None:
    """Emit ``out = x @ y`` for matrices; an output in column order takes the transposed product.

    Args:
        x: [m, k].
        y: [k, n].
        out: [m, n] in row or column order.
    """
    if out.flags.c_contiguous:
        b(np.dot, x, y, out)
    else:
        b(np.dot, y.T, x.T, out.T)


def sum_of_products(b: Binder, pairs: Any, out: Any) -> None:
    """Emit ``out = the sum of x @ y`` over pairs of matrices; a pair with None counts as 0.

    Args:
        pairs: (x [m, k], y [k, n]).
        out: [m, n] in row or column order.
    """
    there = [(x, y) for x, y in pairs if x is not None and y is not None]
    if not there:
        return b(np.copyto, out, b.const(0, out.dtype))
    gemm(b, *there[0], out)
    for x, y in there[1:]:
        more = b.like(out)
        gemm(b, x, y, more)
        b(np.add, out, more, out=out)
    return None


def matrix(shape: tuple[int, ...], columns: int) -> tuple[int, int]:
    """A shape as that of a matrix: the first ``columns`` sizes make its height, the others its width (-1 unknown).

    Example:
        >>> matrix((2, 3, 4), 1), matrix((-1, 3), 1)
        ((2, 12), (-1, 3))
    """
    return product(shape[:columns]), product(shape[columns:])


def _infer(c: Context) -> None:
    x, y, i, j = c["X"], c["Y"], c.attr("x_num_col_dims"), c.attr("y_num_col_dims")
    for slot, value, columns in (("X", x, i), ("Y", y, j)):
        c.require(
            value.ndim > columns,
            f"The rank of Input({slot}) of mul must be larger than {slot.lower()}_num_col_dims.",
            expected=f"rank > {columns}", received=f"rank {value.ndim}",
        )  # fmt: skip
    width, height = matrix(x.shape, i)[1], matrix(y.shape, j)[0]
    c.require(
        width == height or width < 0 or height < 0,
        "First matrix's width must be equal with second matrix's height.",
        expected=f"width {height}, the height of Y", received=f"width {width}",
        hint="the sizes of X from dimension x_num_col_dims on make its width.",
    )  # fmt: skip
    c.set("Out", x.shape[:i] + y.shape[j:], x.dtype, c.lod("X"))


@op(
    "mul",
    inputs={
        "X: float[rows, …, columns]": "first operand, rank > x_num_col_dims",
        "Y: float[rows, …, columns]": "second operand, rank > y_num_col_dims",
    },
    outputs={"Out": "their product; the first dimensions of X, then the last of Y"},
    attrs={
        "x_num_col_dims": Attr("int", 1, "how many dimensions of X make the height of its matrix", ge=1),
        "y_num_col_dims": Attr("int", 1, "how many dimensions of Y make the height of its matrix", ge=1),
    },
    cost="Out * X[x_num_col_dims:]",
    infer=_infer,
    grad=default_grad("X", "Y", "Out@GRAD"),
)
def mul(b: Binder) -> None:
    """Out = X · Y, with X and Y flattened to matrices. Out inherits X's LoD.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("mul", {"X": [[1.0, 2.0]], "Y": [[3.0], [4.0]]})["Out"]
        array([[11.]])

    Source: Fluid's mul_op.
    """
    x, y, out = b["X"], b["Y"], b["Out"]
    (m, k), (_, n) = matrix(x.shape, b.attr("x_num_col_dims")), matrix(y.shape, b.attr("y_num_col_dims"))
    result = writing(b, out, (m, n))
    gemm(b, reading(b, x, (m, k)), reading(b, y, (k, n)), result)
    written(b, out, result)


#: Slots of the gradient of a product's gradient, as Paddle names them.
AGAIN = (
    {"X": "X", "Y": "Y", "DOut": "Out@GRAD"},
    {"DDX": "X@GRAD", "DDY": "Y@GRAD"},
    {"DDOut": "Out@GRAD", "DX": "X", "DY": "Y"},
)  # fmt: skip


@grad_op("mul_grad", grad=second_grad("mul_grad_grad", *AGAIN))
def mul_grad(b: Binder) -> None:
    """dX = dOut · Yᵀ; dY = Xᵀ · dOut."""
    x, y, dx, dy = b["X"], b["Y"], b["X@GRAD"], b["Y@GRAD"]
    (m, k), (_, n) = matrix(x.shape, b.attr("x_num_col_dims", 1)), matrix(y.shape, b.attr("y_num_col_dims", 1))
    g = reading(b, b["Out@GRAD"], (m, n))
    if dx is not None:
        out = writing(b, dx, (m, k))
        gemm(b, g, reading(b, y, (k, n)).T, out)
        written(b, dx, out)
    if dy is not None:
        out = writing(b, dy, (k, n))
        gemm(b, reading(b, x, (m, k)).T, g, out)
        written(b, dy, out)


@grad_op("mul_grad_grad", infer=aliases({"DDOut": "DOut", "DX": "X", "DY": "Y"}), dtype_slot="DOut")
def mul_grad_grad(b: Binder) -> None:
    """DDOut = DDX · Y + X · DDY; DX = DOut · DDYᵀ; DY = DDXᵀ · DOut."""
    height, width = b.attr("x_num_col_dims", 1), b.attr("y_num_col_dims", 1)
    (m, k), (_, n) = matrix(b["X"].shape, height), matrix(b["Y"].shape, width)

    def seen(slot: str, *shape: int) -> Any:
        return reading(b, b[slot], shape) if b.has(slot) else None

    x, y, g = seen("X", m, k), seen("Y", k, n), seen("DOut", m, n)
    ddx, ddy = seen("DDX", m, k), seen("DDY", k, n)
    for slot, shape, pairs in (
        ("DDOut", (m, n), ((ddx, y), (x, ddy))),
        ("DX", (m, k), ((g, None if ddy is None else ddy.T),)),
        ("DY", (k, n), ((None if ddx is None else ddx.T, g),)),
    ):
        if b.wants(slot):
            out = writing(b, b[slot], shape)
            sum_of_products(b, pairs, out)
            written(b, b[slot], out)


def _seen(b: Binder, slot: str, shape: tuple[int, int]) -> Side | None:
    """An operand as a matrix for GPUs."""
    return Side(b[slot].reshape(shape)) if b.has(slot) else None


def _emit(b: Binder, slot: str, shape: tuple[int, int], *pairs: Pair) -> None:
    """Emit an output as the sum of products, where it is wanted."""
    if b.wants(slot):
        matrix_products.sum_of_products(b, pairs, b[slot].reshape(shape))


def _turned(side: Side | None) -> Side | None:
    return None if side is None else side.turned


def _sizes(b: Binder) -> tuple[int, int, int]:
    """Rows of X, columns of X, columns of Y."""
    m, k = matrix(b["X"].shape, b.attr("x_num_col_dims", 1))
    return m, k, matrix(b["Y"].shape, b.attr("y_num_col_dims", 1))[1]


@kernel("mul", place="cuda", dtypes=FLOATS)
def mul_on_cuda(b: Binder) -> None:
    """One product."""
    m, k, n = _sizes(b)
    _emit(b, "Out", (m, n), (_seen(b, "X", (m, k)), _seen(b, "Y", (k, n))))


@kernel("mul_grad", place="cuda", dtypes=FLOATS)
def mul_grad_on_cuda(b: Binder) -> None:
    """dX = dOut · Yᵀ; dY = Xᵀ · dOut."""
    m, k, n = _sizes(b)
    x, y, g = _seen(b, "X", (m, k)), _seen(b, "Y", (k, n)), _seen(b, "Out@GRAD", (m, n))
    _emit(b, "X@GRAD", (m, k), (g, _turned(y)))
    _emit(b, "Y@GRAD", (k, n), (_turned(x), g))


@kernel("mul_grad_grad", place="cuda", dtypes=FLOATS)
def mul_grad_grad_on_cuda(b: Binder) -> None:
    """DDOut = DDX · Y + X · DDY; DX = DOut · DDYᵀ; DY = DDXᵀ · DOut."""
    m, k, n = _sizes(b)
    x, y, g = _seen(b, "X", (m, k)), _seen(b, "Y", (k, n)), _seen(b, "DOut", (m, n))
    ddx, ddy = _seen(b, "DDX", (m, k)), _seen(b, "DDY", (k, n))
    _emit(b, "DDOut", (m, n), (ddx, y), (x, ddy))
    _emit(b, "DX", (m, k), (g, _turned(ddy)))
    _emit(b, "DY", (k, n), (_turned(ddx), g))
