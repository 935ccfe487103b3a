"""The values that a test gives an operator: arrays, arrays with lengths, lists of them, tensor arrays, rank tables."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fluidnb.values import CPUPlace, LoDTensor, LoDTensorArray, SelectedRows
from fluidnb.values.rank_table import LoDRankTable

#: Values that are taken as they are.
Held = (LoDTensor, LoDTensorArray, SelectedRows, LoDRankTable)


def value_of(value: Any) -> Any:
    """One value as a scope holds it.

    Args:
        value: an array, nested list or number; ``(array, lengths)`` with the lengths of its sequences, a list per
            level; or a LoDTensor, LoDTensorArray, SelectedRows or LoDRankTable.
    """
    if isinstance(value, Held):
        return value
    array, lengths = value if isinstance(value, tuple) else (value, [])
    tensor = LoDTensor()
    tensor.set(np.asarray(array), CPUPlace())
    if lengths:
        tensor.set_recursive_sequence_lengths(lengths)
    return tensor


def named(slots: Mapping[str, Any]) -> dict[str, list[tuple[str, Any]]]:
    """Each slot's values (one, a list, or pairs with names) with names for their variables, as a scope holds them."""
    out: dict[str, list[tuple[str, Any]]] = {}
    for slot, content in slots.items():
        pairs = [(slot, content)]
        if _is_several(content):
            pairs = [v if _has_name(v) else (f"{slot}_{i}", v) for i, v in enumerate(content)]
        out[slot] = [(name, value_of(value)) for name, value in pairs]
    return out


def _is_several(value: Any) -> bool:
    if not isinstance(value, list) or isinstance(value, Held) or not value:
        return False
    return isinstance(value[0], (np.ndarray, tuple, *Held))


def _has_name(value: Any) -> bool:
    return isinstance(value, tuple) and isinstance(value[0], str)


def plain(value: Any) -> Any:
    """The value compared in a test: the array of a tensor without sequences, else the value itself."""
    return value.array if isinstance(value, LoDTensor) and not value.lod_ else value
