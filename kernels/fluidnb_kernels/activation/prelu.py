"""prelu: a rectifier whose slope below zero is learned."""

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op, product
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels.arithmetic import values
from fluidnb_kernels.cuda import Source, by_rows, ctype, typed
from fluidnb_kernels.cuda.axis_reduction import Fold, fold, fold_types
from fluidnb_kernels.emit import FLOATS, apply, reading

MODES = ("all", "channel", "element")


def _channel(c: Context) -> int:
    """The dimension of X that holds its channels."""
    return int(c["X"].ndim - 1 if c.attr("data_format", "NCHW") == "NHWC" else 1)


def _infer(c: Context) -> None:
    x, alpha, mode = c["X"], c["Alpha"], c.attr("mode")
    if mode == "all":
        want: int = 1
    elif mode == "channel":
        c.require(x.ndim > 1, "Input(X) of prelu has no channels.", expected="rank > 1", received=list(x.shape))
        want = x.shape[_channel(c)]
    else:
        want = product(x.shape[1:])
    c.require(
        alpha.size == want or -1 in (alpha.size, want), f"Input(Alpha) of prelu does not fit mode {mode!r}.",
        expected=f"{want} elements", received=f"{alpha.size} elements",
        hint="'all' takes one slope, 'channel' one for each channel, 'element' one for each element of a row.",
    )  # fmt: skip
    c.set("Out", x.shape, x.dtype, c.lod("X"))


def _slopes(b: Binder) -> Array:
    """Alpha seen with the dimensions of X."""
    x, mode = b["X"], b.attr("mode", "all")
    shape = [1] * x.ndim
    if mode == "channel":
        shape[_channel(b)] = x.shape[_channel(b)]
    elif mode == "element":
        shape = [1, *x.shape[1:]]
    return reading(b, b["Alpha"], shape)


@op(
    "prelu",
    inputs={
        "X: float": "any shape",
        "Alpha: float": "the slopes below zero: one, one for each channel or each element",
    },
    outputs={"Out": "of the shape of X"},
    attrs={
        "mode": Attr("string", "all", "how many slopes there are", enum=MODES),
        "data_format": Attr("string", "NCHW", "where the channels are", enum=("NCHW", "NHWC", "AnyLayout")),
        "is_test": Attr("bool", False, "ignored (compatibility)"),
    },
    cost="X",
    infer=_infer,
    grad=default_grad("X", "Alpha", "Out@GRAD"),
    dtypes=FLOATS,
    dtype_slot="X",
    cuda=FLOATS,
)
def prelu(b: Binder) -> None:
    """Out = X where X > 0, Alpha · X elsewhere; Out inherits X's LoD.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("prelu", {"X": [[-2.0, 2.0]], "Alpha": [0.5]})["Out"]
        array([[-1.,  2.]])

    Source: He et al., Delving deep into rectifiers (2015); Fluid's prelu_op.
    """
    if b.on_cuda:
        return _emit_on_cuda(b, "prelu", b["X"], b["Alpha"], b["Out"])
    x, slopes = values(b, b["X"], _slopes(b))
    t = np.minimum(x, 0)
    t *= slopes
    (np.maximum(x, 0) + t).into(b["Out"])


@grad_op("prelu_grad", dtype_slot="X", cuda=FLOATS)
def prelu_grad(b: Binder) -> None:
    """dX = dOut where X > 0, Alpha · dOut elsewhere; dAlpha = X · dOut where X <= 0, summed."""
    x, g, dx, dalpha = b["X"], b["Out@GRAD"], b["X@GRAD"], b["Alpha@GRAD"]
    if b.on_cuda:
        if dx is not None:
            _emit_on_cuda(b, "prelu_grad", x, b["Alpha"], g, dx)
        if dalpha is not None:
            count, inner = _lie(b)
            shape = x.size // max(count * inner, 1), count, inner
            fold(b, CUDA, _SLOPES, x.reshape(shape), [0, 2], dalpha, y=g.reshape(shape))
        return
    slopes = _slopes(b)
    if dx is not None:
        v, to, slope = values(b, x, g, slopes)
        t = to * slope
        t.put(to, v > 0)
        t.into(dx)
    if dalpha is not None:
        t = apply(b, np.multiply, apply(b, np.minimum, x, b.const(0, x.dtype)), g)
        axes = tuple(i for i, n in enumerate(slopes.shape) if n == 1)
        b(np.add.reduce, t, axes, None, dalpha.reshape(slopes.shape), True)


CUDA = Source(__file__, "prelu.cu", typed(
    ("prelu prelu_grad", FLOATS),
    ("fold", ("r::slope", "r::total"), tuple(fold_types(FLOATS))),
))  # fmt: skip
_SLOPES = Fold("r::slope", then="r::total")


def _lie(b: Context) -> tuple[int, int]:
    """The number of slopes, and of adjacent elements with one slope."""
    x, mode = b["X"], b.attr("mode", "all")
    if mode == "all":
        return 1, x.size
    if mode == "element":
        return product(x.shape[1:]), 1
    axis = _channel(b)
    return x.shape[axis], product(x.shape[axis + 1 :])


def _emit_on_cuda(b: Binder, name: str, *arrays: Array) -> None:
    """Emit a kernel over rows that have one slope each, or one slope per column."""
    x, (count, inner) = b["X"], _lie(b)
    width, of_rows = (inner, count) if inner > 1 or count == 1 else (count, 0)
    rows = x.size // max(width, 1)
    by_rows(b, CUDA, f"{name}<{ctype(x.dtype)}>", rows, width, *arrays, np.int64(of_rows), np.int64(width))


@c_code("prelu", "prelu_grad")
def _prelu_in_c(c: Context) -> dict[str, Constant]:
    count, inner = _lie(c)
    return {"OUTER": c["X"].size // max(count * inner, 1), "C": count, "INNER": inner}
