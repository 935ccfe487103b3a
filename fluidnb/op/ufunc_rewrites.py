"""Rewrites of numpy ufunc calls to faster ones with the same results, and constants as rows for them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fluidnb.op.scalar_fast_path import assign, on_one

Array = Any
#: A constant as a run: numpy's maximum and minimum are three times as quick on two runs as on a run and one element.
#: A row gets no longer than this by including another axis, and is not built where one axis is longer than LONG.
ENOUGH, LONG, SHORT = 4096, 65536, 32
#: Rows that are cached; shapes that change in every run must not fill the memory.
MOST = 512
_rows: dict[tuple[Any, ...], Array] = {}


def ufunc_calls(
    ufunc: np.ufunc, args: tuple[Any, ...], kw: dict[str, Any], same: Sequence[Array], tmp: Callable[..., Array] | None
) -> list[tuple[Any, tuple[Any, ...], dict[str, Any]]]:
    """The fastest calls equal to one call of a ufunc.

    Args:
        tmp: allocates a workspace of a shape and dtype on the host; None for device arrays.
    """
    extreme = ufunc is np.maximum or ufunc is np.minimum
    if "out" in kw and not extreme:
        args += (kw.pop("out"),)
    out = kw.get("out", args[-1])
    if out.size > 1 and ufunc.signature is None:  # (1, 1) operands cost three times as much as 0-d ones
        args = tuple([a.reshape(()) if a.size == 1 and a.ndim else a for a in args])
        if extreme:
            args = tuple([a if a.ndim or a.flags.writeable else scalar_row(a, out) for a in args])
    elif out.size == 1 and tmp is not None:
        quick = None if kw else on_one(ufunc, args)
        if quick is not None:
            return [(*quick, {})]
        if any(out is array for array in same):  # numpy is slow where one element goes in and out
            result = tmp(out.shape, out.dtype)
            first = (ufunc, args, {**kw, "out": result}) if kw else (ufunc, (*args[:-1], result), {})
            return [first, (*assign(out, result), {})]
    return [(ufunc, args, kw)]


def scalar_row(constant: Array, out: Array) -> Array:
    """A constant as an array that is as long as a run of another in memory, and broadcasts against it.

    Returns:
        A read-only array of the rank of ``out``, cached; the constant itself where a run is short or long.
    """
    axes = sorted(range(out.ndim), key=lambda i: -out.strides[i])
    shape, length = [1] * out.ndim, 1
    for i in reversed(axes):
        if length > 1 and length * out.shape[i] > ENOUGH:
            break
        shape[i] = out.shape[i]
        length *= out.shape[i]
    if not SHORT <= length <= LONG:
        return constant
    key = (constant.item(), constant.dtype, tuple(shape), tuple(axes))
    row = _rows.get(key)
    if row is None:
        inverse = tuple(axes.index(i) for i in range(out.ndim))
        row = np.full([shape[i] for i in axes], constant[()], constant.dtype).transpose(inverse)
        row.flags.writeable = False
        if len(_rows) >= MOST:
            _rows.clear()
        _rows[key] = row
    return row
