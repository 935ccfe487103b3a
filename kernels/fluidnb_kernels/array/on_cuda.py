"""Arrays of tensors on a GPU: launches that are made in the calls of a run, since elements are known only then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fluidnb.values import LoDTensorArray
from fluidnb_kernels.array.elements import within_reach
from fluidnb_kernels.cuda import ctype
from fluidnb_kernels.cuda.grid import elementwise
from fluidnb_kernels.elementwise.on_cuda import CUDA
from fluidnb_kernels.sequence import maps
from fluidnb_kernels.tensor.moves import move

Array = Any


class _Now:
    """Stands for a binder where launches are made at once."""

    def __call__(self, function: Callable[..., None], *args: Any) -> None:
        function(*args)


_NOW: Any = _Now()


def add_to(total: Array, x: Array) -> None:
    """Add an array to another one, of the host or of a device.

    Args:
        total: changed.
        x: of its shape and dtype.

    Example:
        >>> total = np.ones(2); add_to(total, np.ones(2)); total
        array([2., 2.])
    """
    if isinstance(total, np.ndarray):
        np.add(total, x, total)
    else:
        elementwise(_NOW, CUDA, f"binary<f::add, {ctype(total.dtype)}", total, within_reach(x, total), total)


def put_rows(array: LoDTensorArray, step: int, rows: Array, out: Array) -> None:
    """Copy an element's rows to where they belong.

    Args:
        array: the array.
        step: index of the element.
        rows: int64, where each of its rows belongs; where kernels can read them.
        out: changed there.
    """
    maps.place(_NOW, within_reach(array[step].array, out), rows, out)


def put_part(array: LoDTensorArray, index: int, part: Array, out: Array) -> None:
    """Copy an element to a part of a tensor.

    Args:
        array: the array.
        index: which element.
        part: which part, a view of ``lay(out)``.
        out: written there.
    """
    move(_NOW, out, within_reach(array[index].array, out), to=part)
