"""mul, matmul, matmul_v2 and bmm: the product of matrices, of batches of matrices and of vectors."""

import math
from typing import Any

import numpy as np

from fluidnb.memory import flags
from fluidnb.op import Attr, Binder, Context, aliases, broadcast_dim, default_grad, grad_op, op, product, second_grad
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels import verbs
from fluidnb_kernels.emit import FLOATS, is_view, reading, writing, written, zeros
from fluidnb_kernels.math import matrix_products
from fluidnb_kernels.math.matrix_products import Side, summed_product
from fluidnb_kernels.rules import checked

_core: Any = getattr(getattr(np, "_core", None), "_multiarray_umath", None)
#: Whether OpenBLAS has kernels for this processor that are slow by a transposed matrix: those for AVX-512 take up to
#: 2.5 times as long as for the transposed product, those for AVX2 as long (0.3.31, float32; float64 gains nothing).
_WIDE = bool(getattr(_core, "__cpu_features__", {}).get("AVX512F"))
#: Rows of products for which that holds: by a matrix of so many elements, or more of them. It has other code for small
#: products, with fewer elements or multiplications.
_ROWS, _MORE_ROWS, _LARGE, _ELEMENTS, _PRODUCTS = range(4, 65), range(4, 129), 500_000, 1201, 300_000


def gemm(b: Binder, x: Any, y: Any, out: Any) -> None:
    """Emit ``out = x @ y`` for matrices; an output in column order takes the transposed product."""
    if flags.values["use_mkldnn"]:
        from fluidnb_kernels.onednn import parameter_products  # few programs need it

        if parameter_products.by_parameter(b, x, y, out):
            return
    if not out.flags.c_contiguous:
        b(np.dot, y.T, x.T, out.T)
    elif b.decide(_is_slow, x, y, out):
        turned = b.tmp(out.shape[::-1], out.dtype)
        b(np.dot, y.T, x.T, turned)
        b(np.copyto, out, turned.T)
    else:
        b(np.dot, x, y, out)


def _is_slow(x: Any, y: Any, out: Any) -> bool:
    """Whether a product by a transposed matrix is quicker as the transposed product and a copy."""
    rows, size = x.shape[0], x.shape[1] * out.shape[1]
    if not _WIDE or rows not in (_MORE_ROWS if size >= _LARGE else _ROWS):
        return False
    if out.size < _ELEMENTS or rows * size < _PRODUCTS or out.dtype != np.float32:
        return False
    return bool(y.T.flags.c_contiguous and not y.flags.c_contiguous and x.flags.c_contiguous)


def emit_sum_of_products(b: Binder, pairs: Any, out: Any) -> None:
    """Emit ``out = the sum of x @ y`` over pairs of matrices; a pair with None counts as 0."""
    there = [(x, y) for x, y in pairs if x is not None and y is not None]
    if not there:
        return b(np.copyto, out, b.const(0, out.dtype))
    gemm(b, *there[0], out)
    for x, y in there[1:]:
        more = b.like(out)
        gemm(b, x, y, more)
        b(np.add, out, more, out=out)


def matrix(shape: tuple[int, ...], columns: int) -> tuple[int, int]:
    """A shape as that of a matrix: the first ``columns`` sizes make its height, the others its width (-1 unknown)."""
    return product(shape[:columns]), product(shape[columns:])


def _mul_infer(c: Context) -> None:
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
    infer=_mul_infer,
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


def _mul_transposed(x: Any) -> Any:
    return None if x is None else x.turned if isinstance(x, Side) else x.T


def _emit(b: Binder, slot: str, shape: tuple[int, int], *pairs: tuple[Any, Any]) -> None:
    """Emit an output as the sum of products, where it is wanted."""
    if b.wants(slot) and b.on_cuda:
        matrix_products.sum_of_products(b, pairs, b[slot].reshape(shape))
    elif b.wants(slot):
        out = writing(b, b[slot], shape)
        emit_sum_of_products(b, pairs, out)
        written(b, b[slot], out)


def _sizes(b: Context) -> tuple[int, int, int]:
    """Rows of X, columns of X, columns of Y."""
    m, k = matrix(b["X"].shape, b.attr("x_num_col_dims", 1))
    return m, k, matrix(b["Y"].shape, b.attr("y_num_col_dims", 1))[1]


