"""norm, squared_l2_norm and clips by norm: sizes of tensors."""

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op, same
from fluidnb.values import SelectedRows
from fluidnb_kernels.arithmetic import values
from fluidnb_kernels.cuda import THREADS, Source, ctype, each, each_line, lines_along, typed, wide_dtype
from fluidnb_kernels.cuda.axis_reduction import fold
from fluidnb_kernels.cuda.upload import room_beside
from fluidnb_kernels.emit import FLOATS, apply, reading
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
