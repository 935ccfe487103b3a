"""Views of arrays in another shape, without a hidden copy.

A kernel binds once and its calls run many times, so a reshape that copies would freeze the data of the first run.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Binder

Array = Any


def is_view(array: Array, of: Array) -> bool:
    """Whether two arrays are views of one owner's memory.

    Addresses say nothing while binding: buffers that have no place yet may all lie at the same one.

    Example:
        >>> a = np.zeros((2, 3)); is_view(a.reshape(6), a), is_view(a.T.reshape(6), a)
        (True, False)
    """
    return _owner(array) is _owner(of)


def _owner(array: Array) -> Array:
    while hasattr(array.base, "reshape"):  # of any place; what lies below an array of the host may be a plain buffer
        array = array.base
    return array


def reading(b: Binder, x: Array, shape: Any) -> Array:
    """An input in another shape: a view, or a workspace into which it is copied first.

    Args:
        shape: sizes with the same product.

    Returns:
        An array of that shape.
    """
    view = x.reshape(shape)
    if is_view(view, x):
        return view
    whole = b.tmp(x.shape, x.dtype)
    b(np.copyto, whole, x)
    return whole.reshape(shape)


def writing(b: Binder, out: Array, shape: Any) -> Array:
    """An output in another shape: a view, or a workspace that `written` copies back.

    Args:
        shape: sizes with the same product.

    Returns:
        An array of that shape.
    """
    view = out.reshape(shape)
    return view if is_view(view, out) else b.tmp(shape, out.dtype)


def written(b: Binder, out: Array, view: Array) -> None:
    """Copy back what `writing` gave, where it was a workspace.

    Args:
        view: what `writing` gave for it.
    """
    if not is_view(view, out):
        b(np.copyto, out, view.reshape(out.shape))