@c_code("mul", "mul_grad")
def _mul_in_c(c: Context) -> dict[str, Constant]:
    return dict(zip("MKN", _sizes(c), strict=True))


@grad_op("mul_grad", grad=second_grad("mul_grad_grad", *AGAIN), cuda=FLOATS)
def mul_grad(b: Binder) -> None:
    """dX = dOut · Yᵀ; dY = Xᵀ · dOut."""
    m, k, n = _sizes(b)
    x, y, g = _seen(b, "X", m, k), _seen(b, "Y", k, n), _seen(b, "Out@GRAD", m, n)
    _emit(b, "X@GRAD", (m, k), (g, _mul_transposed(y)))
    _emit(b, "Y@GRAD", (k, n), (_mul_transposed(x), g))


@grad_op("mul_grad_grad", infer=aliases({"DDOut": "DOut", "DX": "X", "DY": "Y"}), dtype_slot="DOut", cuda=FLOATS)
def mul_grad_grad(b: Binder) -> None:
    """DDOut = DDX · Y + X · DDY; DX = DOut · DDYᵀ; DY = DDXᵀ · DOut."""
    m, k, n = _sizes(b)
    x, y, g = _seen(b, "X", m, k), _seen(b, "Y", k, n), _seen(b, "DOut", m, n)
    ddx, ddy = _seen(b, "DDX", m, k), _seen(b, "DDY", k, n)
    _emit(b, "DDOut", (m, n), (ddx, y), (x, ddy))
    _emit(b, "DX", (m, k), (g, _mul_transposed(ddy)))
    _emit(b, "DY", (k, n), (_mul_transposed(ddx), g))


Shape = tuple[int, ...]


def _as_matrices(c: Context, slot: str) -> Shape:
    """The shape [..., rows, columns] that takes part in the product.

    A vector is a row of X or a column of Y. The transposes of matmul swap these two, those of matmul_v2 ignore vectors.
    """
    shape: Shape = c[slot].shape
    if len(shape) == 1:
        column = (slot == "Y") != bool(c.attr("transpose_" + slot, False))
        return (shape[0], 1) if column else (1, shape[0])
    return (*shape[:-2], shape[-1], shape[-2]) if _matmul_transposed(c, slot) else shape


def _matmul_transposed(c: Context, slot: str) -> bool:
    """Whether an operand is transposed, which matmul and matmul_v2 say by different names and bmm never is."""
    return bool(c.attr("transpose_" + slot, False) or c.attr("trans_" + slot.lower(), False))


def _shapes(c: Context) -> tuple[Shape, Shape, Shape]:
    """The shapes of X, Y and Out as matrices."""
    x, y = _as_matrices(c, "X"), _as_matrices(c, "Y")
    height = max(len(x), len(y)) - 2
    bx, by = (1,) * (height - len(x) + 2) + x[:-2], (1,) * (height - len(y) + 2) + y[:-2]
    return x, y, (*(broadcast_dim(i, j) for i, j in zip(bx, by, strict=True)), x[-2], y[-1])


def _transposed_hint(c: Context) -> str:
    """The transposition with which the operands fit, if there is one."""
    x, y = c["X"].shape[-2:], c["Y"].shape[-2:]
    flags = bool(c.attr("transpose_X", False)), bool(c.attr("transpose_Y", False))
    for flag, name in ((0, "transpose_x"), (1, "transpose_y")):
        new = [on != (i == flag) for i, on in enumerate(flags)]
        if len(x) == len(y) == 2 and x[0 if new[0] else 1] == y[1 if new[1] else 0]:
            return f"{name}={new[flag]} swaps the last two dimensions, and they fit."
    return "layers.reshape makes the width of X the height of Y."


