"""mul: the product of two tensors seen as matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, Context, aliases, default_grad, grad_op, op, product, second_grad
from fluidnb_kernels.emit import FLOATS, reading, writing, written
from fluidnb_kernels.math import matrix_products
from fluidnb_kernels.math.matrix_products import Side


def gemm(b: Binder, x: Any, y: Any, out: Any) -> None:
    """Emit ``out = x @ y`` for matrices; an output in column order takes the transposed product."""
    if out.flags.c_contiguous:
        b(np.dot, x, y, out)
    else:
        b(np.dot, y.T, x.T, out.T)


def sum_of_products(b: Binder, pairs: Any, out: Any) -> None:
    """Emit ``out = the sum of x @ y`` over pairs of matrices; a pair with None counts as 0."""
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
    """A shape as that of a matrix: the first ``columns`` sizes make its height, the others its width (-1 unknown)."""
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
    cuda=FLOATS,
)
def mul(b: Binder) -> None:
    """Out = X · Y, with X and Y flattened to matrices. Out inherits X's LoD.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("mul", {"X": [[1.0, 2.0]], "Y": [[3.0], [4.0]]})["Out"]
        array([[11.]])

    Source: Fluid's mul_op.
    """
    m, k, n = _sizes(b)
    _emit(b, "Out", (m, n), (_seen(b, "X", m, k), _seen(b, "Y", k, n)))


#: Slots of the gradient of a product's gradient, as Paddle names them.
AGAIN = (
    {"X": "X", "Y": "Y", "DOut": "Out@GRAD"},
    {"DDX": "X@GRAD", "DDY": "Y@GRAD"},
    {"DDOut": "Out@GRAD", "DX": "X", "DY": "Y"},
)  # fmt: skip


def _seen(b: Binder, slot: str, *shape: int) -> Any:
    """An operand as a matrix: a `Side` on GPUs."""
    if not b.has(slot):
        return None
    return Side(b[slot].reshape(shape)) if b.on_cuda else reading(b, b[slot], shape)


def _transposed(x: Any) -> Any:
    return None if x is None else x.turned if isinstance(x, Side) else x.T


def _emit(b: Binder, slot: str, shape: tuple[int, int], *pairs: tuple[Any, Any]) -> None:
    """Emit an output as the sum of products, where it is wanted."""
    if b.wants(slot) and b.on_cuda:
        matrix_products.sum_of_products(b, pairs, b[slot].reshape(shape))
    elif b.wants(slot):
        out = writing(b, b[slot], shape)
        sum_of_products(b, pairs, out)
        written(b, b[slot], out)


def _sizes(b: Binder) -> tuple[int, int, int]:
    """Rows of X, columns of X, columns of Y."""
    m, k = matrix(b["X"].shape, b.attr("x_num_col_dims", 1))
    return m, k, matrix(b["Y"].shape, b.attr("y_num_col_dims", 1))[1]


@grad_op("mul_grad", grad=second_grad("mul_grad_grad", *AGAIN), cuda=FLOATS)
def mul_grad(b: Binder) -> None:
    """dX = dOut · Yᵀ; dY = Xᵀ · dOut."""
    m, k, n = _sizes(b)
    x, y, g = _seen(b, "X", m, k), _seen(b, "Y", k, n), _seen(b, "Out@GRAD", m, n)
    _emit(b, "X@GRAD", (m, k), (g, _transposed(y)))
    _emit(b, "Y@GRAD", (k, n), (_transposed(x), g))


@grad_op("mul_grad_grad", infer=aliases({"DDOut": "DOut", "DX": "X", "DY": "Y"}), dtype_slot="DOut", cuda=FLOATS)
def mul_grad_grad(b: Binder) -> None:
    """DDOut = DDX · Y + X · DDY; DX = DOut · DDYᵀ; DY = DDXᵀ · DOut."""
    m, k, n = _sizes(b)
    x, y, g = _seen(b, "X", m, k), _seen(b, "Y", k, n), _seen(b, "DOut", m, n)
    ddx, ddy = _seen(b, "DDX", m, k), _seen(b, "DDY", k, n)
    _emit(b, "DDOut", (m, n), (ddx, y), (x, ddy))
    _emit(b, "DX", (m, k), (g, _transposed(ddy)))
    _emit(b, "DY", (k, n), (_transposed(ddx), g))
