"""norm, l1_norm, squared_l2_norm, clip_by_norm, p_norm and dist: sizes of tensors."""

import math
from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, broadcast_dim, default_grad, grad_op, op, same
from fluidnb.op.c_code import Constant, c_code
from fluidnb.values import SelectedRows
from fluidnb_kernels.arithmetic import values
from fluidnb_kernels.cuda import THREADS, Source, ctype, each, each_line, lines_along, typed, wide_dtype
from fluidnb_kernels.cuda.axis_reduction import Fold, fold, spread
from fluidnb_kernels.cuda.upload import room_beside
from fluidnb_kernels.elementwise import launch as elementwise
from fluidnb_kernels.elementwise.broadcast import aligned, summed
from fluidnb_kernels.emit import FLOATS, apply, reading, zeros
from fluidnb_kernels.reduce import reduction_kernels
from fluidnb_kernels.reduce.reduction_kernels import CUDA as FOLDS
from fluidnb_kernels.reduce.reduction_kernels import SIZES, SQUARES, launch
from fluidnb_kernels.rows.device_rows import merge_on_device
from fluidnb_kernels.rows.values import as_x, dtype_of, on_rows, or_rows, put_rows, shape_of, value_array
from fluidnb_kernels.rules import kept, one_axis

#: Blocks at most that leave sums of squares.
_PARTS = 512


#: Vectors of a length on GPUs.
CUDA = Source(__file__, "norms.cu", typed(
    ("norm norm_grad squares shrink", FLOATS), ("moving", ("float32", "float64")),
))  # fmt: skip


def _norm_infer(c: Context) -> None:
    x = c["X"]
    axis = one_axis(c, c.attr("axis"), x.ndim)
    c.set("Out", x.shape, x.dtype, c.lod("X"))
    c.set("Norm", kept(x.shape, axis), x.dtype)


@op(
    "norm",
    inputs={"X": "at least one dimension"},
    outputs={"Norm~": "the lengths, size 1 along axis", "Out": "X with length 1 along axis"},
    attrs={
        "axis": Attr("int", doc="the dimension of the vectors; from the end when negative"),
        "epsilon": Attr("float", 1e-10, "added to the square of the length"),
        "is_test": Attr("bool", False, "ignored (compatibility)"),
    },
    cost="3 * X",
    infer=_norm_infer,
    grad=default_grad("X", "Norm", "Out@GRAD"),
    dtypes=FLOATS,
    cuda=FLOATS,
)
def norm(b: Binder) -> None:
    """Norm = √(sum(X²) + epsilon) along ``axis``; Out = X / Norm.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("norm", {"X": [[3.0, 4.0]]}, {"axis": 1})["Out"].round(4)
        array([[0.6, 0.8]])

    Source: Fluid's norm_op.
    """
    if b.on_cuda:
        x, length = b["X"], b["Norm"] if b.wants("Norm") else np.uintp(0)
        operands = x, length, b["Out"], np.float64(b.attr("epsilon"))
        return each_line(b, CUDA, f"norm<{ctype(x.dtype)}>", *lines_along(x.shape, b.attr("axis")), *operands)
    axis, shape = b.attr("axis"), kept(b["X"].shape, b.attr("axis"))
    x, length = values(b, b["X"], b["Norm"] if b.wants("Norm") else b.tmp(shape, b["X"].dtype))
    np.sqrt((x * x).sum(axis) + b.attr("epsilon")).into(length.array)
    (x / length).into(b["Out"])


@grad_op("norm_grad", dtype_slot="X", cuda=FLOATS)
def norm_grad(b: Binder) -> None:
    """dX = (dOut - X · sum(X · dOut) / Norm²) / Norm."""
    if b.on_cuda:
        x = b["X"]
        operands = x, b["Norm"], b["Out@GRAD"], b["X@GRAD"]
        return each_line(b, CUDA, f"norm_grad<{ctype(x.dtype)}>", *lines_along(x.shape, b.attr("axis")), *operands)
    x, length, g = values(b, b["X"], b["Norm"], b["Out@GRAD"])
    along = (x * g).sum(b.attr("axis")) / (length * length)
    ((g - x * along) / length).into(b["X@GRAD"])