def _matmul_infer(c: Context) -> None:
    for slot in ("X", "Y"):
        c.require(
            c[slot].ndim, f"Input({slot}) of {c.definition.type} must have at least one dimension.",
            expected="a vector, a matrix or more", received="no dimension",
        )  # fmt: skip
    x, y, out = _shapes(c)
    c.require(
        x[-1] == y[-2] or x[-1] < 0 or y[-2] < 0,
        "First matrix's width must be equal with second matrix's height.",
        expected=f"width {y[-2]}, the height of Y", received=f"width {x[-1]}",
        hint=_transposed_hint(c),
    )  # fmt: skip
    c.require(
        -2 not in out[:-2], f"The batches of X and Y of {c.definition.type} do not fit.",
        expected=f"{list(x[:-2])}, or 1 where they differ", received=list(y[:-2]),
    )  # fmt: skip
    rows, columns = c["X"].ndim > 1 or out[-2] != 1, c["Y"].ndim > 1 or out[-1] != 1
    shape = out[:-2] + out[-2:-1] * rows + out[-1:] * columns
    c.set("Out", shape or (1,), c["X"].dtype, c.lod("X"))


def _matrices(b: Binder, slot: str, shape: Shape, value: Any) -> Any:
    """An operand, or its gradient, as [..., rows, columns], transposed where its attribute is set."""
    if value.ndim == 1:
        return value.reshape(shape)
    return value.swapaxes(-1, -2) if _matmul_transposed(b, slot) else value


