"""Comparisons of two tensors and logic of bool tensors: one row for each operator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, op, same
from fluidnb_kernels.cuda import CTYPES, Source, each, of_dtype, vector, widths
from fluidnb_kernels.elementwise.broadcast import AXIS, joined, operands
from fluidnb_kernels.elementwise.launch import binary, function_kernels

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
    infer=same(),
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