@op(
    "l1_norm",
    inputs={"X": "any shape"},
    outputs={"Out": "[1]: the sum of absolute values"},
    cost="X",
    infer=lambda c: c.set("Out", (1,), c["X"].dtype),
    grad=default_grad("X", "Out@GRAD"),
    dtypes=FLOATS,
)
def l1_norm(b: Binder) -> None:
    """Out = sum(|X|) over all elements.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("l1_norm", {"X": [3.0, -4.0]})["Out"]
        array([7.])

    Source: Fluid's l1_norm_op.
    """
    b(np.add.reduce, apply(b, np.absolute, b["X"]), None, None, b["Out"].reshape(()))


@grad_op("l1_norm_grad")
def l1_norm_grad(b: Binder) -> None:
    """dX = dOut · sign(X)."""
    b(np.multiply, apply(b, np.sign, b["X"]), b["Out@GRAD"].reshape(()), out=b["X@GRAD"])


launch("l1_norm", SIZES, "s::size")


def shrink(x: Array, length: Array, longest: float, out: Array) -> None:
    """Write x, made shorter where it is longer than allowed."""
    np.multiply(x, x.dtype.type(longest / length if length > longest else 1), out=out)


def shrink_rows(x: Array, longest: float, out: Array) -> None:
    """Write rows, made shorter where all of them together are longer than allowed."""
    shrink(x, np.sqrt(np.square(x).sum()), longest, out)


@op(
    "clip_by_norm",
    inputs={"X": "any shape"},
    outputs={"Out": "X, no longer than max_norm"},
    attrs={"max_norm": Attr("float", doc="the length allowed", gt=0)},
    cost="2 * X",
    infer=or_rows(same()),
    inplace=True,
    dtypes=FLOATS,
    rows=as_x,
    cuda=FLOATS,
)
def clip_by_norm(b: Binder) -> None:
    """Out = X · max_norm / max(max_norm, √(sum(X²))).

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("clip_by_norm", {"X": [3.0, 4.0]}, {"max_norm": 1.0})["Out"].round(4)
        array([0.6, 0.8])

    Source: Fluid's clip_by_norm_op.
    """
    if b.on_cuda:
        x, longest = b["X"], b.attr("max_norm")
        if b.is_rows("X"):
            return b(shrink_rows_on_device, x, put_rows(b, "Out", shape_of(x), dtype_of(x)), longest)
        square = b.tmp((1,), wide_dtype(x.dtype))
        fold(b, FOLDS, SQUARES, x, range(x.ndim), square)
        operands = x, square, b["Out"], np.int32(1), np.float64(longest)
        return each(b, CUDA, f"shrink<{ctype(x.dtype)}>", x.size, *operands)
    if b.is_rows("X"):
        return on_rows(b, shrink_rows, b.attr("max_norm"), merge=True)
    x = b["X"]
    row, square = reading(b, x, (x.size,)), b.tmp((), x.dtype)
    b(np.dot, row, row, square)
    return b(shrink, x, apply(b, np.sqrt, square), b.attr("max_norm"), b["Out"])


