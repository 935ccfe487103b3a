"""Comparisons of two tensors: one row for each operator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, Context, kernel, op
from fluidnb_kernels.cuda import CTYPES, Source, vector, widths
from fluidnb_kernels.cuda.cast import of_dtype
from fluidnb_kernels.cuda.grid import each
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

_DOC = """Out = ({formula}), element by element, as bool; Out inherits X's LoD.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("{type}", {{"X": [1, 2, 3], "Y": [2]}})["Out"]
        array({result})

    Source: Fluid's compare_op.
    """


def _infer(c: Context) -> None:
    c.set("Out", joined(c)[2], bool, c.lod("X"))


def _define(type: str, formula: str, ufunc: np.ufunc, result: str) -> None:
    @op(
        type,
        inputs={"X": "first operand", "Y": "second operand, a slice of X from dimension axis on"},
        outputs={"Out": f"bool: {formula}"},
        attrs={"axis": AXIS, "force_cpu": Attr("bool", False, "keep the result on the CPU, as a condition of a loop")},
        cost="Out",
        infer=_infer,
        doc=_DOC.format(type=type, formula=formula, result=result),
    )
    def compare(b: Binder) -> None:
        x, y = operands(b)
        b(ufunc, x, y, out=b["Out"])

    @kernel(type, place="cuda", dtypes=tuple(CTYPES))
    def on_cuda(b: Binder) -> None:
        holds(b, type)


for _type, _row in ROWS.items():
    _define(_type, *_row)


_COMPARISONS = ("less_than", "less_equal", "greater_than", "greater_equal", "equal", "not_equal")
_LOGIC = ("logical_and", "logical_or", "logical_xor")
_BOOL = np.dtype(bool)


def _kernels() -> Iterator[str]:
    yield from function_kernels([f"f::{name}" for name in _COMPARISONS], CTYPES, "bool")
    yield from function_kernels([f"f::{name}" for name in _LOGIC], ["bool"])
    yield from (f"logical_not<{width}>" for width in widths(_BOOL))


CUDA = Source(__file__, "compare.cu", _kernels)


def holds(b: Binder, name: str, dtype: Any = None) -> None:
    """Emit a comparison or logic of X and Y.

    Args:
        dtype: the dtype in which operands meet; default the one in which numpy compares them.
    """
    x, y = b["X"], b["Y"]
    common = np.less.resolve_dtypes((x.dtype, y.dtype, None))[0] if dtype is None else np.dtype(dtype)
    binary(b, CUDA, f"f::{name}", of_dtype(b, x, common), of_dtype(b, y, common), b["Out"], joined(b))


def opposite(b: Binder) -> None:
    """Emit Out = not X."""
    x, out = b["X"], b["Out"]
    width = vector(x, out)
    each(b, CUDA, f"logical_not<{width}>", out.size, x, out, per_thread=width)
