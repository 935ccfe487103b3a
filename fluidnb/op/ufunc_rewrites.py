"""Rewrites of numpy ufunc calls to faster ones with the same results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fluidnb.op.scalar_fast_path import assign, on_one
from fluidnb.op.scalar_rows import scalar_row

Array = Any


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
