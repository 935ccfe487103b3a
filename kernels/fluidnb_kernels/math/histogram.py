"""histogram: how many elements fall into each of several ranges."""

import numpy as np

from fluidnb.op import Array, Attr, Binder, op
from fluidnb_kernels.cuda import CTYPES, THREADS, Source, ctype
from fluidnb_kernels.cuda.axis_reduction import Fold, fold
from fluidnb_kernels.reduce import reduction_kernels
from fluidnb_kernels.tensor.strided_copy import fill

#: Blocks at most, each of which adds its counts to the result; ranges at most that a block counts for itself.
_BLOCKS, _BESIDE = 1024, 8192

CUDA = Source(__file__, "histogram.cu", lambda: (f"histogram<{CTYPES[dtype]}>" for dtype in reduction_kernels.NUMBERS))


def count(x: Array, low: float, high: float, out: Array) -> None:
    """Write how many elements fall into each of some ranges; equal bounds are taken from the elements."""
    if low == high and x.size:
        low, high = x.min(), x.max()
    if low == high:
        low, high = low - 1, high + 1
    inside = x[(x >= low) & (x <= high)]
    at = ((inside - low) * out.size / (high - low)).astype(np.int64)
    out[...] = np.bincount(np.minimum(at, out.size - 1), minlength=out.size)


@op(
    "histogram",
    inputs={"X": "any shape"},
    outputs={"Out": "int64 [bins]: how many elements fall into each range"},
    attrs={
        "bins": Attr("long", 100, "how many ranges", ge=1),
        "min": Attr("int", 0, "where the first one begins"),
        "max": Attr("int", 0, "where the last one ends; equal to min, both come from the elements"),
    },
    check=lambda a: "max must not be less than min." if a["max"] < a["min"] else None,
    cost="X",
    infer=lambda c: c.set("Out", (c.attr("bins"),), np.int64),
    cuda=reduction_kernels.NUMBERS,
)
def histogram(b: Binder) -> None:
    """Out[i] = how many elements of X fall into the i-th of ``bins`` ranges between min and max; others do not count.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("histogram", {"X": [0.0, 1.0, 2.0, 5.0]}, {"bins": 2, "max": 2})["Out"]
        array([1, 2])

    Source: Paddle's histogram_op.
    """
    if b.on_cuda:  # one pass that counts, after two that find the ends where they come from the elements
        x, out, low, high = b["X"], b["Out"], b.attr("min"), b.attr("max")
        fill(b, out)
        if not x.size:
            return
        ends = [None, None]
        if low == high:
            ends = [b.tmp((1,), x.dtype) for _ in ends]
            for how, end in zip((Fold("r::smallest"), Fold("r::largest")), ends, strict=True):
                fold(b, reduction_kernels.CUDA, how, x, range(x.ndim), end)
        beside = out.size <= _BESIDE
        shared, blocks = 4 * out.size if beside else 0, min(_BLOCKS, -(-x.size // THREADS))
        numbers = (*map(np.int64, (low, high, out.size)), np.int32(beside), np.int64(x.size))
        return b(CUDA[f"histogram<{ctype(x.dtype)}>"], (blocks,), (THREADS,), shared, x, *ends, out, *numbers)
    b(count, b["X"], b.attr("min"), b.attr("max"), b["Out"])
