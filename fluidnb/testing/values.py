"""The values that a test gives an operator: arrays, arrays with lengths, lists of them, tensor arrays, rank tables."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fluidnb.values import CPUPlace, LoDTensor, LoDTensorArray, SelectedRows
from fluidnb.values.rank_table import LoDRankTable

#: Values that are taken as they are.
Held = (LoDTensor, LoDTensorArray, SelectedRows, LoDRankTable)


def value_of(given: Any) -> Any:
    """One value as a scope holds it.

    Args:
        given: an array, nested list or number; ``(array, lengths)`` with the lengths of its sequences, a list per
            level; or a LoDTensor, LoDTensorArray, SelectedRows or LoDRankTable.
    """
    if isinstance(given, Held):
        return given
    array, lengths = given if isinstance(given, tuple) else (given, [])
    tensor = LoDTensor()
    tensor.set(np.asarray(array), CPUPlace())
    if lengths:
        tensor.set_recursive_sequence_lengths(lengths)
    return tensor


def named(slots: Mapping[str, Any]) -> dict[str, list[tuple[str, Any]]]:
    """Each slot's values with names for their variables.

    Args:
        slots: slot -> a value, a list of values for a slot that takes several, or a list of (name, value).

    Returns:
        slot -> list of (name, value as a scope holds it).
    """
    out: dict[str, list[tuple[str, Any]]] = {}
    for slot, given in slots.items():
        if _is_several(given):
            pairs = [v if _has_name(v) else (f"{slot}_{i}", v) for i, v in enumerate(given)]
        else:
            pairs = [(slot, given)]
        out[slot] = [(name, value_of(value)) for name, value in pairs]
    return out


def _is_several(given: Any) -> bool:
    if not isinstance(given, list) or isinstance(given, Held) or not given:
        return False
    return isinstance(given[0], (np.ndarray, tuple, *Held))


def _has_name(given: Any) -> bool:
    return isinstance(given, tuple) and isinstance(given[0], str)


def plain(value: Any) -> Any:
    """The value compared in a test: the array of a tensor without sequences, else the value itself."""
    return value.array if isinstance(value, LoDTensor) and not value.lod_ else value
