"""Comparisons, logic, allclose and equal_all."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, op
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels.cuda import CTYPES, THREADS, Source, ctype, each, of_dtype, typed, vector, wide_dtype, widths
from fluidnb_kernels.elementwise.broadcast import AXIS, joined, lines_in_c, operands
from fluidnb_kernels.elementwise.launch import binary, function_kernels
from fluidnb_kernels.reduce.reduction_kernels import NUMBERS
from fluidnb_kernels.rules import checked, same_shape
from fluidnb_kernels.tensor.strided_copy import fill

#: type -> (formula, numpy's function, result of comparing [1, 2, 3] with [2])
ROWS = {
    "less_than": ("X < Y", np.less, "[ True, False, False]"),
    "less_equal": ("X <= Y", np.less_equal, "[ True,  True, False]"),
    "greater_than": ("X > Y", np.greater, "[False, False,  True]"),
    "greater_equal": ("X >= Y", np.greater_equal, "[False,  True,  True]"),
    "equal": ("X == Y", np.equal, "[False,  True, False]"),
    "not_equal": ("X != Y", np.not_equal, "[ True, False,  True]"),
}
#: type -> (formula, numpy's function, result for [True, False] and [True])
LOGIC = {
    "logical_and": ("X and Y", np.logical_and, "[ True, False]"),
    "logical_or": ("X or Y", np.logical_or, "[ True,  True]"),
    "logical_xor": ("X or Y, but not both", np.logical_xor, "[False,  True]"),
}

_DOC = """Out = {formula}, element by element{to}; Out inherits X's LoD.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("{type}", {{"X": {x}, "Y": {y}}})["Out"]
        array({result})

    Source: Fluid's {source}_op.
    """


def _kernels() -> Iterator[str]:
    yield from function_kernels([f"f::{name}" for name in ROWS], CTYPES, "bool")
    yield from function_kernels([f"f::{name}" for name in LOGIC], ["bool"])
    yield from (f"logical_not<{width}>" for width in widths(np.dtype(bool)))


CUDA = Source(__file__, "compare.cu", _kernels)


def _define(type: str, formula: str, ufunc: np.ufunc, doc: str, dtype: Any = None, **declared: Any) -> None:
    """Register a comparison, or logic with the dtype in which operands meet."""

    @op(
        type,
        outputs={"Out": f"bool: {formula}"},
        cost="Out",
        infer=lambda c: c.set("Out", joined(c)[2], bool, c.lod("X")),
        cuda=tuple(CTYPES),
        doc=doc,
        **declared,
    )
    def compare(b: Binder) -> None:
        if b.on_cuda:
            x, y = b["X"], b["Y"]
            common = np.less.resolve_dtypes((x.dtype, y.dtype, None))[0] if dtype is None else np.dtype(dtype)
            return binary(b, CUDA, f"f::{type}", of_dtype(b, x, common), of_dtype(b, y, common), b["Out"], joined(b))
        x, y = operands(b)
        b(ufunc, x, y, out=b["Out"])


for _type, (_formula, _ufunc, _result) in ROWS.items():
    _define(
        _type, _formula, _ufunc,
        _DOC.format(type=_type, formula=f"({_formula})", to=", as bool", x="[1, 2, 3]", y="[2]", result=_result,
                    source="compare"),
        inputs={"X": "first operand", "Y": "second operand, a slice of X from dimension axis on"},
        attrs={"axis": AXIS, "force_cpu": Attr("bool", False, "keep the result on the CPU, as a condition of a loop")},
    )  # fmt: skip
for _type, (_words, _test, _result) in LOGIC.items():
    _define(
        _type, _words, _test,
        _DOC.format(type=_type, formula=_words, to="", x="[True, False]", y="[True]", result=_result,
                    source="logical"),
        bool, inputs={"X: bool": "any shape", "Y: bool": "any shape"}, inplace=True,
    )  # fmt: skip


@op(
    "logical_not",
    inputs={"X: bool": "any shape"},
    outputs={"Out": "bool: not X"},
    cost="Out",
    infer=lambda c: c.set("Out", c["X"].shape, bool, c.lod("X")),
    inplace=True,
    cuda=["bool"],
)
def logical_not(b: Binder) -> None:
    """Out = not X, element by element; Out inherits X's LoD.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("logical_not", {"X": [True, False]})["Out"]
        array([False,  True])

    Source: Fluid's logical_op.
    """
    if b.on_cuda:
        width = vector(b["X"], b["Out"])
        return each(b, CUDA, f"logical_not<{width}>", b["Out"].size, b["X"], b["Out"], per_thread=width)
    b(np.logical_not, b["X"], out=b["Out"])


_OPERATORS = {
    "less_than": "x < y", "less_equal": "x <= y", "greater_than": "x > y", "greater_equal": "x >= y", "equal": "x == y",
    "not_equal": "x != y", "logical_and": "x && y", "logical_or": "x || y", "logical_xor": "x != y",
}  # fmt: skip


@c_code(*_OPERATORS, function="compared")
def _compared_in_c(c: Context) -> dict[str, Constant]:
    return {**lines_in_c(c), "VALUE": _OPERATORS[c.definition.type]}


@c_code("logical_not")
def _not_in_c(c: Context) -> dict[str, Constant]:
    return {"COUNT": c["X"].size}


#: Blocks at most: each leaves one element, which one block joins.
_BLOCKS = 1024


EVERYWHERE = Source(__file__, "allclose.cu", typed(
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
        "Rtol?: any[1]": "the relative tolerance as a variable",
        "Atol?: any[1]": "the absolute tolerance as a variable",
    },
    outputs={"Out": "bool [1]"},
    attrs={
        "rtol": Attr("string", "1e-5", "the relative tolerance as text, exact in float64", check=_number),
        "atol": Attr("string", "1e-8", "the absolute tolerance as text", check=_number),
        "equal_nan": Attr("bool", False, "whether what is not a number is close to its like"),
    },
    cost="Input",
    infer=checked(_close_infer),
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
        b(EVERYWHERE[name], (blocks,), (THREADS,), 0, *read, partial, *numbers, np.int64(count))
    b(EVERYWHERE["everywhere"], (1,), (THREADS,), 0, partial, b["Out"], np.int32(blocks))
