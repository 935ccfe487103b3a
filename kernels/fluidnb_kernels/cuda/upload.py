"""Numbers of the host that come to a device while a program runs."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any


def upload(numbers: Array, out: Array) -> None:
    """Copy numbers of the host to an array of any place.

    Args:
        numbers: an ndarray.
        out: of its shape and dtype, written.

    Example:
        >>> x = np.zeros(2); upload(np.ones(2), x); x
        array([1., 1.])
    """
    if isinstance(out, np.ndarray):
        np.copyto(out, numbers)
    else:
        out.set(numbers)


def uploaded(numbers: Array, beside: Array) -> Array:
    """Numbers of the host in new memory beside an array.

    Args:
        numbers: an ndarray.
        beside: an array of the place that wants them.

    Returns:
        An array.

    Example:
        >>> uploaded(np.ones(2), np.zeros(0))
        array([1., 1.])
    """
    out = type(beside)(numbers.shape, numbers.dtype)
    upload(numbers, out)
    return out
