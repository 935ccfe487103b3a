"""Numbers of the host that come to a device while a program runs."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidnb import memory
from fluidnb.op import Array
from fluidnb.values import CUDAPlace, DeviceContext


def upload(numbers: Array, out: Array) -> None:
    """Copy numbers of the host to an array of any place."""
    if isinstance(out, np.ndarray):
        np.copyto(out, numbers)
    else:
        out.set(numbers)


def room_beside(array: Array, shape: Sequence[int], dtype: Any) -> Array:
    """New memory where an array is: of the pool from which it comes, where it comes from one."""
    if isinstance(array, np.ndarray) or memory.owner(array) is None:
        return type(array)(tuple(shape), dtype)
    return DeviceContext.get(CUDAPlace(array.data.device_id)).empty(shape, dtype)


def uploaded(numbers: Array, near: Array) -> Array:
    """Numbers of the host in new memory where an array is."""
    out = room_beside(near, numbers.shape, numbers.dtype)
    upload(numbers, out)
    return out
