"""one_hot and shard_index: whole numbers that name rows."""

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import Array, Attr, Binder, Context, op, same, values_of
from fluidnb.op.c_code import Constant, c_code
from fluidnb.values import dtypes
from fluidnb_kernels.cuda import Source, ctype, each, typed
from fluidnb_kernels.emit import zeros
from fluidnb_kernels.rules import checked, integer, require_fixed
from fluidnb_kernels.tensor import row_indexing


def set_ones(out: Array, ids: Array, lenient: bool) -> None:
    """Write a 1 in each row of zeros."""
    depth, rows = out.shape[1], np.arange(len(ids))
    outside = ids.view(f"u{ids.itemsize}") >= depth  # below 0 is large there
    if np.count_nonzero(outside):
        if not lenient:
            raise EnforceNotMet(
                "Input(X) of one_hot holds a number outside the depth.",
                expected=f"0 to {depth - 1}", received=int(ids[outside][0]),
                hint="depth is the number of classes, one more than the largest number.",
            )  # fmt: skip
        rows, ids = rows[~outside], ids[~outside]
    out.reshape(-1)[rows * depth + ids] = 1


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


_WHOLE = ("int32", "int64")
CUDA = Source(__file__, "shard_index.cu", typed(("shard", _WHOLE)))


def shard(x: Array, total: int, size: int, mine: int, ignored: int, out: Array) -> None:
    """Write numbers as seen from one share of a table."""
    outside = (x < 0) | (x >= total)
    if outside.any():
        raise EnforceNotMet(
            "Input(X) of shard_index holds a number outside the table.", expected=f"0 to {total - 1}",
            received=int(x[outside][0]), hint="index_num is one more than the largest number.",
        )  # fmt: skip
    out[...] = np.where(x // size == mine, x - mine * size, ignored)


@op(
    "shard_index",
    inputs={"X: int": "rows of a table"},
    outputs={"Out": "the same shape: rows of one share, or ignore_value"},
    attrs={
        "index_num": Attr("int", doc="how many rows the table has", gt=0),
        "nshards": Attr("int", doc="how many shares of equal size it is cut into", gt=0),
        "shard_id": Attr("int", doc="which share, from 0", ge=0),
        "ignore_value": Attr("int", -1, "the value for rows of other shares"),
    },
    check=lambda a: "shard_id must be less than nshards." if a["shard_id"] >= a["nshards"] else None,
    infer=checked(same()),
    cuda=_WHOLE,
)
def shard_index(b: Binder) -> None:
    """Out = X - shard_id · size where X is in the share, ignore_value elsewhere; size = ⌈index_num / nshards⌉.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("shard_index", {"X": np.array([[1], [12]])}, {"index_num": 20, "nshards": 2, "shard_id": 1})["Out"]
        array([[-1],
               [ 2]])

    Source: Paddle's shard_index_op.
    """
    x, out, total = b["X"], b["Out"], b.attr("index_num")
    numbers = total, -(-total // b.attr("nshards")), b.attr("shard_id"), b.attr("ignore_value")
    if b.on_cuda:
        return each(b, CUDA, f"shard<{ctype(x.dtype)}>", x.size, x, out, *map(np.int64, numbers))
    return b(shard, x, *numbers, out)


@c_code("one_hot", "one_hot_v2", function="one_hot")
def _one_hot_in_c(c: Context) -> dict[str, Constant]:
    require_fixed(c, "depth_tensor")
    return {"COUNT": c["X"].size, "DEPTH": c["Out"].shape[-1]}
