"""reduce_sum and the others that reduce dimensions, logsumexp and mean."""

from typing import Any, NamedTuple

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, kernel, linear_grad, op, product
from fluidnb.op.c_code import Constant, c_code
from fluidnb.values import dtypes
from fluidnb_kernels.arithmetic import values
from fluidnb_kernels.cuda import of_dtype
from fluidnb_kernels.cuda.axis_reduction import Fold, fold, spread
from fluidnb_kernels.emit import FLOATS, apply
from fluidnb_kernels.reduce.reduction_kernels import CUDA, LENGTH, LOGSUMEXP, MEAN, NUMBERS, launch
from fluidnb_kernels.rules import one_axis


class Row(NamedTuple):
    """One reduction."""

    formula: str  # what it computes
    ufunc: np.ufunc  # what it reduces with
    result: str  # what it makes of [[1, 2], [3, 4]] over dimension 0, for the documentation
    needs: tuple[str, ...] | None  # slots that the gradient reads beside dOut; None for no gradient
    fold: str  # its fold in ``reduce.cu``
    spread: str = ""  # its gradient there


ROWS = {
    "reduce_sum": Row("the sum", np.add, "[4., 6.]", ("X",), "total", "share"),
    "reduce_mean": Row("the mean", np.add, "[2., 3.]", ("X",), "total", "share"),
    "reduce_max": Row("the largest element", np.maximum, "[3., 4.]", ("X", "Out"), "largest", "extreme"),
    "reduce_min": Row("the smallest element", np.minimum, "[1., 2.]", ("X", "Out"), "smallest", "extreme"),
    "reduce_prod": Row("the product", np.multiply, "[3., 8.]", ("X", "Out"), "product", "product"),
    "reduce_all": Row("whether all are true", np.logical_and, "[ True,  True]", None, "every"),
    "reduce_any": Row("whether one is true", np.logical_or, "[ True,  True]", None, "some"),
}

_DOC = """Out = {formula} of X over the dimensions ``dim``; over all of them Out has the shape [1].

    Out inherits X's LoD where dimension 0 stays.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("{type}", {{"X": {x}}}, {{"dim": [0]}})["Out"]
        array({result})

    Source: Fluid's reduce_op.
    """


def axes(c: Context) -> tuple[int, ...]:
    """The sorted dimensions that a reduction reduces, none negative; all with ``reduce_all`` or an empty ``dim``."""
    n, dims = c["X"].ndim, c.attr("dim", [0])
    if c.attr("reduce_all", False) or not dims:
        return tuple(range(n))
    for d in dims:
        c.require(
            -n <= d < n or n == 0 and d in (0, -1),
            f"The dim index should be in the range [-dims(input), dims(input)) of {c.definition.type}.",
            expected=f"{-n} to {n - 1}", received=d,
        )  # fmt: skip
    return tuple(sorted({d % n for d in dims})) if n else ()


def set_reduced(c: Context, gone: tuple[int, ...], keep: bool, dtype: Any = None) -> None:
    """Set Out to the shape of X without the dimensions that are reduced, or with size 1 in their places."""
    x = c["X"]
    shape = tuple(1 if i in gone else n for i, n in enumerate(x.shape) if keep or i not in gone)
    c.set("Out", shape or (1,), x.dtype if dtype is None else dtype, () if 0 in gone or not x.ndim else c.lod("X"))


def _infer(c: Context) -> None:
    number, logic = c.attr("out_dtype", -1), ROWS[c.definition.type].needs is None
    dtype = np.dtype(bool) if logic else c["X"].dtype if number < 0 else dtypes.np_dtype(number)
    set_reduced(c, axes(c), c.attr("keep_dim", False), dtype)


def with_axes(b: Binder, slot: str, gone: tuple[int, ...]) -> Array:
    """Out or its gradient, seen with the dimensions of X."""
    return b[slot].reshape([1 if i in gone else n for i, n in enumerate(b["X"].shape)])


