"""A checkpoint: what a run will change outside its own scope, as it was when the run began."""

from __future__ import annotations

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
    """Copies of the variables of the user's scope that a plan writes, and positions of the readers that it reads.

    Parameters that are only read are not copied: a model that is tested costs nothing.

    Args:
        plan: the plan.
        scope: the user's scope.

    Attributes:
        nbytes: bytes of the copies.

    Example:
        >>> scope = fluid.Scope(); program = fluid.Program()
        >>> block = program.global_block()
        >>> w = block.create_var(name="w", shape=[1], dtype="float32", persistable=True)
        >>> add = block.append_op("increment", inputs={"X": w}, outputs={"Out": w}, attrs={"step": 1.0})
        >>> scope.var("w").get_tensor().set(np.ones(1, "float32"))
        >>> from fluidnb.runtime.compile.lowering import LoweredProgram
        >>> point = Checkpoint(LoweredProgram(program.desc, (), (), fluid.CPUPlace()), scope)
        >>> scope.var("w").get_tensor().set(np.zeros(1, "float32"))
        >>> point.restore(); point.nbytes, np.array(scope.var("w").get_tensor())
        (4, array([1.], dtype=float32))
    """

    __slots__ = ("_names", "_rows", "_scope", "nbytes")

    def __init__(self, plan: LoweredProgram, scope: Scope) -> None:
        self._scope = scope
        taken = {name for block in plan.blocks for op in block.ops for name in op.inputs.get("Reader", ())}
        self._names = sorted(n for row in plan.outer.values() for n in row if plan.writes[n] or n in taken)
        self._names = list(dict.fromkeys(self._names))
        self._rows: list[tuple[str, Variable | None, Any, Any]] = []
        self.nbytes = 0
        for name in self._names:
            if any(name in block.local for block in plan.blocks):
                continue
            variable = scope.find_var(name)
            value = None if variable is None else variable.value
            copy, size = _copied(value)
            self.nbytes += size
            self._rows.append((name, variable, value, copy))

    def restore(self) -> None:
        """Put everything back as it was; tensors keep their memory."""
        for name, variable, value, copy in self._rows:
            if variable is None:
                found = self._scope.find_var(name)
                if found is not None:
                    found.value = None
                continue
            variable.value = value
            _put_back(value, copy)

    def changed(self) -> list[str]:
        """The names of the variables that hold something else now.

        Returns:
            Names, sorted.
        """
        found = []
        for name, variable, value, copy in self._rows:
            now = self._scope.find_var(name)
            if now is not variable or (now is not None and now.value is not value) or not _equal(value, copy):
                found.append(name)
        return found


def _copied(value: Any) -> tuple[Any, int]:
    """A copy of what a variable holds, and its bytes."""
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


def _put_back(value: Any, copy: Any) -> None:
    if type(value) is LoDTensor:
        value.lod_ = copy[-1]
        value.array = copy[0]
        if copy[0] is not None:
            put(copy[0], copy[1])
    elif isinstance(value, SelectedRows):
        value.rows_, value.height_ = copy[0].copy(), copy[1]
        _put_back(value.value, copy[2])
    elif isinstance(value, LoDTensorArray):
        value[:] = [tensor for tensor, _ in copy]
        for tensor, inner in copy:
            _put_back(tensor, inner)
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
