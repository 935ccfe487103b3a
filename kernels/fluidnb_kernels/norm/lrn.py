"""lrn: each element of an image against the squares of the channels around it."""

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels.cuda import Source, ctype, each, lines_along, typed
from fluidnb_kernels.emit import FLOATS, apply
from fluidnb_kernels.sliding import CHANNEL_LAST, channel_first

CUDA = Source(__file__, "lrn.cu", typed(("lrn lrn_grad", FLOATS)))


def _infer(c: Context) -> None:
    x = c["X"]
    c.check_inputs("X")
    c.set("Out", x.shape, x.dtype, c.lod("X"))
    c.set("MidOut", x.shape, x.dtype)


def _emit_window(b: Binder, x: Array, before: int, behind: int, out: Array) -> None:
    """Emit for each channel the sum of those from ``before`` it to ``behind`` it."""
    b(np.copyto, out, x)
    channels = x.shape[1]
    for d in range(-before, behind + 1):
        if d and abs(d) < channels:
            to, by = (slice(0, channels - d), slice(d, None)) if d > 0 else (slice(-d, None), slice(0, channels + d))
            b(np.add, out[:, to], x[:, by], out=out[:, to])


def _window(c: Context) -> tuple[int, int]:
    n = c.attr("n", 5)
    before = (n - 1) // 2
    return before, n - 1 - before


@op(
    "lrn",
    inputs={"X: float[n, c, h, w]": "[n, h, w, c] with data_format NHWC"},
    outputs={"Out": "the shape of X", "MidOut": "what X is divided by, before the power"},
    attrs={
        "n": Attr("int", 5, "how many channels count", gt=0),
        "k": Attr("float", 2.0, "what is added to the squares", gt=0),
        "alpha": Attr("float", 1e-4, "factor of the squares", gt=0),
        "beta": Attr("float", 0.75, "the power", gt=0),
        "data_format": Attr("string", "AnyLayout", "NHWC where the channels come last; else they are second"),
        "is_test": Attr("bool", False, "ignored (compatibility)"),
    },
    cost="X * n + 3 * X",
    infer=_infer,
    grad=default_grad("X", "Out", "MidOut", "Out@GRAD"),
    dtypes=FLOATS,
    cuda=FLOATS,
)
def lrn(b: Binder) -> None:
    """MidOut = k + alpha · the sum of X² over the n channels around; Out = X · MidOut^-beta.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = np.array([1.0, 2.0]).reshape(1, 2, 1, 1)
        >>> run_op("lrn", {"X": x}, {"n": 3, "k": 1.0, "alpha": 1.0, "beta": 1.0})["Out"].ravel().round(3)
        array([0.167, 0.333])

    Source: Krizhevsky et al., "ImageNet Classification with Deep Convolutional Neural Networks" (2012); Fluid's lrn_op.
    """
    if b.on_cuda:
        operands = b["X"], b["MidOut"], b["Out"]
        return _launch(b, "lrn", operands, _window(b), b.attr("k"), b.attr("alpha"), b.attr("beta"))
    layout = b.attr("data_format")
    x, out = channel_first(b["X"], layout), channel_first(b["Out"], layout)
    middle = channel_first(b["MidOut"], layout) if b.wants("MidOut") else b.like(x)
    sums = b.like(x)
    _emit_window(b, apply(b, np.multiply, x, x), *_window(b), sums)
    b(np.multiply, sums, b.const(b.attr("alpha"), x.dtype), out=sums)
    b(np.add, sums, b.const(b.attr("k"), x.dtype), out=middle)
    b(np.multiply, x, apply(b, np.power, middle, b.const(-b.attr("beta"), x.dtype)), out=out)


@grad_op("lrn_grad", cuda=FLOATS)
def lrn_grad(b: Binder) -> None:
    """dX = dOut · MidOut^-beta - 2 · alpha · beta · X · the sum of dOut · Out / MidOut over the channels around."""
    if b.on_cuda:
        operands = tuple(b[slot] for slot in ("X", "Out", "MidOut", "Out@GRAD", "X@GRAD"))
        return _launch(b, "lrn_grad", operands, _window(b)[::-1], b.attr("alpha", 1e-4), b.attr("beta", 0.75))
    layout, beta = b.attr("data_format", "AnyLayout"), b.attr("beta", 0.75)
    x, out, middle, g, dx = (channel_first(b[s], layout) for s in ("X", "Out", "MidOut", "Out@GRAD", "X@GRAD"))
    before, behind = _window(b)
    shares = apply(b, np.multiply, g, out)
    b(np.divide, shares, middle, out=shares)
    sums = b.like(x)
    _emit_window(b, shares, behind, before, sums)
    b(np.multiply, sums, x, out=sums)
    b(np.multiply, sums, b.const(2 * b.attr("alpha", 1e-4) * beta, x.dtype), out=sums)
    own = apply(b, np.power, middle, b.const(-beta, x.dtype))
    b(np.multiply, own, g, out=own)
    b(np.subtract, own, sums, out=dx)


def _launch(b: Binder, name: str, operands: tuple[Array, ...], window: tuple[int, int], *numbers: float) -> None:
    """Emit a launch over all elements; the window counts channels before and behind."""
    x = operands[0]
    last = b.attr("data_format", "AnyLayout") in CHANNEL_LAST
    sizes = map(np.int64, lines_along(x.shape, -1 if last else 1)[1:])
    constants = (*map(np.int64, window), *map(np.float64, numbers), *sizes)
    each(b, CUDA, f"{name}<{ctype(x.dtype)}>", x.size, *operands, *constants)


@c_code("lrn", "lrn_grad")
def _lrn_in_c(c: Context) -> dict[str, Constant]:
    x = c["X"]
    lines, channels, inner = lines_along(x.shape, -1 if c.attr("data_format", "AnyLayout") in CHANNEL_LAST else 1)
    sizes = {"OUTER": lines // max(inner, 1), "C": channels, "INNER": inner}
    numbers = {name.upper(): float(c.attr(name)) for name in ("k", "alpha", "beta")}
    return {**sizes, **numbers, **dict(zip(("BEFORE", "BEHIND"), _window(c), strict=True))}
