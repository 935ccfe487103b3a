"""quantize_linear, dequantize_linear: numbers to whole ones of a few bits by a scale, and back."""

import math

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, op
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.rules import checked, one_axis

_ATTRS = {
    "quant_axis": Attr("int", -1, "the axis that has a scale for each element; -1 for one scale"),
    "bit_length": Attr("int", 8, "bits of a whole number", ge=1),
    "round_type": Attr("int", 0, "0 rounds halves to even, 1 away from 0", enum=(0, 1)),
    "is_test": Attr("bool", True, "whether scales stay as they are; only True", enum=(True,)),
    "only_observer": Attr("bool", False, "whether numbers stay as they are"),
}
_INPUTS = {
    "X: float": "the numbers",
    "Scale: float": "what the largest number stands for; one, or one for each element of quant_axis",
    "ZeroPoint?": "ignored: zero stays zero", "InAccum?": "ignored: for training in Paddle",
    "InState?": "ignored: for training in Paddle",
}  # fmt: skip
_OUTPUTS = {
    "Y": "the shape of X", "OutState?": "not written", "OutAccum?": "not written", "OutScale?": "not written",
}
HOST = "no CUDA kernel yet: programs that are quantized run on a CPU"


def _largest(c: Context) -> int:
    return int((1 << (c.attr("bit_length", 8) - 1)) - 1)


def _shape(c: Context) -> tuple[int, ...]:
    """The shape in which Scale is multiplied with X."""
    axis, rank = c.attr("quant_axis", -1), c["X"].ndim
    if axis == -1:
        return ()
    axis = one_axis(c, axis, rank, "quant_axis")
    return tuple(-1 if i == axis else 1 for i in range(rank))


def _infer(c: Context) -> None:
    x, shape = c["X"], _shape(c)
    size = x.shape[shape.index(-1)] if shape else 1
    c.require(
        c["Scale"].size in (size, -1) or size == -1, f"Scale of {c.definition.type} must fit quant_axis.",
        expected=size, received=c["Scale"].size,
    )  # fmt: skip
    c.set("Y", x.shape, x.dtype, c.lod("X"))
    for slot in ("OutState", "OutAccum", "OutScale"):
        c.set(slot, c["Scale"].shape if slot == "OutScale" else (1,), x.dtype)


def quantize(x: Array, scale: Array, shape: tuple[int, ...], largest: int, away: bool, y: Array) -> None:
    """Write whole numbers of a few bits."""
    scaled = x / np.maximum(scale.reshape(shape or (1,)), np.finfo(x.dtype).tiny) * x.dtype.type(largest)
    if away:
        whole = np.copysign(np.floor(np.abs(scaled) + x.dtype.type(0.5)), scaled)
        y[...] = np.clip(whole, -largest, largest)
    else:
        y[...] = np.clip(np.rint(scaled), -largest - 1, largest)


def dequantize(x: Array, scale: Array, shape: tuple[int, ...], largest: int, y: Array) -> None:
    """Write numbers again."""
    y[...] = x * scale.reshape(shape or (1,)) / x.dtype.type(largest)


@op(
    "quantize_linear", inputs=_INPUTS, outputs=_OUTPUTS, attrs=_ATTRS, cost="2 * X", infer=checked(_infer),
    dtypes=FLOATS, dtype_slot="X", host_only=HOST,
)  # fmt: skip
def quantize_linear(b: Binder) -> None:
    """Y = round(X / Scale · m), with m = 2^(bit_length - 1) - 1.

    Limited to [-m - 1, m]; with ``round_type`` 1 to [-m, m].

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("quantize_linear", {"X": [0.5, -3.0], "Scale": [2.0]})["Y"]
        array([  32., -128.])

    Source: Paddle's quantize_linear_op.
    """
    if b.attr("only_observer", False):
        return b(np.copyto, b["Y"], b["X"])
    b(quantize, b["X"], b["Scale"], _shape(b), _largest(b), b.attr("round_type", 0) == 1, b["Y"])


@op(
    "dequantize_linear", inputs=_INPUTS, outputs=_OUTPUTS, attrs=_ATTRS, cost="2 * X", infer=checked(_infer),
    dtype_slot="X", host_only=HOST,
)  # fmt: skip
def dequantize_linear(b: Binder) -> None:
    """Y = X · Scale / m, with m = 2^(bit_length - 1) - 1.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("dequantize_linear", {"X": [127.0, -64.0], "Scale": [2.0]})["Y"].round(3)
        array([ 2.   , -1.008])

    Source: Paddle's dequantize_linear_op.
    """
    if b.attr("only_observer", False):
        return b(np.copyto, b["Y"], b["X"])
    b(dequantize, b["X"], b["Scale"], _shape(b), _largest(b), b["Y"])


@c_code("quantize_linear", "dequantize_linear")
def _in_c(c: Context) -> dict[str, Constant]:
    x, shape = c["X"], _shape(c)
    axis = shape.index(-1) if shape else 0
    return {
        "COUNT": math.prod(x.shape), "CHANNELS": x.shape[axis] if shape else 1,
        "INNER": math.prod(x.shape[axis + 1 :]) if shape else 1, "LARGEST": _largest(c),
        "AWAY": int(c.attr("round_type", 0) == 1), "ONLY_OBSERVED": int(c.attr("only_observer", False)),
        "TINY": float(np.finfo(x.dtype).tiny),
    }  # fmt: skip