def _define(type: str, row: Row) -> None:
    logic = row.ufunc in (np.logical_and, np.logical_or)

    @op(
        type,
        inputs={"X": "bool, any shape" if logic else "any shape"},
        outputs={"Out": row.formula},
        attrs={
            "dim": Attr("ints", [0], "the dimensions to reduce; negative ones count from the end, none means all"),
            "keep_dim": Attr("bool", False, "keep them, with size 1"),
            "reduce_all": Attr("bool", False, "reduce all of them"),
            "in_dtype": Attr("int", -1, "the VarType of X, -1 for not said; ignored"),
            "out_dtype": Attr("int", -1, "the VarType of Out where it is not bool; -1 for that of X"),
        },
        cost="X",
        infer=_infer,
        grad=None if row.needs is None else default_grad(*row.needs, "Out@GRAD"),
        doc=_DOC.format(
            formula=row.formula, type=type, result=row.result,
            x="[[True, True], [True, True]]" if logic else "[[1.0, 2.0], [3.0, 4.0]]",
        ),
    )  # fmt: skip
    def reduce(b: Binder) -> None:
        x, out, gone = b["X"], b["Out"], axes(b)
        if x.dtype != out.dtype and not logic:
            wide = b.like(x, out.dtype)
            b(np.copyto, wide, x, casting="unsafe")
            x = wide
        b(row.ufunc.reduce, x, gone, None, with_axes(b, "Out", gone), True)
        if type == "reduce_mean":
            whole: dict[str, Any] = {"casting": "unsafe"} if out.dtype.kind in "iu" else {}  # cut towards 0
            b(np.divide, out, b.const(product([x.shape[i] for i in gone]), out.dtype), out=out, **whole)


for _type, _row in ROWS.items():
    _define(_type, _row)


@grad_op("reduce_sum_grad", grad=linear_grad("reduce_sum"))
def reduce_sum_grad(b: Binder) -> None:
    """dX = dOut, repeated over the dimensions that were reduced."""
    b(np.copyto, b["X@GRAD"], with_axes(b, "Out@GRAD", axes(b)))


@grad_op("reduce_mean_grad", grad=linear_grad("reduce_mean"))
def reduce_mean_grad(b: Binder) -> None:
    """dX = dOut / n, repeated over the n elements of each mean."""
    x, dx, gone = b["X"], b["X@GRAD"], axes(b)
    count = b.const(product([x.shape[i] for i in gone]), dx.dtype)
    b(np.copyto, dx, apply(b, np.divide, with_axes(b, "Out@GRAD", gone), count, dtype=dx.dtype))


def _extreme_grad(b: Binder) -> None:
    """dX = dOut where X is Out, 0 elsewhere; all that are equal to it take the gradient."""
    gone = axes(b)
    mask = apply(b, np.equal, b["X"], with_axes(b, "Out", gone))
    b(np.multiply, mask, with_axes(b, "Out@GRAD", gone), out=b["X@GRAD"])


grad_op("reduce_max_grad")(_extreme_grad)
grad_op("reduce_min_grad")(_extreme_grad)


@grad_op("reduce_prod_grad")
def reduce_prod_grad(b: Binder) -> None:
    """dX = dOut · Out / X."""
    dx, gone = b["X@GRAD"], axes(b)
    t = apply(b, np.multiply, with_axes(b, "Out@GRAD", gone), with_axes(b, "Out", gone), dtype=dx.dtype)
    b(np.divide, t, b["X"], out=dx)


def _define_on_cuda(type: str, row: Row) -> None:
    """Register its CUDA kernels, and those of its gradient."""
    logic, average = row.needs is None, type == "reduce_mean"
    how = MEAN if average else Fold(f"r::{row.fold}")

    def count(b: Binder) -> float:
        return float(product([b["X"].shape[i] for i in axes(b)])) if average else 1.0

    @kernel(type, place="cuda", dtypes=("bool",) if logic else FLOATS if average else NUMBERS)
    def forward(b: Binder) -> None:
        x, out, gone = b["X"], b["Out"], axes(b)
        fold(b, CUDA, how, of_dtype(b, x, out.dtype), gone, out, count(b))

    if logic:
        return

    @kernel(f"{type}_grad", place="cuda", dtypes=FLOATS)
    def backward(b: Binder) -> None:
        x, dx = b["X"], b["X@GRAD"]
        out = of_dtype(b, b["Out"], dx.dtype) if "Out" in (row.needs or ()) else None
        g = of_dtype(b, b["Out@GRAD"], dx.dtype)
        spread(b, CUDA, f"s::{row.spread}", axes(b), x, out, g, dx, (count(b), 0.0))


for _type, _row in ROWS.items():
    _define_on_cuda(_type, _row)


