"""Logic of bool tensors: one row for each operator."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Binder, Context, kernel, op, same
from fluidnb_kernels.compare.compare import holds, opposite
from fluidnb_kernels.cuda import CTYPES
from fluidnb_kernels.elementwise.broadcast import joined, operands

#: type -> (formula, numpy's function, result for [True, False] and [True])
ROWS = {
    "logical_and": ("X and Y", np.logical_and, "[ True, False]"),
    "logical_or": ("X or Y", np.logical_or, "[ True,  True]"),
    "logical_xor": ("X or Y, but not both", np.logical_xor, "[False,  True]"),
}

_DOC = """Out = {formula}, element by element; Out inherits X's LoD.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("{type}", {{"X": [True, False], "Y": [True]}})["Out"]
        array({result})

    Source: Fluid's logical_op.
    """


def _infer(c: Context) -> None:
    c.set("Out", joined(c)[2], bool, c.lod("X"))


def _define(type: str, formula: str, ufunc: np.ufunc, result: str) -> None:
    @op(
        type,
        inputs={"X: bool": "any shape", "Y: bool": "any shape"},
        outputs={"Out": f"bool: {formula}"},
        cost="Out",
        infer=_infer,
        inplace=True,
        doc=_DOC.format(type=type, formula=formula, result=result),
    )
    def logical(b: Binder) -> None:
        x, y = operands(b)
        b(ufunc, x, y, out=b["Out"])

    @kernel(type, place="cuda", dtypes=tuple(CTYPES))
    def on_cuda(b: Binder) -> None:
        holds(b, type, bool)


for _type, _row in ROWS.items():
    _define(_type, *_row)


@op(
    "logical_not",
    inputs={"X: bool": "any shape"},
    outputs={"Out": "bool: not X"},
    cost="Out",
    infer=same(),
    inplace=True,
)
def logical_not(b: Binder) -> None:
    """Out = not X, element by element; Out inherits X's LoD.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("logical_not", {"X": [True, False]})["Out"]
        array([False,  True])

    Source: Fluid's logical_op.
    """
    b(np.logical_not, b["X"], out=b["Out"])


kernel("logical_not", place="cuda", dtypes=["bool"])(opposite)
