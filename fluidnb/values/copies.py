"""Copies between kinds of places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fluidnb.errors import EnforceNotMet

Copy = Callable[[Any, Any], None]

_copies: dict[tuple[str, str], Copy] = {}


def register_copy(source: str, target: str, copy: Copy) -> None:
    """Say how data goes from one kind of place to another: the last of the three steps of adding a device.

    Args:
        source: kind of the place that holds the data.
        target: kind of the place that wants it.
        copy: ``copy(src, dst)`` with arrays of the two places, same shape and dtype.

    Example:
        >>> register_copy("doctest", "cpu", lambda src, dst: None)

    Source: design guide, sections on several devices.
    """
    _copies[source, target] = copy


def copy_between(source: str, target: str) -> Copy:
    """The copy from one kind of place to another.

    Args:
        source: kind of the place that holds the data.
        target: kind of the place that wants it.

    Returns:
        A function ``copy(src, dst)``.

    Raises:
        EnforceNotMet: no copy is registered; within one kind of place numpy copies.

    Example:
        >>> copy_between("cpu", "cpu").__name__
        'copy'
    """
    found = _copies.get((source, target))
    if found is None and source == target:
        return copy
    if found is None:
        raise EnforceNotMet(
            f"No transform is applied, please check! Nothing is known that takes data from {source} to {target}.",
            expected=f"a copy registered for {source} to {target}", received="none",
            hint="register one with fluidnb.op.register_copy.",
        )  # fmt: skip
    return found


def copy(src: Any, dst: Any) -> None:
    """Copy on the CPU, between dtypes too.

    Example:
        >>> a = np.zeros(2); copy(np.ones(2, "float32"), a); a
        array([1., 1.])
    """
    np.copyto(dst, src, casting="unsafe")


for _here, _there in (("cpu", "cuda_pinned"), ("cuda_pinned", "cpu")):  # both are host memory
    register_copy(_here, _there, copy)


def on_host(array: Any) -> Any:
    """A numpy copy of an array, for the few numbers that determine shapes.

    Args:
        array: an array of any place.

    Returns:
        An ndarray; the array itself where it is one. A device finishes submitted work first.

    Example:
        >>> on_host(np.ones(2))
        array([1., 1.])
    """
    return array if isinstance(array, np.ndarray) else array.get()


def is_on_device(array: Any) -> bool:
    """Whether something is an array in a device's memory, which numpy must not touch.

    Args:
        array: anything.

    Returns:
        True or False.

    Example:
        >>> is_on_device(np.ones(2)), is_on_device([1, 2])
        (False, False)
    """
    return not isinstance(array, np.ndarray) and hasattr(getattr(array, "data", None), "mem")


def put(target: Any, source: Any) -> None:
    """Copy between arrays of one shape and dtype, each of the host or of a device.

    Args:
        target: written.
        source: read.

    Example:
        >>> a = np.zeros(2); put(a, np.ones(2)); a
        array([1., 1.])
    """
    if isinstance(target, np.ndarray):
        np.copyto(target, on_host(source))
    else:
        copy_between("cpu" if isinstance(source, np.ndarray) else "cuda", "cuda")(source, target)