@op(
    "mean",
    inputs={"X": "any shape"},
    outputs={"Out": "their mean, shape [1]"},
    cost="X",
    infer=lambda c: c.set("Out", (1,), c["X"].dtype),
    grad=default_grad("X", "Out@GRAD"),
)
def mean(b: Binder) -> None:
    """Out = sum(X) / n over all n elements.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("mean", {"X": [[1.0, 2.0], [3.0, 6.0]]})["Out"]
        array([3.])

    Source: Fluid's mean_op.
    """
    x, out = b["X"], b["Out"].reshape(())
    total = b.tmp((), x.dtype)
    b(np.add.reduce, x, None, None, total)
    b(np.divide, total, b.const(x.size, x.dtype), out=out)


@grad_op("mean_grad", grad=linear_grad("mean"))
def mean_grad(b: Binder) -> None:
    """dX = dOut / n, the same for every element."""
    dx = b["X@GRAD"]
    share = b.tmp((), dx.dtype)
    b(np.divide, b["Out@GRAD"].reshape(()), b.const(dx.size, dx.dtype), out=share)
    b(np.copyto, dx, share)


launch("mean", MEAN, "s::share", number=lambda b: b["X"].size, numbers=lambda b: (b["X"].size, 0.0))


#: What keeps the gradient of frobenius_norm from dividing by a length of 0.
_TINY = 1e-12


def _gone(c: Context) -> tuple[int, ...]:
    """The dimensions that logsumexp reduces."""
    rank, dims = c["X"].ndim, c.attr("axis", [0])
    gone = tuple(sorted({one_axis(c, d, max(rank, 1)) for d in dims}))
    return tuple(range(rank)) if c.attr("reduce_all", False) or not gone or not rank else gone


@op(
    "logsumexp",
    inputs={"X": "any shape"},
    outputs={"Out": "the logarithms; [1] where everything is reduced"},
    attrs={
        "axis": Attr("ints", [0], "the dimensions to reduce; negative ones count from the end, none means all"),
        "keepdim": Attr("bool", False, "keep them, with size 1"),
        "reduce_all": Attr("bool", False, "reduce all of them"),
    },
    cost="4 * X",
    infer=lambda c: set_reduced(c, _gone(c), c.attr("keepdim")),
    grad=default_grad("X", "Out", "Out@GRAD"),
    dtypes=FLOATS,
)
def logsumexp(b: Binder) -> None:
    """Out = log(sum(exp(X))) over the dimensions ``axis``, exact for large and small X too.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("logsumexp", {"X": [1000.0, 1000.0]})["Out"].round(4)
        array([1000.6931])

    Source: Paddle's logsumexp_op.
    """
    gone, limits = _gone(b), np.finfo(b["X"].dtype)
    x, out = values(b, b["X"], with_axes(b, "Out", gone))
    top = np.minimum(np.maximum(x.reduced(np.maximum, gone), limits.min), limits.max)  # inf - inf is not a number
    np.exp(x - top).sum(gone).into(out.array)
    (np.log(out) + top).into(out.array)


@grad_op("logsumexp_grad")
def logsumexp_grad(b: Binder) -> None:
    """dX = dOut · exp(X - Out)."""
    gone = _gone(b)
    x, out, g = values(b, b["X"], with_axes(b, "Out", gone), with_axes(b, "Out@GRAD", gone))
    (np.exp(x - out) * g).into(b["X@GRAD"])


@op(
    "frobenius_norm",
    inputs={"X": "any shape"},
    outputs={"Out": "the lengths; [1] where everything is reduced"},
    attrs={
        "dim": Attr("ints", [0], "the dimensions to reduce; negative ones count from the end, none means all"),
        "keep_dim": Attr("bool", False, "keep them, with size 1"),
        "reduce_all": Attr("bool", False, "reduce all of them"),
        "in_dtype": Attr("int", -1, "ignored (compatibility with Paddle 2)"),
        "out_dtype": Attr("int", -1, "ignored (compatibility with Paddle 2)"),
    },
    cost="X",
    infer=lambda c: set_reduced(c, axes(c), c.attr("keep_dim")),
    grad=default_grad("X", "Out", "Out@GRAD"),
    dtypes=FLOATS,
)
def frobenius_norm(b: Binder) -> None:
    """Out = √(sum(X²)) over the dimensions ``dim``.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("frobenius_norm", {"X": [[3.0, 4.0]]}, {"dim": [0, 1]})["Out"]
        array([5.])

    Source: Paddle's frobenius_norm_op.
    """
    gone = axes(b)
    x, out = values(b, b["X"], with_axes(b, "Out", gone))
    np.sqrt((x * x).sum(gone)).into(out.array)


