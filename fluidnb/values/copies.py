"""Copies between kinds of places."""

from collections.abc import Callable
from typing import Any

import numpy as np

from fluidnb.errors import EnforceNotMet

Copy = Callable[[Any, Any], None]
_copies: dict[tuple[str, str], Copy] = {}


def register_copy(source: str, target: str, copy: Copy) -> None:
    """Registers the copy between two kinds of place: the last of the three steps of adding a device.

    Args:
        copy: ``copy(src, dst)`` with arrays of the two places, same shape and dtype.

    Example:
        >>> register_copy("doctest", "cpu", lambda src, dst: None)
    """
    _copies[source, target] = copy


def copy_between(source: str, target: str) -> Copy:
    """The copy from one kind of place to another."""
    registered = _copies.get((source, target))
    if registered is None and source == target:
        return copy
    if registered is None:
        raise EnforceNotMet(
            f"No transform is applied, please check! Nothing is known that takes data from {source} to {target}.",
            expected=f"a copy registered for {source} to {target}", received="none",
            hint="register one with fluidnb.op.register_copy.",
        )  # fmt: skip
    return registered


def copy(src: Any, dst: Any) -> None:
    """Copies on the CPU, between dtypes too."""
    np.copyto(dst, src, casting="unsafe")


for _here, _there in (("cpu", "cuda_pinned"), ("cuda_pinned", "cpu")):  # both are host memory
    register_copy(_here, _there, copy)


def on_host(array: Any) -> Any:
    """The array as an ndarray, itself where it is one; a device finishes submitted work first."""
    return array if isinstance(array, np.ndarray) else array.get()


def is_on_device(array: Any) -> bool:
    """Whether an array is in a device's memory, which numpy must not touch."""
    return not isinstance(array, np.ndarray) and hasattr(getattr(array, "data", None), "mem")


def put(target: Any, source: Any) -> None:
    """Copies between arrays of one shape and dtype, each of the host or of a device."""
    if isinstance(target, np.ndarray):
        np.copyto(target, on_host(source))
    else:
        copy_between("cpu" if isinstance(source, np.ndarray) else "cuda", "cuda")(source, target)
