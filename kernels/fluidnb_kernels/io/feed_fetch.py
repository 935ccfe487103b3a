"""feed and fetch: what a saved program has at its ends. The executor does their work; these are for other executors."""

from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, op
from fluidnb.values import LoDTensor, LoDTensorArray


def _fed(b: Binder) -> Any:
    """Shape, dtype and LoD of what is fed."""
    tensor = b["X"].read(b.attr("col"))
    return tensor.array.shape, tensor.array.dtype, tensor.lod_


def take(held: LoDTensorArray, column: int, out: Array) -> None:
    """Copy a fed value."""
    np.copyto(out, np.asarray(held[column]))


@op(
    "feed",
    inputs={"X: list": "the fed values"},
    outputs={"Out": "one of them"},
    attrs={"col": Attr("int", doc="which", ge=0)},
    guard=_fed,
    host_only="copies values between the caller and the scope",
)
def feed(b: Binder) -> None:
    """Out = X[col], with its LoD.

    Example:
        >>> from fluidnb.testing import run_op
        >>> from fluidnb.values import LoDTensorArray
        >>> run_op("feed", {"X": LoDTensorArray([np.array([5.0])])}, {"col": 0})["Out"]
        array([5.])

    Source: Fluid's feed_op.
    """
    b(take, b["X"], b.attr("col"), b.set("Out", *_fed(b)))


def give(held: LoDTensorArray, column: int, x: Array, lod: Any) -> None:
    """Put a copy of a value into the list of fetched ones."""
    held.write(column, LoDTensor(x.copy(), lod))


@op(
    "fetch",
    inputs={"X": "any tensor"},
    outputs={"Out": "the list of fetched values"},
    attrs={"col": Attr("int", doc="its place in the list", ge=0)},
    side_effect=True,
    host_only="copies values between the caller and the scope",
)
def fetch(b: Binder) -> None:
    """Out[col] = X, with its LoD.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("fetch", {"X": [5.0]}, {"col": 0})["Out"]
        LoDTensorArray([LoDTensor(shape=[1], dtype=float64, place=CPUPlace)])

    Source: Fluid's fetch_op.
    """
    b(give, b.array("Out"), b.attr("col"), b["X"], b.lod("X"))
