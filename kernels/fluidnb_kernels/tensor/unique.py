"""unique and unique_with_counts: the different elements of a tensor. How many there are depends on values."""

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, op
from fluidnb.values import dtypes
from fluidnb_kernels.rules import one_axis


def different(x: Array, axis: int | None, in_order: bool) -> tuple[Array, Array, Array, Array]:
    """The different elements, where each comes first, which of them each element is, and how often each comes."""
    values, first, index, counts = np.unique(
        x.reshape(-1) if axis is None else x, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    index = index.reshape(-1)
    if not in_order:
        order = np.argsort(first)
        values, first, counts = values.take(order, axis or 0), first[order], counts[order]
        index = np.argsort(order)[index]
    return values, first, index, counts


def write_different(
    x: Array, axis: int | None, in_order: bool, out: Array, first: Array, index: Array, counts: Array
) -> None:
    """Write what `different` gives, each where it is wanted."""
    for target, found in zip((out, first, index, counts), different(x, axis, in_order), strict=True):
        if target is not None:
            target[...] = found


def _axis(c: Context) -> int | None:
    axes = c.attr("axis", [])
    c.require(len(axes) <= 1, "Attr(axis) of unique names one dimension.", expected="none or one", received=axes)
    return one_axis(c, axes[0], c["X"].ndim) if axes else None


def _in_order(c: Context) -> bool:
    return bool(c.attr("is_sorted", False) or _axis(c) is not None)


def _many(c: Context) -> int:
    """The number of different elements."""
    axis = _axis(c)
    x = c["X"]
    return int(np.unique(x if axis is not None else x.reshape(-1), axis=axis).shape[axis or 0])


def _infer(c: Context) -> None:
    x, axis = c["X"], _axis(c)
    n = _many(c) if c.runtime else -1
    number = dtypes.np_dtype(c.attr("dtype", 3))
    c.set("Out", (n,) if axis is None else (*x.shape[:axis], n, *x.shape[axis + 1 :]), x.dtype)
    c.set("Index", (x.size if axis is None else x.shape[axis],), number)
    for slot in ("Indices", "Counts", "Count"):
        c.set(slot, (n,), number)


@op(
    "unique",
    inputs={"X": "any shape"},
    outputs={
        "Out": "[n]: the different elements",
        "Index": "which of them each element of X is",
        "Indices?": "[n]: where each comes first",
        "Counts?": "[n]: how often each comes",
    },
    attrs={
        "dtype": Attr("dtype", "int64", "int32 or int64: dtype of the numbers"),
        "is_sorted": Attr("bool", False, "rising; else in the order in which they come first"),
        "axis": Attr("ints", [], "a dimension along which parts are compared and put in order; none for elements"),
        "return_index": Attr("bool", False, "whether Indices is computed"),
        "return_inverse": Attr("bool", False, "whether Index is computed"),
        "return_counts": Attr("bool", False, "whether Counts is computed"),
    },
    infer=_infer,
    guard=_many,
    data_shape=True,
    host_only="the size of its output depends on the values",
)
def unique(b: Binder) -> None:
    """Out = the different elements of X, and X = Out[Index]; every output that has a variable is written.

    Example:
        >>> from fluidnb.testing import run_op
        >>> found = run_op("unique", {"X": np.array([3, 1, 3])}, outputs=["Out", "Index"])
        >>> found["Out"], found["Index"]
        (array([3, 1]), array([0, 1, 0]))

    Source: Paddle's unique_op.
    """
    b(write_different, b["X"], _axis(b), _in_order(b), b["Out"], b["Indices"], b["Index"], b["Counts"])


@op(
    "unique_with_counts",
    inputs={"X: any[n]": ""},
    outputs={
        "Out": "the different elements, in the order in which they come first",
        "Index": "[n]: which of them each element of X is",
        "Count": "how often each comes",
    },
    attrs={"dtype": Attr("dtype", doc="int32 or int64: dtype of the numbers")},
    infer=_infer,
    guard=_many,
    data_shape=True,
    host_only="the size of its output depends on the values",
)
def unique_with_counts(b: Binder) -> None:
    """Out = the different elements of X, X = Out[Index], Count[i] = how often Out[i] comes.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("unique_with_counts", {"X": np.array([3, 1, 3])}, {"dtype": "int64"})["Count"]
        array([2, 1])

    Source: Paddle's unique_with_counts_op.
    """
    b(write_different, b["X"], None, False, b["Out"], None, b["Index"], b["Count"])
