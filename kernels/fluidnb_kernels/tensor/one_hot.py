"""one_hot: whole numbers as rows with a single 1."""

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import Array, Attr, Binder, Context, op, values_of
from fluidnb.values import dtypes
from fluidnb_kernels.emit import zeros
from fluidnb_kernels.rules import integer
from fluidnb_kernels.tensor import row_indexing


def set_ones(out: Array, ids: Array, lenient: bool) -> None:
    """Write a 1 in each row of zeros."""
    rows = np.arange(len(ids))
    outside = (ids < 0) | (ids >= out.shape[1])
    if outside.any():
        if not lenient:
            raise EnforceNotMet(
                "Input(X) of one_hot holds a number outside the depth.",
                expected=f"0 to {out.shape[1] - 1}", received=int(ids[outside][0]),
                hint="depth is the number of classes, one more than the largest number.",
            )  # fmt: skip
        rows, ids = rows[~outside], ids[~outside]
    out[rows, ids] = 1


def _infer(c: Context) -> None:
    x, depth = c["X"], integer(c, "depth", "depth_tensor")
    c.check_inputs()
    known = c.runtime or not c.has("depth_tensor")
    c.require(
        not known or depth > 0, f"Attr(depth) of {c.definition.type} must be positive.", expected="> 0", received=depth
    )
    shape = x.shape
    if c.definition.type == "one_hot":
        c.require(
            x.ndim >= 2 and x.shape[-1] in (1, -1), "The last dimension of Input(X) of one_hot should be 1.",
            expected="shape [..., 1]", received=list(shape), hint='layers.data("label", [1], dtype="int64") has it.',
        )  # fmt: skip
        shape = x.shape[:-1]
    c.set("Out", (*shape, depth), dtypes.np_dtype(c.attr("dtype")), c.lod("X"))


def _define(type: str, shape: str, x: str, result: str) -> None:
    @op(
        type,
        inputs={"X: int": shape, "depth_tensor?": "the depth as a variable"},
        outputs={"Out": "one row for each number, depth long"},
        attrs={
            "depth": Attr("int", -1, "length of a row"),
            "dtype": Attr("dtype", "float32", "dtype of Out"),
            "allow_out_of_range": Attr("bool", False, "a number outside the depth gives a row of 0, not an error"),
        },
        infer=_infer,
        guard=values_of("depth_tensor"),
        dtype_slot="X",
        cuda=True,
        doc=f"""Out = 1 where the last index is X, 0 elsewhere; Out inherits X's LoD.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("{type}", {{"X": {x}}}, {{"depth": 3}})["Out"]
        array({result}, dtype=float32)

    Source: {"Fluid" if type == "one_hot" else "Paddle"}'s {type}_op.
    """,
    )
    def one_hot(b: Binder) -> None:
        x, out, lenient = b["X"], b["Out"], b.attr("allow_out_of_range")
        if b.on_cuda:
            return row_indexing.hot(b, x, out, lenient)
        zeros(b, out)
        return b(set_ones, out.reshape(-1, out.shape[-1]), x.reshape(-1), lenient)


_define("one_hot", "[…, 1]", "[[2]]", "[[0., 0., 1.]]")
_define("one_hot_v2", "of any shape", "[2]", "[[0., 0., 1.]]")
