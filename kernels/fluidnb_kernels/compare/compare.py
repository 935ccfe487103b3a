"""Comparisons of two tensors: one row for each operator."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Attr, Binder, Context, kernel, op
from fluidnb_kernels.compare.on_cuda import holds
from fluidnb_kernels.cuda import CTYPES
from fluidnb_kernels.elementwise.broadcast import AXIS, joined, operands

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