@grad_op("frobenius_norm_grad")
def frobenius_norm_grad(b: Binder) -> None:
    """dX = dOut · X / Out."""
    gone = axes(b)
    x, length, g = values(b, b["X"], with_axes(b, "Out", gone), with_axes(b, "Out@GRAD", gone))
    (x * (g / (length + _TINY))).into(b["X@GRAD"])


# in one pass: sums of exponentials are rescaled where a larger element comes
launch("logsumexp", LOGSUMEXP, "s::logsumexp", _gone)
launch("frobenius_norm", LENGTH, "s::length", axes, numbers=lambda b: (_TINY, 0.0))


#: What joins two elements in C, and what it begins with for floats and for whole numbers.
_JOINS = {
    "reduce_prod": ("a * b", "1"), "reduce_all": ("a && b", "1"), "reduce_any": ("a || b", "0"),
    "logsumexp": ("a == b ? a + log(2.0) : fmax(a, b) + log1p(exp(-fabs(a - b)))", "-INFINITY"),
    "reduce_max": ("a >= b || a != a ? a : b", "-INFINITY"), "reduce_min": ("a <= b || a != a ? a : b", "INFINITY"),
}  # fmt: skip


def _lines_in_c(c: Context, gone: tuple[int, ...]) -> dict[str, Constant]:
    """Constants of C code that goes over X in lines."""
    dims: list[tuple[int, bool]] = []  # neighbours that are reduced, or kept, count as one
    for i, n in enumerate(c["X"].shape):
        kept = i not in gone
        if dims and dims[-1][1] == kept:
            n *= dims.pop()[0]
        dims.append((n, kept))
    dims = dims or [(1, True)]
    sizes, steps = [n for n, _ in dims], [0] * len(dims)
    step = 1
    for i in reversed(range(len(dims))):
        if dims[i][1]:
            steps[i], step = step, step * sizes[i]
    place = f"element(line, SIZES, STEPS, {len(sizes) - 1})" if any(steps[:-1]) else "0"
    found: dict[str, Constant] = {"LINES": product(sizes[:-1]), "LINE": sizes[-1], "OUT_STEP": steps[-1]}
    return {**found, "OUT_LINE": place, "SIZES": sizes[:-1], "STEPS": steps[:-1]}


def _gone_in_c(c: Context) -> tuple[int, ...]:
    type = c.definition.type
    return _gone(c) if type.startswith("logsumexp") else tuple(range(c["X"].ndim)) if type[:4] == "mean" else axes(c)


@c_code("mean", "logsumexp", *ROWS, function="reduced")
def _reduced_in_c(c: Context) -> dict[str, Constant]:
    type, out, gone = c.definition.type, c["Out"], _gone_in_c(c)
    join, start = _JOINS.get(type, ("a + b", "0"))
    if "INFINITY" in start and out.dtype.kind in "iu":
        join, limits = join.replace(" || a != a", ""), np.iinfo(out.dtype)
        start = f"{limits.max}" if type == "reduce_min" else f"(-{limits.max} - 1)" if limits.min else "0"
    parts = product([c["X"].shape[i] for i in gone]) if type in ("mean", "reduce_mean") else 1
    wide = "double" if out.dtype.kind == "f" else "T"
    return {
        **_lines_in_c(c, gone), "JOIN": join, "START": start, "WIDE": wide, "PARTS": parts, "OUT_COUNT": out.size
    }


_SLOPES = {
    "reduce_sum_grad": "Out_GRAD[of]", "reduce_max_grad": "X[at] == Out[of] ? Out_GRAD[of] : (T)0",
    "reduce_min_grad": "X[at] == Out[of] ? Out_GRAD[of] : (T)0", "reduce_prod_grad": "Out_GRAD[of] * Out[of] / X[at]",
    "reduce_mean_grad": "Out_GRAD[of] / (T)PARTS", "mean_grad": "Out_GRAD[of] / (T)PARTS",
    "logsumexp_grad": "Out_GRAD[of] * exp(X[at] - Out[of])",
}  # fmt: skip


@c_code(*_SLOPES, function="reduced_grad")
def _reduced_grad_in_c(c: Context) -> dict[str, Constant]:
    gone = _gone_in_c(c)
    parts = product([c["X"].shape[i] for i in gone])
    return {**_lines_in_c(c, gone), "VALUE": _SLOPES[c.definition.type], "PARTS": parts}
