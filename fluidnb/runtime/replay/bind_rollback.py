"""Rollback of outer variables when binding fails: operators that never ran leave no trace."""

from __future__ import annotations

from typing import Any, NamedTuple

from fluidnb.runtime.compile.lowering import LoweredOp
from fluidnb.runtime.scope import Scope
from fluidnb.values.tensor import LoDTensor
from fluidnb.values.variable import Variable


class _Row(NamedTuple):
    first: int
    name: str
    variable: Variable | None
    value: Any
    array: Any
    lod: Any


class BindRollback:
    """Outer variables before binding, which gives outputs their memory before any call is made."""

    __slots__ = ("_rows", "_scope")

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._rows: list[_Row] = []

    def note(self, op: LoweredOp, first: int) -> None:
        """Record the outer variables that an operator may change, before it is bound."""
        scope = self._scope
        local = scope.block.local
        for name in (*op.reads(), *op.writes()):
            if name not in local:
                variable = scope.find_var(name)
                value = None if variable is None else variable.value
                array, lod = (value.array, value.lod_) if type(value) is LoDTensor else (None, ())
                self._rows.append(_Row(first, name, variable, value, array, lod))

    def restore(self, reached: int) -> None:
        """Restore the variables of operators that were not run, from the call ``reached`` on."""
        for row in reversed(self._rows):
            if row.first < reached:
                continue
            if row.variable is None:
                self._scope.cell(row.name)[1].erase([row.name])
                continue
            row.variable.value = row.value
            if type(row.value) is LoDTensor:
                row.value.array, row.value.lod_ = row.array, row.lod
