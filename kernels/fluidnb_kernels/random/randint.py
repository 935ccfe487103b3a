"""randint and randperm: random whole numbers, and a random order."""

from __future__ import annotations

from fluidnb.op import Array, Attr, Binder, Stream, op, values_of
from fluidnb.values import dtypes
from fluidnb_kernels.random.launch import host_numbers
from fluidnb_kernels.rules import SHAPE_SLOTS
from fluidnb_kernels.tensor.fill import fixed_shape

_SEED = Attr("int", 0, "0 for other numbers in every run; else the same in every run")


def whole(stream: Stream, out: Array, low: int, high: int) -> None:
    """Fill an array with whole numbers from [low, high), each as likely as any other."""
    out[...] = stream.rewind().integers(low, high, out.shape)


@op(
    "randint",
    inputs=SHAPE_SLOTS,
    outputs={"Out": "whole numbers from [low, high)"},
    attrs={
        "shape": Attr("longs", [], "sizes"),
        "low": Attr("int", doc="the smallest"),
        "high": Attr("int", doc="one more than the largest"),
        "dtype": Attr("dtype", "int64", "dtype of Out"),
        "seed": _SEED,
    },
    check=lambda a: "randint's low must be less than high." if a["high"] <= a["low"] else None,
    cost="Out",
    infer=fixed_shape,
    guard=values_of("ShapeTensor", "ShapeTensorList"),
    random=True,
    cuda=True,
)
def randint(b: Binder) -> None:
    """Out = whole numbers from [low, high), each as likely as any other.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = run_op("randint", attrs={"shape": [100], "low": 2, "high": 4})["Out"]
        >>> sorted(set(x.tolist()))
        [2, 3]

    Source: Paddle's randint_op.
    """
    host_numbers(b, whole, b["Out"], b.attr("low"), b.attr("high"))


def order(stream: Stream, out: Array) -> None:
    """Fill an array with 0 … n - 1 in random order."""
    out[...] = stream.rewind().permutation(out.size)


@op(
    "randperm",
    outputs={"Out": "[n]: 0 … n - 1 in random order"},
    attrs={
        "n": Attr("int", doc="how many", gt=0),
        "dtype": Attr("dtype", "int64", "dtype of Out"),
        "seed": _SEED,
    },
    cost="Out",
    infer=lambda c: c.set("Out", (c.attr("n"),), dtypes.np_dtype(c.attr("dtype"))),
    random=True,
    cuda=True,
)
def randperm(b: Binder) -> None:
    """Out = 0 … n - 1 in random order, each order as likely as any other.

    Example:
        >>> from fluidnb.testing import run_op
        >>> sorted(run_op("randperm", attrs={"n": 3})["Out"].tolist())
        [0, 1, 2]

    Source: Paddle's randperm_op.
    """
    host_numbers(b, order, b["Out"])