def _tall(x: Any) -> Any:
    """A batch of matrices as one, its rows under each other."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def _product(b: Binder, x: Any, y: Any, out: Any) -> None:
    """Emit out = x · y; rows of a batch that meet one matrix are one tall matrix."""
    if x.ndim == 2 and y.ndim == 2:
        return gemm(b, x, y, out)
    tall = _tall(x)
    if y.ndim == 2 and is_view(tall, x) and out.flags.c_contiguous:
        return gemm(b, tall, y, _tall(out))
    return b(np.matmul, x, y, out=out)


def _scaled(b: Binder, out: Any) -> None:
    alpha = b.attr("alpha", 1.0)
    if alpha != 1:
        b(np.multiply, out, b.const(alpha, out.dtype), out=out)


def _products(c: Context) -> int:
    """Multiply-adds: the elements of Out times the length of the sums."""
    x = c["X"]
    return math.prod(c["Out"].shape) * int(x.shape[-2 if x.ndim > 1 and _matmul_transposed(c, "X") else -1])


_INPUTS = {slot: "a vector, a matrix or a batch of matrices" for slot in ("X: float", "Y: float")}
_OUTPUTS = {"Out": "their product; [1] for two vectors"}
_GRAD = default_grad("X", "Y", "Out@GRAD")

_V2_DOC = """Out = X · Y; batches broadcast as in numpy. A vector counts as a row of X and as a column of Y.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("matmul_v2", {"X": [[1.0, 2.0]], "Y": [[3.0, 4.0]]}, {"trans_y": True})["Out"]
        array([[11.]])

    Source: Paddle's matmul_v2_op.
    """

_BMM_DOC = """Out[i] = X[i] · Y[i], for each i of the batch.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("bmm", {"X": [[[1.0, 2.0]]], "Y": [[[3.0], [4.0]]]})["Out"]
        array([[[11.]]])

    Source: Paddle's bmm_op.
    """


@op(
    "bmm",
    inputs={"X: float[n, rows, k]": "", "Y: float[n, k, columns]": ""},
    outputs={"Out": "[n, rows, columns]"},
    cost="Out * X[2:]",
    infer=checked(_matmul_infer),
    grad=_GRAD,
    cuda=FLOATS,
    doc=_BMM_DOC,
)
@op(
    "matmul_v2",
    inputs=_INPUTS,
    outputs=_OUTPUTS,
    attrs={
        "trans_x": Attr("bool", False, "swap the last two dimensions of X"),
        "trans_y": Attr("bool", False, "swap the last two dimensions of Y"),
    },
    cost=_products,
    infer=_matmul_infer,
    grad=_GRAD,
    cuda=FLOATS,
    doc=_V2_DOC,
)
@op(
    "matmul",
    inputs=_INPUTS,
    outputs=_OUTPUTS,
    attrs={
        "transpose_X": Attr("bool", False, "swap the last two dimensions of X; a vector becomes a column"),
        "transpose_Y": Attr("bool", False, "swap the last two dimensions of Y; a vector becomes a row"),
        "alpha": Attr("float", 1.0, "factor of the product"),
        "head_number": Attr("int", 1, "only 1: splitting X into heads is not done", enum=(1,)),
    },
    cost=_products,
    infer=_matmul_infer,
    grad=_GRAD,
    cuda=FLOATS,
)
def matmul(b: Binder) -> None:
    """Out = alpha · X · Y; batches broadcast as in numpy. A vector counts as a row of X and as a column of Y.

    With ``transpose_X`` a vector X is a column, with ``transpose_Y`` a vector Y is a row.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("matmul", {"X": [[1.0, 2.0]], "Y": [[3.0, 4.0]]}, {"transpose_Y": True})["Out"]
        array([[11.]])

    Source: Fluid's matmul_op.
    """
    _sum(b, b["Out"], (b["X"], b["Y"]))


def _sum(b: Binder, out: Any, *pairs: tuple[Any, Any]) -> None:
    """Emit alpha times the sum of products of operands, or of their gradients; a pair with None counts as 0."""
    if out is None:
        return
    (sx, sy, so), there = _shapes(b), [(x, y) for x, y in pairs if x is not None and y is not None]
    if b.on_cuda:
        sides = [(_side_of(b, "X", x), _side_of(b, "Y", y)) for x, y in there]
        return matrix_products.sum_of_products(b, sides, out.reshape(so), b.attr("alpha", 1.0))
    total = writing(b, out, so)
    if not there:
        zeros(b, total)
    for i, (x, y) in enumerate(there):
        part = b.tmp(so, total.dtype) if i else total
        _product(b, _matrices(b, "X", sx, x), _matrices(b, "Y", sy, y), part)
        if i:
            b(np.add, total, part, out=total)
    _scaled(b, total)
    return written(b, out, total)


#: The same slots by the names that Paddle's matmul_v2_grad_grad has.
_V2_AGAIN = (
    {"X": "X", "Y": "Y", "grad_out": "Out@GRAD"},
    {"grad_x@GRAD": "X@GRAD", "grad_y@GRAD": "Y@GRAD"},
    {"grad_out@GRAD": "Out@GRAD", "X@GRAD": "X", "Y@GRAD": "Y"},
)  # fmt: skip


@grad_op("bmm_grad", grad=second_grad("bmm_grad_grad", *AGAIN), cuda=FLOATS)
@grad_op("matmul_v2_grad", grad=second_grad("matmul_v2_grad_grad", *_V2_AGAIN), cuda=FLOATS)
@grad_op("matmul_grad", grad=second_grad("matmul_grad_grad", *AGAIN), cuda=FLOATS)
def matmul_grad(b: Binder) -> None:
    """dX = alpha · dOut · Yᵀ; dY = alpha · Xᵀ · dOut; each summed over the batches in which it was repeated."""
    _slopes(b, b["Out@GRAD"], (b["X"], b["Y"]), (b["X@GRAD"], b["Y@GRAD"]))


def _slopes(b: Binder, g: Any, operands: tuple[Any, Any], outs: tuple[Any, Any]) -> None:
    """Emit the gradients of X and Y where they are wanted, from that of the product; 0 where an operand is None."""
    (x, y), (dx, dy), (sx, sy, so) = operands, outs, _shapes(b)
    for to, other in ((dx, y), (dy, x)):
        if to is not None and other is None:
            verbs.fill(b, to)
    if b.on_cuda:
        grad = Side(g.reshape(so))
        if dx is not None and y is not None:
            _slope_on_cuda(b, "X", dx, grad, _side_of(b, "Y", y).turned, sx)
        if dy is not None and x is not None:
            _slope_on_cuda(b, "Y", dy, _side_of(b, "X", x).turned, grad, sy)
        return
    g = reading(b, g, so)
    if dx is not None and y is not None:
        _slope(b, "X", dx, g, _matrices(b, "Y", sy, y).swapaxes(-1, -2), sx)
    if dy is not None and x is not None:
        x = _matrices(b, "X", sx, x)
        tall, wide = _tall(x), _tall(g)
        if len(sy) == 2 and len(sx) > 2 and is_view(tall, x) and is_view(wide, g):
            x, g = tall, wide  # the sum over the batch is a product of tall matrices
        _slope(b, "Y", dy, x.swapaxes(-1, -2), g, sy)


def _slope(b: Binder, slot: str, grad: Any, left: Any, right: Any, shape: Shape) -> None:
    """Emit the gradient of one operand, left · right, or its transpose where the operand was transposed."""
    if grad.ndim > 1 and _matmul_transposed(b, slot):
        left, right = right.swapaxes(-1, -2), left.swapaxes(-1, -2)
        shape = (*shape[:-2], shape[-1], shape[-2])
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    target = writing(b, grad, shape)
    if batch == shape[:-2]:
        _product(b, left, right, target)
    else:
        whole = b.tmp((*batch, *shape[-2:]), grad.dtype)
        _product(b, left, right, whole)
        padded = (1,) * (len(batch) + 2 - len(shape)) + shape
        axes = tuple(i for i, n in enumerate(batch) if padded[i] == 1 != n)
        b(np.add.reduce, whole, axes, None, target.reshape(padded), True)
    _scaled(b, target)
    written(b, grad, target)


def _side_of(b: Binder, slot: str, value: Any) -> Side:
    """An operand, or its gradient, as matrices for GPUs."""
    if value.ndim == 1:
        return Side(value.reshape(_shapes(b)[slot == "Y"]))
    return Side(value, _matmul_transposed(b, slot))


def _slope_on_cuda(b: Binder, slot: str, to: Any, left: Side, right: Side, shape: Shape) -> None:
    """Emit what `_slope` does on a GPU."""
    if to.ndim > 1 and _matmul_transposed(b, slot):
        left, right = right.turned, left.turned
    summed_product(b, left, right, to, to.shape if to.ndim > 1 else shape, b.attr("alpha", 1.0))


def _again(b: Binder, g: str, ddx: str, ddy: str, outs: tuple[str, str, str]) -> None:
    """Emit the gradients of a gradient, by the names of its slots; a slot that is not there counts as 0."""
    ddout, dx, dy = (b[slot] for slot in outs)
    _sum(b, ddout, (b[ddx], b["Y"]), (b["X"], b[ddy]))
    _slopes(b, b[g], (b[ddx], b[ddy]), (dx, dy))


@grad_op("bmm_grad_grad", infer=aliases({"DDOut": "DOut", "DX": "X", "DY": "Y"}), dtype_slot="DOut", cuda=FLOATS)
@grad_op("matmul_grad_grad", infer=aliases({"DDOut": "DOut", "DX": "X", "DY": "Y"}), dtype_slot="DOut", cuda=FLOATS)
def matmul_grad_grad(b: Binder) -> None:
    """DDOut = alpha · (DDX · Y + X · DDY); DX = alpha · DOut · DDYᵀ; DY = alpha · DDXᵀ · DOut."""
    _again(b, "DOut", "DDX", "DDY", ("DDOut", "DX", "DY"))


@grad_op(
    "matmul_v2_grad_grad",
    infer=aliases({"grad_out@GRAD": "grad_out", "X@GRAD": "X", "Y@GRAD": "Y"}),
    dtype_slot="grad_out",
    cuda=FLOATS,
)
def matmul_v2_grad_grad(b: Binder) -> None:
    """As matmul_grad_grad, with other names of slots."""
    _again(b, "grad_out", "grad_x@GRAD", "grad_y@GRAD", ("grad_out@GRAD", "X@GRAD", "Y@GRAD"))


@c_code("matmul", "matmul_v2", "bmm", function="matmul")
@c_code("matmul_grad", "matmul_v2_grad", "bmm_grad", function="matmul_grad")
def _matmul_in_c(c: Context) -> dict[str, Constant]:
    x, y, out = _shapes(c)
    batch = out[:-2] or (1,)
    found: dict[str, Constant] = {"M": out[-2], "K": x[-1], "N": out[-1], "BATCHES": math.prod(batch)}
    found |= {"ALPHA": float(c.attr("alpha", 1.0)), "SIZES": batch, "RANK": len(batch)}
    for slot, shape in (("X", x), ("Y", y)):
        rows, columns = shape[-2:]
        flipped = c[slot].ndim > 1 and _matmul_transposed(c, slot)
        found[slot + "_ROW"], found[slot + "_COLUMN"] = (1, rows) if flipped else (columns, 1)
        sizes, step = (1,) * (len(batch) - len(shape) + 2) + shape[:-2], rows * columns
        steps = [0] * len(batch)
        for i in reversed(range(len(batch))):
            if sizes[i] != 1:
                steps[i], step = step, step * sizes[i]
        found[slot + "_STEPS"], found[slot + "_COUNT"] = steps, c[slot].size
    return found
