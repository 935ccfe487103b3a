"""Moves values of variables to the place where they are needed."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidnb.values.place import Place
from fluidnb.values.selected_rows import SelectedRows
from fluidnb.values.tensor import LoDTensor, LoDTensorArray


def move_value(value: Any, place: Place) -> None:
    """Moves a tensor, the values of rows or the tensors of an array to a place."""
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
