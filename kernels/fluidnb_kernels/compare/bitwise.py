"""bitwise_and, bitwise_or, bitwise_xor and bitwise_not: logic on each bit of whole numbers."""

from collections.abc import Iterator

import numpy as np

from fluidnb.op import Binder, Context, op, same
from fluidnb_kernels.cuda import Source, ctype, each, elements, of_dtype, vector, widths
from fluidnb_kernels.elementwise.broadcast import AXIS, joined, operands
from fluidnb_kernels.elementwise.launch import binary, function_kernels
from fluidnb_kernels.rules import checked

#: What has bits.
WHOLE = ("bool", "uint8", "int8", "int16", "int32", "int64")
#: type -> (formula, numpy's function, result for [12, 10] and [10])
ROWS = {
    "bitwise_and": ("bits that X and Y both have", np.bitwise_and, "[ 8, 10]"),
    "bitwise_or": ("bits that X or Y has", np.bitwise_or, "[14, 10]"),
    "bitwise_xor": ("bits that one of X and Y has", np.bitwise_xor, "[6, 0]"),
}

_DOC = """Out = the {formula}, element by element; of bool the truth; Out inherits X's LoD.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("{type}", {{"X": [12, 10], "Y": [10]}})["Out"]
        array({result})

    Source: Paddle's {type}_op.
    """


def _kernels() -> Iterator[str]:
    yield from function_kernels([f"f::{name}" for name in ROWS], WHOLE)
    for dtype in elements(WHOLE):
        yield from (f"bitwise_not<{ctype(dtype)}, {width}>" for width in widths(dtype))


CUDA = Source(__file__, "bitwise.cu", _kernels)


def _infer(c: Context) -> None:
    c.set("Out", joined(c)[2], c["X"].dtype, c.lod("X"))


def _define(type: str, formula: str, ufunc: np.ufunc, result: str) -> None:
    @op(
        type,
        inputs={
            "X: bool | uint8 | int8 | int16 | int32 | int64": "first operand",
            "Y: bool | uint8 | int8 | int16 | int32 | int64": "second operand, broadcast",
        },
        outputs={"Out": formula},
        attrs={"axis": AXIS},
        cost="Out",
        infer=checked(_infer),
        inplace=True,
        cuda=WHOLE,
        doc=_DOC.format(type=type, formula=formula, result=result),
    )
    def bitwise(b: Binder) -> None:
        if b.on_cuda:
            y = of_dtype(b, b["Y"], b["X"].dtype)
            return binary(b, CUDA, f"f::{type}", b["X"], y, b["Out"], joined(b))
        x, y = operands(b)
        b(ufunc, x, y, out=b["Out"])


for _type, _row in ROWS.items():
    _define(_type, *_row)


@op(
    "bitwise_not",
    inputs={"X: bool | uint8 | int8 | int16 | int32 | int64": "any shape"},
    outputs={"Out": "bits that X does not have"},
    cost="Out",
    infer=same(),
    inplace=True,
    cuda=WHOLE,
)
def bitwise_not(b: Binder) -> None:
    """Out = the bits that X does not have, element by element; of bool the opposite; Out inherits X's LoD.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("bitwise_not", {"X": [0, 5]})["Out"]
        array([-1, -6])

    Source: Paddle's bitwise_not_op.
    """
    x, out = b["X"], b["Out"]
    if b.on_cuda:
        width = vector(x, out)
        return each(b, CUDA, f"bitwise_not<{ctype(x.dtype)}, {width}>", out.size, x, out, per_thread=width)
    b(np.bitwise_not, x, out=out)
