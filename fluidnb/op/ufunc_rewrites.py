"""Rewrites of numpy ufunc calls to faster ones with the same results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fluidnb.op.scalar_fast_path import assign, on_one
from fluidnb.op.scalar_rows import lane

Array = Any


def ufunc_calls(
    ufunc: np.ufunc, args: tuple[Any, ...], kw: dict[str, Any], same: Sequence[Array], tmp: Callable[..., Array] | None
) -> list[tuple[Any, tuple[Any, ...], dict[str, Any]]]:
    """The quickest calls that do what one call of a ufunc does.

    Args:
        ufunc: the function.
        args: its operands, and its output when that is not in ``kw``.
        kw: its keyword arguments.
        same: outputs of one element that are operands too.
        tmp: makes a workspace of a shape and dtype in the memory of the host; None where the arrays are a device's.

    Returns:
        Functions with their arguments and keyword arguments.

    Example:
        >>> x = np.zeros(1)
        >>> for function, args, kw in ufunc_calls(np.exp, (x,), {"out": x}, [x], np.empty):
        ...     _ = function(*args, **kw)
        >>> x
        array([1.])
    """
    extreme = ufunc is np.maximum or ufunc is np.minimum
    if "out" in kw and not extreme:
        args += (kw.pop("out"),)
    out = kw.get("out", args[-1])
    if out.size > 1 and ufunc.signature is None:  # (1, 1) operands cost three times as much as 0-d ones
        args = tuple([a.reshape(()) if a.size == 1 and a.ndim else a for a in args])
        if extreme:
            args = tuple([a if a.ndim or a.flags.writeable else lane(a, out) for a in args])
    elif out.size == 1 and tmp is not None:
        quick = None if kw else on_one(ufunc, args)
        if quick is not None:
            return [(*quick, {})]
        if any(out is array for array in same):  # numpy is slow where one element goes in and out
            result = tmp(out.shape, out.dtype)
            first = (ufunc, args, {**kw, "out": result}) if kw else (ufunc, (*args[:-1], result), {})
            return [first, (*assign(out, result), {})]
    return [(ufunc, args, kw)]
