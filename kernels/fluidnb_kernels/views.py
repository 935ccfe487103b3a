"""Views of arrays in another shape, without a hidden copy.

A kernel binds once and its calls run many times, so a reshape that copies would freeze the data of the first run.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Array, Binder


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
