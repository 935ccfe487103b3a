"""arg_max, arg_min and argsort: where the largest and smallest elements are."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op
from fluidnb.values import dtypes
from fluidnb_kernels.rules import one_axis
from fluidnb_kernels.tensor import line_extremes
from fluidnb_kernels.tensor.gather import put_back
from fluidnb_kernels.tensor.sort import sort


def _extreme_infer(c: Context) -> None:
    x, keep = c["X"], c.attr("keepdims")
    number = c.attr("dtype")
    dtype = dtypes.np_dtype(number if number >= 0 else np.int64)  # older programs say -1
    if c.attr("flatten"):
        c.set("Out", (1,) * (x.ndim if keep else 1), dtype)
        return
    axis = one_axis(c, c.attr("axis"), x.ndim)
    shape = (*x.shape[:axis], *((1,) if keep else ()), *x.shape[axis + 1 :])
    c.set("Out", shape or (1,), dtype)


def find(function: Any, x: Array, axis: int | None, out: Array) -> None:
    """Write where a function of an array finds an element along an axis, or in all of it."""
    out[...] = function(x, axis).reshape(out.shape)


def _define(type: str, function: Any, word: str, example: int) -> None:
    @op(
        type,
        inputs={"X": "at least one dimension"},
        outputs={"Out": f"whole numbers: where the {word} element is"},
        attrs={
            "axis": Attr("long", 0, "the dimension along which it is looked for; from the end when negative"),
            "keepdims": Attr("bool", False, "keep that dimension, with size 1"),
            "flatten": Attr("bool", False, "flatten X first"),
            "dtype": Attr("dtype", "int64", "dtype of Out, int32 or int64"),
        },
        infer=_extreme_infer,
        dtype_slot="X",
        cuda=line_extremes.ORDERED,
        doc=f"""Out = where the {word} element along ``axis`` is; the first of equal ones.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("{type}", {{"X": [[1.0, 9.0, 0.0]]}}, {{"axis": 1}})["Out"]
        array([{example}])

    Source: Fluid's {type}_op.
    """,
    )
    def extreme(b: Binder) -> None:
        axis = None if b.attr("flatten") else b.attr("axis")
        if b.on_cuda:
            return line_extremes.find(b, b["X"], axis, b["Out"], function is np.argmax)
        return b(find, function, b["X"], axis, b["Out"])


_define("arg_max", np.argmax, "largest", 1)
_define("arg_min", np.argmin, "smallest", 2)


def _sort_infer(c: Context) -> None:
    x = c["X"]
    one_axis(c, c.attr("axis"), x.ndim)
    c.set("Out", x.shape, x.dtype, c.lod("X"))
    c.set("Indices", x.shape, np.int64, c.lod("X"))


def write_sorted(x: Array, axis: int, descending: bool, out: Array | None, indices: Array | None) -> None:
    """Write sorted elements and where they were, where wanted; equal ones keep their order."""
    if descending:
        back = np.flip(x, axis).argsort(axis, kind="stable")  # the last of equal ones first, then turned around
        at = x.shape[axis] - 1 - np.flip(back, axis)
    else:
        at = x.argsort(axis, kind="stable")
    if out is not None:
        out[...] = np.take_along_axis(x, at, axis)
    if indices is not None:
        indices[...] = at


@op(
    "argsort",
    inputs={"X": "at least one dimension"},
    outputs={"Out": "X sorted", "Indices": "int64: where in X its elements were"},
    attrs={
        "axis": Attr("int", -1, "the dimension along which to sort; from the end when negative"),
        "descending": Attr("bool", False, "the largest first"),
    },
    infer=_sort_infer,
    grad=default_grad("Indices", "X", "Out@GRAD"),
    dtype_slot="X",
    cuda=line_extremes.ORDERED,
)
def argsort(b: Binder) -> None:
    """Out, Indices = X sorted along ``axis``, and where its elements were; both inherit the LoD of X.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("argsort", {"X": [3.0, 1.0, 2.0]})["Indices"]
        array([1, 2, 0])

    Source: Fluid's argsort_op.
    """
    operands = b["X"], b.attr("axis"), b.attr("descending"), b["Out"], b["Indices"]
    if b.on_cuda:
        return sort(b, *operands)
    return b(write_sorted, *operands)


@grad_op("argsort_grad", dtype_slot="X", cuda=True)
def argsort_grad(b: Binder) -> None:
    """dX = dOut back in the order of X; 0 where Indices, of another sort perhaps, leave elements out."""
    put_back(b, b["Out@GRAD"], b["Indices"], b["X@GRAD"], b.attr("axis", -1))