def shrink_rows_on_device(source: SelectedRows, target: SelectedRows, longest: float) -> None:
    """Fill SelectedRows with those of another, each row once, made shorter where all are longer than allowed."""
    merge_on_device(source, target)
    values = value_array(target)
    if values.size:
        t, n, parts = ctype(values.dtype), np.int64(values.size), min(_PARTS, -(-values.size // THREADS))
        partial = room_beside(values, (parts,), wide_dtype(values.dtype))
        CUDA[f"squares<{t}>"]((parts,), (THREADS,), 0, values, partial, n)
        CUDA[f"shrink<{t}>"]((parts,), (THREADS,), 0, values, partial, values, np.int32(parts), np.float64(longest), n)


@op(
    "squared_l2_norm",
    inputs={"X": "any shape"},
    outputs={"Out": "the sum of their squares, shape [1]"},
    cost="X",
    infer=lambda c: c.set("Out", (1,), c["X"].dtype),
    grad=default_grad("X", "Out@GRAD"),
)
def squared_l2_norm(b: Binder) -> None:
    """Out = sum(X²) over all elements.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("squared_l2_norm", {"X": [3.0, 4.0]})["Out"]
        array([25.])

    Source: Fluid's squared_l2_norm_op.
    """
    x = b["X"]
    row = reading(b, x, (x.size,))
    b(np.dot, row, row, b["Out"].reshape(()))


@grad_op("squared_l2_norm_grad")
def squared_l2_norm_grad(b: Binder) -> None:
    """dX = 2 · dOut · X."""
    x = b["X"]
    twice = b.tmp((), x.dtype)
    b(np.multiply, b["Out@GRAD"].reshape(()), b.const(2, x.dtype), out=twice)
    b(np.multiply, x, twice, out=b["X@GRAD"])


launch("squared_l2_norm", SQUARES, "s::square")


#: What keeps the gradient of dist from dividing by a distance of 0.
_TINY = 1e-12


def emit_norm(b: Binder, x: Array, p: float, axes: Any, out: Array) -> None:
    """Emit the p-norm along axes: p = 0 counts what is not 0, infinite ones take the largest or the smallest size."""
    (v,) = values(b, x)
    if p == 0:
        return b(np.add.reduce, (v != 0).array, axes, out.dtype, out, True)
    if p == 2:
        return np.sqrt((v * v).sum(axes)).into(out)
    size = abs(v)
    if math.isinf(p):
        return size.reduced(np.maximum if p > 0 else np.minimum, axes).into(out)
    return size.sum(axes).into(out) if p == 1 else np.power(np.power(size, p).sum(axes), 1 / p).into(out)


def emit_norm_grad(b: Binder, x: Array, p: float, tiny: float, norm: Array, g: Array, dx: Array) -> None:
    """Emit dx = g · sign(x) · (|x| / norm) to the power of p - 1."""
    if p == 0:
        return zeros(b, dx)
    v, length, slope = values(b, x, norm, g)
    if math.isinf(p):
        return (np.sign(v) * (abs(v) == length) * slope).into(dx)
    if p == 1:
        return (np.sign(v) * slope).into(dx)
    length = length + tiny
    if p == 2:
        return (v * (slope / length)).into(dx)
    power = np.power(abs(v), p - 1) * np.sign(v)
    return (power * (slope * np.power(length, 1 - p))).into(dx)


def _lines(c: Context) -> tuple[list[int], int, list[int]]:
    """X as p_norm sees it, the dimension that goes, and the shape of Out with 1 in its place."""
    shape = list(c["X"].shape)
    if c.attr("asvector", False):
        size = math.prod(shape) if all(n >= 0 for n in shape) else -1
        return [size], 0, [1]
    axis = one_axis(c, c.attr("axis", -1), len(shape))
    return shape, axis, [1 if i == axis else n for i, n in enumerate(shape)]


def _p_norm_infer(c: Context) -> None:
    _, axis, kept = _lines(c)
    if c.attr("asvector", False):
        shape = [1] * c["X"].ndim if c.attr("keepdim", False) else [1]
    else:
        shape = kept if c.attr("keepdim", False) else kept[:axis] + kept[axis + 1 :]
    c.set("Out", shape or [1], c["X"].dtype, () if axis == 0 or not shape else c.lod("X"))


@op(
    "p_norm",
    inputs={"X": "at least one dimension"},
    outputs={"Out": "the lengths; [1] for one vector"},
    attrs={
        "porder": Attr("float", 2.0, "the power; 0 counts what is not 0, inf takes the largest, -inf the smallest"),
        "axis": Attr("int", -1, "the dimension of the vectors; from the end when negative"),
        "epsilon": Attr("float", 1e-12, "added to the length in the gradient"),
        "keepdim": Attr("bool", False, "keep that dimension, with size 1"),
        "asvector": Attr("bool", False, "take all of X as one vector"),
    },
    cost="2 * X",
    infer=_p_norm_infer,
    grad=default_grad("X", "Out", "Out@GRAD"),
    dtypes=FLOATS,
    cuda=FLOATS,
)
def p_norm(b: Binder) -> None:
    """Out = (sum(|X|ᵖ))^(1/p) along ``axis``.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("p_norm", {"X": [[3.0, -4.0]]}, {"porder": 1.0})["Out"]
        array([7.])

    Source: Paddle's p_norm_op.
    """
    if b.on_cuda:
        shape, axis, _ = _lines(b)
        p = float(b.attr("porder"))
        return fold(b, reduction_kernels.CUDA, _fold(p)[0], b["X"].reshape(shape), [axis], b["Out"], p)
    shape, axis, kept = _lines(b)
    emit_norm(b, reading(b, b["X"], shape), b.attr("porder"), axis, b["Out"].reshape(kept))


@grad_op("p_norm_grad", cuda=FLOATS)
def p_norm_grad(b: Binder) -> None:
    """dX = dOut · sign(X) · (|X| / Out)^(p-1); for an infinite p dOut · sign(X) where |X| is Out."""
    x, out, g, dx, whole = b["X"], b["Out"], b["Out@GRAD"], b["X@GRAD"], b.attr("asvector", False)
    p, tiny = float(b.attr("porder", 2.0)), float(b.attr("epsilon", _TINY))
    if b.on_cuda:
        gone = range(x.ndim) if whole else [_lines(b)[1]]
        return spread(b, reduction_kernels.CUDA, f"s::{_fold(p)[1]}", gone, x, out, g, dx, (tiny, p))
    kept = [1] * x.ndim if whole else _lines(b)[2]
    return emit_norm_grad(b, x, p, tiny, out.reshape(kept), g.reshape(kept), dx)


#: p -> the fold and its gradient; all other p come last.
_FOLDS = {
    0.0: (reduction_kernels.COUNTS, "count"), 1.0: (reduction_kernels.SIZES, "size"),
    2.0: (reduction_kernels.LENGTH, "length"), math.inf: (reduction_kernels.LARGEST_SIZE, "extreme_size"),
    -math.inf: (reduction_kernels.SMALLEST_SIZE, "extreme_size"),
}  # fmt: skip


def _fold(p: float) -> tuple[Fold, str]:
    return _FOLDS.get(p, (reduction_kernels.POWER_LENGTH, "power"))


def _both(c: Context) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """The shapes of X, Y and X - Y, of one rank."""
    x, y = aligned(c["X"].shape, c["Y"].shape, -1)
    both = tuple(broadcast_dim(m, n) for m, n in zip(x, y, strict=True))
    c.require(
        -2 not in both, "Input(X) and Input(Y) of dist do not fit.", expected=f"{list(x)}, or 1 where they differ",
        received=list(y),
    )  # fmt: skip
    return x, y, both


def _dist_infer(c: Context) -> None:
    _both(c)
    c.set("Out", (1,), c["X"].dtype)


def _gap(b: Binder) -> Array:
    sx, sy, _ = _both(b)
    return apply(b, np.subtract, b["X"].reshape(sx), b["Y"].reshape(sy))


@op(
    "dist",
    inputs={"X": "any shape", "Y": "a shape that broadcasts with it"},
    outputs={"Out": "[1]: how far they are apart"},
    attrs={"p": Attr("float", 2.0, "the power, as of p_norm")},
    cost="3 * X",
    infer=_dist_infer,
    grad=default_grad("X", "Y", "Out", "Out@GRAD"),
    dtypes=FLOATS,
    cuda=FLOATS,
)
def dist(b: Binder) -> None:
    """Out = (sum(|X - Y|ᵖ))^(1/p) over all elements.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("dist", {"X": [3.0, 4.0], "Y": [0.0, 0.0]})["Out"]
        array([5.])

    Source: Paddle's dist_op.
    """
    if b.on_cuda:
        gap, p = _gap_on_cuda(b), float(b.attr("p"))
        return fold(b, reduction_kernels.CUDA, _fold(p)[0], gap, range(gap.ndim), b["Out"], p)
    gap = _gap(b)
    emit_norm(b, gap, b.attr("p"), tuple(range(gap.ndim)), b["Out"].reshape((1,) * gap.ndim))


@grad_op("dist_grad", cuda=FLOATS)
def dist_grad(b: Binder) -> None:
    """dX = dOut · sign(X - Y) · (|X - Y| / Out)^(p-1), dY = -dX; summed where an operand was repeated."""
    if b.on_cuda:
        gap, p = _gap_on_cuda(b), float(b.attr("p", 2.0))
        slope = b.tmp(gap.shape, gap.dtype)
        name = f"s::{_fold(p)[1]}"
        spread(b, reduction_kernels.CUDA, name, range(gap.ndim), gap, b["Out"], b["Out@GRAD"], slope, (_TINY, p))
        return elementwise.slopes(b, "sub", (gap, gap, slope, slope), (b["X@GRAD"], b["Y@GRAD"]), _both(b))
    sx, sy, both = _both(b)
    gap = _gap(b)
    one = (1,) * gap.ndim
    slope = b.like(gap)
    emit_norm_grad(b, gap, b.attr("p", 2.0), _TINY, b["Out"].reshape(one), b["Out@GRAD"].reshape(one), slope)
    for slot, shape in (("X@GRAD", sx), ("Y@GRAD", sy)):
        if b.wants(slot):
            to = b[slot].reshape(shape)
            axes = summed(shape, both)
            total = slope
            if axes:
                total = b.tmp(shape, slope.dtype)
                b(np.add.reduce, slope, axes, None, total, True)
            if slot == "X@GRAD":
                b(np.copyto, to, total)
            else:
                b(np.negative, total, out=to)


def _gap_on_cuda(b: Binder) -> Array:
    """Emit X - Y."""
    shapes = _both(b)
    gap = b.tmp(shapes[2], b["X"].dtype)
    elementwise.binary(b, elementwise.CUDA, "f::sub", b["X"], b["Y"], gap, shapes)
    return gap


@c_code("squared_l2_norm", "squared_l2_norm_grad", "clip_by_norm")
def _norms_in_c(c: Context) -> dict[str, Constant]:
    return {"COUNT": c["X"].size, "LONGEST": c.attr("max_norm", 0.0)}


@c_code("norm", "norm_grad")
def _norm_in_c(c: Context) -> dict[str, Constant]:
    lines, n, inner = lines_along(c["X"].shape, c.attr("axis"))
    return {"OUTER": lines // max(inner, 1), "N": n, "INNER": inner, "EPSILON": c.attr("epsilon", 1e-10)}


#: The gradient of an element for all other p.
_POWER_SLOPE = "sign * pow(size, POWER - 1) * (slope * pow(length + TINY, 1 - POWER))"

#: p -> the sum with one element more, the length of the whole sum, and the gradient of an element.
_EXPRESSIONS = {
    0.0: ("total + (T)(size != 0)", "total", "0"),
    1.0: ("total + size", "total", "sign * slope"),
    2.0: ("total + size * size", "sqrt(total)", "sign * size * (slope / (length + TINY))"),
    math.inf: ("size > total || isnan(size) ? size : total", "total", "sign * slope * (T)(size == length)"),
    -math.inf: ("size < total || isnan(size) ? size : total", "total", "sign * slope * (T)(size == length)"),
}


@c_code("p_norm", "p_norm_grad")
def _p_norm_in_c(c: Context) -> dict[str, Constant]:
    p = float(c.attr("porder", 2.0))
    shape, axis, _ = _lines(c)
    general = "total + pow(size, POWER)", "pow(total, 1 / POWER)", _POWER_SLOPE
    total, length, slope = _EXPRESSIONS.get(p, general)
    sizes = {"OUTER": math.prod(shape[:axis]), "N": shape[axis], "INNER": math.prod(shape[axis + 1 :])}
    if "X@GRAD" in c.outputs:
        return {**sizes, "POWER": p, "TINY": float(c.attr("epsilon", _TINY)), "SLOPE": slope}
    first = math.inf if p == -math.inf else 0.0
    return {**sizes, "POWER": p, "FIRST": first, "TOTAL": total, "LENGTH": length}
