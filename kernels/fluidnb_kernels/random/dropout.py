"""dropout: elements left out at random."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, Stream, default_grad, grad_op, like_forward, op, unit
from fluidnb.op.c_code import Constant, c_code
from fluidnb.op.launches import register_launches
from fluidnb_kernels.cuda import BLOCKS, THREADS, Function, Source, address_of, ctype, each, elements, vector, widths
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.random.launch import stream_in_c, words_of
from fluidnb_kernels.rules import same_shape

DOWNGRADE, UPSCALE = "downgrade_in_infer", "upscale_in_train"


def _infer(c: Context) -> None:
    x = c["X"]
    c.set("Out", x.shape, x.dtype, c.lod("X"))
    c.set("Mask", x.shape, np.uint8, c.lod("X"))


def _check_implementation(value: str) -> str | None:
    if value not in (DOWNGRADE, UPSCALE):
        return f"dropout_implementation can only be {DOWNGRADE} or {UPSCALE}, but received {value}."
    return None


def check_rate(value: float) -> str | None:
    """Check probability of zeroing an element: None, or what is wrong."""
    return None if 0 <= value <= 1 else f"'dropout_prob' must be between 0.0 and 1.0, but received {value}."


@op(
    "dropout",
    inputs={"X": "any shape"},
    outputs={"Out": "X with elements left out", "Mask~": "uint8: 1 where an element stays"},
    attrs={
        "dropout_prob": Attr("float", 0.5, "probability of zeroing an element", check=check_rate),
        "is_test": Attr("bool", False, "leave nothing out"),
        "fix_seed": Attr("bool", False, "use the seed: the same elements in every run"),
        "seed": Attr("int", 0, "the seed"),
        "dropout_implementation": Attr(
            "string", DOWNGRADE, "whether the test scales down or training scales up", check=_check_implementation
        ),
    },
    cost="X",
    infer=_infer,
    grad=default_grad("Mask", "Out@GRAD"),
    random=True,
    dtype_slot="X",
    cuda=FLOATS,
)
def dropout(b: Binder) -> None:
    """Out = X · Mask while training and X · (1 - p) in the test; or X · Mask / (1 - p) and X with upscale_in_train.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("dropout", {"X": [4.0]}, {"dropout_prob": 0.25, "is_test": True})["Out"]
        array([3.])

    Source: Fluid's dropout_op.
    """
    if b.on_cuda:  # one launch, whose numbers are those of the host
        x, mask = b["X"], b["Mask"]
        if b.attr("is_test"):
            if mask is not None:
                each(b, CUDA, "ones", mask.size, mask)
            return _emit_test(b, x, b["Out"])
        stream = b.rng
        if not b.attr("fix_seed"):
            stream.seed = 0
        if mask is None:
            mask = b.tmp(x.shape, np.uint8)
        if x.size:
            function = CUDA[f"dropout<{ctype(x.dtype)}, {_width(x, mask, b['Out'])}>"]
            b(draw, function, stream, x, b["Out"], mask, b.attr("dropout_prob"), _divisor(b))
        return None
    x, out, mask, rate = b["X"], b["Out"], b["Mask"], b.attr("dropout_prob")
    upscale = b.attr("dropout_implementation") == UPSCALE
    stays = b.const(1 - rate, x.dtype)
    if b.attr("is_test"):
        if mask is not None:
            b(np.copyto, mask, b.const(1, np.uint8))
        return b(np.copyto, out, x) if upscale else b(np.multiply, x, stays, out=out)
    if mask is None:
        mask = b.like(x, np.uint8)
    stream = b.rng
    if not b.attr("fix_seed"):
        stream.seed = 0
    prob = b.like(x, np.float64 if x.dtype == np.float64 else np.float32)
    b(unit, stream, prob)
    b(np.greater_equal, prob, b.const(rate, prob.dtype), out=mask.view(bool))
    b(np.multiply, x, mask.view(bool), out=out)
    if upscale and rate < 1:
        b(np.divide, out, stays, out=out)


def _grad_infer(c: Context) -> None:
    if c.has("Mask"):  # not while testing
        same_shape(c, "Out@GRAD", "Mask")
    like_forward(c)


@grad_op("dropout_grad", infer=_grad_infer, dtype_slot="Out@GRAD", cuda=FLOATS)
def dropout_grad(b: Binder) -> None:
    """dX = dOut times what the element of X was multiplied with."""
    if b.on_cuda:
        g, dx = b["Out@GRAD"], b["X@GRAD"]
        if b.attr("is_test", False):
            return _emit_test(b, g, dx)
        mask = b["Mask"]
        wide = _width(g, mask, dx)
        name = f"masked<{ctype(g.dtype)}, {wide}>"
        return each(b, CUDA, name, g.size, g, mask, dx, np.float64(_divisor(b)), per_thread=wide)
    g, dx, rate = b["Out@GRAD"], b["X@GRAD"], b.attr("dropout_prob", 0.5)
    upscale = b.attr("dropout_implementation", DOWNGRADE) == UPSCALE
    stays = b.const(1 - rate, g.dtype)
    if b.attr("is_test", False):
        return b(np.copyto, dx, g) if upscale else b(np.multiply, g, stays, out=dx)
    b(np.multiply, g, b["Mask"].view(bool), out=dx)
    if upscale and rate < 1:
        b(np.divide, dx, stays, out=dx)


def _kernels() -> Iterator[str]:
    yield "ones"
    for dtype in elements(FLOATS):
        yield from (f"{name}<{ctype(dtype)}, {n}>" for name in ("dropout", "masked", "scaled") for n in widths(dtype))


CUDA = Source(__file__, "dropout.cu", _kernels)


def draw(function: Function, stream: Stream, x: Array, out: Array, mask: Array, rate: float, divisor: float) -> None:
    """Launch the kernel with the numbers of this run."""
    function(*_launch(stream, x, out, mask, rate, divisor))


def _launch(stream: Stream, x: Array, out: Array, mask: Array, rate: float, divisor: float) -> tuple[Any, ...]:
    """The arguments of the launch in this run."""
    blocks, numbers = min(BLOCKS, -(-x.size // (8 * THREADS))), (np.float64(rate), np.float64(divisor))
    return (blocks,), (THREADS,), 0, x, out, mask, *words_of(stream), *numbers, np.int64(x.size)


register_launches(draw, lambda function, *args: function.launches(*_launch(*args)))


def _width(x: Array, mask: Array, out: Array) -> int:
    """Elements per thread: one where the mask is not aligned."""
    wide = vector(x, out)
    return 1 if address_of(mask) % 8 else wide


def _divisor(b: Binder) -> float:
    """The divisor of the elements that stay."""
    rate = b.attr("dropout_prob", 0.5)
    return 1 - rate if b.attr("dropout_implementation", DOWNGRADE) == UPSCALE and rate < 1 else 1.0


def _emit_test(b: Binder, x: Array, out: Array) -> None:
    upscale = b.attr("dropout_implementation", DOWNGRADE) == UPSCALE
    factor = 1.0 if upscale else 1 - b.attr("dropout_prob", 0.5)
    wide = vector(x, out)
    each(b, CUDA, f"scaled<{ctype(x.dtype)}, {wide}>", x.size, x, out, np.float64(factor), per_thread=wide)


@c_code("dropout")
def _dropout_in_c(c: Context) -> dict[str, Constant]:
    rate, upscale = c.attr("dropout_prob"), c.attr("dropout_implementation") == UPSCALE
    numbers = {"RATE": rate, "STAYS": 1.0 if upscale else 1.0 - rate}
    numbers["DIVISOR"] = 1.0 - rate if upscale and rate < 1 else 1.0
    seed = c.attr("seed") if c.attr("fix_seed") else 0
    return {**stream_in_c(c, seed), "COUNT": c["X"].size, "TEST": bool(c.attr("is_test")), **numbers}


@c_code("dropout_grad")
def _dropout_grad_in_c(c: Context) -> dict[str, Constant]:
    stays = 1.0 - c.attr("dropout_prob", 0.5)
    upscale = c.attr("dropout_implementation", DOWNGRADE) == UPSCALE
    test = "Out_GRAD[i]" if upscale else "Out_GRAD[i] * STAYS"
    train = "Out_GRAD[i] * (T)Mask[i]" + (" / STAYS" if upscale and stays > 0 else "")
    return {"COUNT": c["Out@GRAD"].size, "STAYS": stays, "VALUE": test if c.attr("is_test", False) else train}
