"""Checkpoints: the values of the user's scope that a run changes, from before it."""

from typing import Any

import numpy as np

from fluidnb.runtime.compile.lowering import LoweredProgram
from fluidnb.runtime.scope import Scope
from fluidnb.values.array_stats import stats_of
from fluidnb.values.copies import put
from fluidnb.values.device_context import copy_of
from fluidnb.values.reader import Reader
from fluidnb.values.selected_rows import SelectedRows
from fluidnb.values.tensor import LoDTensor, LoDTensorArray
from fluidnb.values.variable import Variable


class Checkpoint:
    """Copies of the variables of the user's scope that a program writes, and positions of the readers that it reads.

    Parameters that are only read are not copied: a model that is tested costs nothing.
    """

    __slots__ = ("_rows", "_scope", "nbytes")

    def __init__(self, lowered: LoweredProgram, scope: Scope) -> None:
        self._scope = scope
        readers = {name for block in lowered.blocks for op in block.ops for name in op.inputs.get("Reader", ())}
        names = sorted(n for row in lowered.outer.values() for n in row if lowered.writes[n] or n in readers)
        self._rows: list[tuple[str, Variable | None, Any, Any]] = []
        self.nbytes = 0  # of the copies
        for name in dict.fromkeys(names):
            if any(name in block.local for block in lowered.blocks):
                continue
            variable = scope.find_var(name)
            value = None if variable is None else variable.value
            copy, size = _copied(value)
            self.nbytes += size
            self._rows.append((name, variable, value, copy))

    def restore(self) -> None:
        """Restore everything; tensors keep their memory."""
        for name, variable, value, copy in self._rows:
            if variable is None:
                created = self._scope.find_var(name)
                if created is not None:
                    created.value = None
                continue
            variable.value = value
            _restore(value, copy)

    def changed(self) -> list[str]:
        """The names of the variables whose value differs now."""
        names = []
        for name, variable, value, copy in self._rows:
            now = self._scope.find_var(name)
            if now is not variable or (now is not None and now.value is not value) or not _equal(value, copy):
                names.append(name)
        return names


def _copied(value: Any) -> tuple[Any, int]:
    """A copy of a variable's value, and its bytes."""
    if type(value) is LoDTensor:
        if value.array is None:
            return (None, value.lod_), 0
        return (value.array, copy_of(value.array), value.lod_), value.array.nbytes
    if isinstance(value, SelectedRows):
        inner, size = _copied(value.value)
        return (value.rows_.copy(), value.height_, inner), size + value.rows_.nbytes
    if isinstance(value, LoDTensorArray):
        pairs = [(tensor, *_copied(tensor)) for tensor in value]
        return [(tensor, copy) for tensor, copy, _ in pairs], sum(size for _, _, size in pairs)
    if isinstance(value, list):
        return list(value), 0
    if isinstance(value, Reader):
        return list(value.position), 0
    return None, 0


def _restore(value: Any, copy: Any) -> None:
    if type(value) is LoDTensor:
        value.lod_ = copy[-1]
        value.array = copy[0]
        if copy[0] is not None:
            put(copy[0], copy[1])
    elif isinstance(value, SelectedRows):
        value.rows_, value.height_ = copy[0].copy(), copy[1]
        _restore(value.value, copy[2])
    elif isinstance(value, LoDTensorArray):
        value[:] = [tensor for tensor, _ in copy]
        for tensor, inner in copy:
            _restore(tensor, inner)
    elif isinstance(value, list):
        value[:] = copy
    elif isinstance(value, Reader):
        value.position[:] = copy


def _equal(value: Any, copy: Any) -> bool:
    if type(value) is LoDTensor:
        if value.array is not copy[0] or value.lod_ != copy[-1]:
            return False
        return copy[0] is None or stats_of(copy[0]).same(value.array, copy[1])
    if isinstance(value, SelectedRows):
        same = np.array_equal(value.rows_, copy[0]) and value.height_ == copy[1]
        return bool(same) and _equal(value.value, copy[2])
    if isinstance(value, LoDTensorArray):
        return len(value) == len(copy) and all(
            a is b and _equal(b, inner) for a, (b, inner) in zip(value, copy, strict=True)
        )
    if isinstance(value, Reader):
        return bool(value.position == copy)
    return value == copy if isinstance(value, list) else True
