"""shard_index: numbers of a table that is shared out, as numbers of one share."""

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import Array, Attr, Binder, op, same
from fluidnb_kernels.cuda import Source, ctype, each, typed
from fluidnb_kernels.rules import checked

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
