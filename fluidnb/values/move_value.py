"""Moves values of variables to the place where they are needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidnb.values.place import Place
from fluidnb.values.selected_rows import SelectedRows
from fluidnb.values.tensor import LoDTensor, LoDTensorArray


def bring(value: Any, place: Place) -> None:
    """Move a tensor, the values of rows or the tensors of an array to a place; what is there already stays.

    Args:
        value: what a variable holds; anything else is left alone.
        place: where it is needed. A tensor without value will have it there.

    Example:
        >>> from fluidnb.values import CPUPlace, CUDAPinnedPlace
        >>> rows = SelectedRows([1], 3, LoDTensor(np.ones((1, 2)), (), CUDAPinnedPlace()))
        >>> bring(rows, CPUPlace()); rows.get_tensor()
        LoDTensor(shape=[1, 2], dtype=float64, place=CPUPlace)
    """
    for tensor in _tensors(value):
        if tensor.place is place:
            continue
        if tensor.array is None:
            tensor.place = place
        else:
            tensor.set(np.asarray(tensor), place)


def _tensors(value: Any) -> Sequence[LoDTensor]:
    if isinstance(value, SelectedRows):
        value = value.value
    if isinstance(value, LoDTensorArray):
        return value
    return (value,) if isinstance(value, LoDTensor) else ()
