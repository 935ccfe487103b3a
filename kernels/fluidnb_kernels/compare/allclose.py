"""allclose and equal_all: whether two tensors are the same as a whole."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, op
from fluidnb_kernels.cuda import CTYPES, THREADS, Source, ctype, of_dtype, typed, wide_dtype
from fluidnb_kernels.reduce.reduction_kernels import NUMBERS
from fluidnb_kernels.rules import same_shape
from fluidnb_kernels.tensor.strided_copy import fill

#: Blocks at most: each leaves one element, which one block joins.
_BLOCKS = 1024


CUDA = Source(__file__, "allclose.cu", typed(
    ("everywhere",), ("same", CTYPES), ("close", NUMBERS, ("double",)),
    ("close", ("float16", "bfloat16", "float32"), ("float",)),
))  # fmt: skip


def _close_infer(c: Context) -> None:
    same_shape(c, "Input", "Other")
    c.set("Out", (1,), bool)


def close(x: Array, y: Array, rtol: Any, atol: Any, equal_nan: bool, out: Array) -> None:
    """Write whether two arrays are close everywhere: |x - y| <= atol + rtol · |y|."""
    out[...] = np.allclose(x, y, rtol, atol, equal_nan)


def _number(text: str) -> str | None:
    try:
        float(text)
    except ValueError:
        return f"{text!r} is not a number."
    return None


@op(
    "allclose",
    inputs={
        "Input": "any shape",
        "Other": "the same shape",
        "Rtol?": "the relative tolerance as a variable",
        "Atol?": "the absolute tolerance as a variable",
    },
    outputs={"Out": "bool [1]"},
    attrs={
        "rtol": Attr("string", "1e-5", "the relative tolerance as text, exact in float64", check=_number),
        "atol": Attr("string", "1e-8", "the absolute tolerance as text", check=_number),
        "equal_nan": Attr("bool", False, "whether what is not a number is close to its like"),
    },
    cost="Input",
    infer=_close_infer,
    dtype_slot="Input",
    cuda=NUMBERS,
)
def allclose(b: Binder) -> None:
    """Out = whether |Input - Other| <= atol + rtol · |Other| for all elements.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("allclose", {"Input": [1.0], "Other": [1.1]}, {"atol": "0.2"})["Out"]
        array([ True])

    Source: Paddle's allclose_op.
    """
    if b.on_cuda:  # one pass; tolerances that are variables are compared in their precision where that is higher
        x, given = b["Input"], [b[slot] for slot in ("Rtol", "Atol")]
        wide = wide_dtype(x.dtype) if x.dtype.kind != "i" else np.dtype(np.float64)
        wide = np.result_type(wide, *(t.dtype for t in given if t is not None))
        tolerances = [None if t is None else of_dtype(b, t, wide) for t in given]
        read = x, of_dtype(b, b["Other"], x.dtype), *tolerances
        numbers = *(np.float64(b.attr(name)) for name in ("rtol", "atol")), np.int32(b.attr("equal_nan"))
        return _everywhere(b, f"close<{ctype(x.dtype)}, {ctype(wide)}>", read, *numbers)
    rtol, atol = (
        b[slot].reshape(()) if b.has(slot) else float(b.attr(slot.lower())) for slot in ("Rtol", "Atol")
    )  # fmt: skip
    b(close, b["Input"], b["Other"], rtol, atol, b.attr("equal_nan"), b["Out"])


def equal(x: Array, y: Array, out: Array) -> None:
    """Write whether two arrays have one shape and the same elements."""
    out[...] = np.array_equal(x, y)


@op(
    "equal_all",
    inputs={"X": "any shape", "Y": "any shape"},
    outputs={"Out": "bool [1]"},
    cost="X",
    infer=lambda c: c.set("Out", (1,), bool),
    cuda=True,
)
def equal_all(b: Binder) -> None:
    """Out = whether X and Y have one shape and the same elements.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("equal_all", {"X": [1, 2], "Y": [1, 2]})["Out"]
        array([ True])

    Source: Paddle's equal_all_op.
    """
    if b.on_cuda:  # one pass, in the dtype in which numpy compares them
        x, y = b["X"], b["Y"]
        if x.shape != y.shape:
            return fill(b, b["Out"], False)
        common = np.less.resolve_dtypes((x.dtype, y.dtype, None))[0]
        return _everywhere(b, f"same<{ctype(common)}>", (of_dtype(b, x, common), of_dtype(b, y, common)))
    b(equal, b["X"], b["Y"], b["Out"])


def _everywhere(b: Binder, name: str, read: tuple[Array, ...], *numbers: Any) -> None:
    """Emit Out = whether a kernel finds two tensors the same everywhere."""
    count = read[0].size
    blocks = min(_BLOCKS, -(-count // THREADS))
    partial = b.tmp((max(blocks, 1),), bool)
    if blocks:
        b(CUDA[name], (blocks,), (THREADS,), 0, *read, partial, *numbers, np.int64(count))
    b(CUDA["everywhere"], (1,), (THREADS,), 0, partial, b["Out"], np.int32(blocks))
