"""Calls that kernels of many families emit, and views of arrays in another shape, without a hidden copy.

A kernel binds once and its calls run many times, so a reshape that copies would freeze the data of the first run.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from fluidnb.op import Array, Binder, Context
from fluidnb.op.compile_context import CompileContext

#: The dtypes of operators that compute with real numbers.
FLOATS = ("float16", "bfloat16", "float32", "float64")

#: Functions whose result is bool whatever they are given.
TESTS = frozenset({
    np.greater, np.greater_equal, np.less, np.less_equal, np.equal, np.not_equal, np.logical_and, np.logical_or,
    np.logical_not, np.isfinite, np.isnan, np.isinf,
})  # fmt: skip


def store(outs: Iterable[Array | None], values: Iterable[Any]) -> None:
    """Write values to the outputs that have a consumer; the others are None."""
    for out, value in zip(outs, values, strict=True):
        if out is not None:
            out[...] = value


def outside(b: Binder, numbers: Array, count: int) -> Array:
    """Emit which whole numbers are not from 0 to ``count - 1``; without a sign, those below 0 are large."""
    unsigned, strange = numbers.view(f"u{numbers.itemsize}"), b.tmp(numbers.shape, bool)
    largest = min(count - 1, np.iinfo(numbers.dtype).max)
    if largest < 0:
        b(np.greater_equal, unsigned, b.const(0, unsigned.dtype), out=strange)
    else:
        b(np.greater, unsigned, b.const(largest, unsigned.dtype), out=strange)
    return strange


def apply(b: Binder, ufunc: np.ufunc, *operands: Array, dtype: Any = None) -> Array:
    """Emit a function into a workspace, by default of dtype bool for tests, else of the first operand's."""
    shape = np.broadcast_shapes(*(x.shape for x in operands))
    if dtype is None:
        dtype = bool if ufunc in TESTS else operands[0].dtype
    like = next((x for x in operands if x.shape == shape), None)
    out = b.tmp(shape, dtype) if like is None else b.like(like, dtype)
    b(ufunc, *operands, out=out)
    return out


def zeros(b: Binder, out: Array) -> None:
    """Emit ``out = 0``."""
    b(np.copyto, out, b.const(0, out.dtype))


def of_paddle2(c: Context) -> bool:
    """Whether an operator is in a program of version 2.0.0 on, where semantics changed; our own say version 0."""
    block = c.op.desc.block if isinstance(c, Binder) else c.block if isinstance(c, CompileContext) else None
    return block is not None and block.program.pb.version.version >= 2_000_000


def is_view(array: Array, of: Array) -> bool:
    """Whether two arrays are views of one owner's memory; addresses say nothing while binding."""
    return _owner(array) is _owner(of)


def _owner(array: Array) -> Array:
    while hasattr(array.base, "reshape"):  # of any place; what lies below an array of the host may be a plain buffer
        array = array.base
    return array


def reading(b: Binder, x: Array, shape: Any) -> Array:
    """An input in another shape: a view, or a workspace into which it is copied first."""
    view = x.reshape(shape)
    if is_view(view, x):
        return view
    whole = b.tmp(x.shape, x.dtype)
    b(np.copyto, whole, x)
    return whole.reshape(shape)


def writing(b: Binder, out: Array, shape: Any) -> Array:
    """An output in another shape: a view, or a workspace that `written` copies back."""
    view = out.reshape(shape)
    return view if is_view(view, out) else b.tmp(shape, out.dtype)


def written(b: Binder, out: Array, view: Array) -> None:
    """Copy back what `writing` gave, where it was a workspace."""
    if not is_view(view, out):
        b(np.copyto, out, view.reshape(out.shape))
