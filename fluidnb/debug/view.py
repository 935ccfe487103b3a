"""The variables of a paused program as a user sees them: numpy arrays, looked up from a scope outwards."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fluidnb.debug.expressions import code_of
from fluidnb.errors import NotFound, near
from fluidnb.program import Variable
from fluidnb.runtime.scope import Scope
from fluidnb.values.copies import is_on_device
from fluidnb.values.device_array import DeviceArray
from fluidnb.values.selected_rows import SelectedRows
from fluidnb.values.tensor import LoDTensor, LoDTensorArray


class NoValue(NotFound):
    """A variable without a value."""

    def __init__(self, name: str, received: str, similar: str, otherwise: str) -> None:
        expected = "a variable that has a value" if received == name else None
        super().__init__(
            f'"{name}" has no value here.', expected=expected, received=received, hint=similar or otherwise
        )
        self.similar = similar


class View(Mapping[str, Any]):
    """The variables visible from a scope, by name, as read-only arrays."""

    __slots__ = ("_around", "_scope")

    def __init__(self, scope: Scope, around: Mapping[str, Any] | None = None) -> None:
        self._scope, self._around = scope, {} if around is None else around

    def __getitem__(self, name: str) -> Any:
        variable = self._scope.find_var(name)
        value = None if variable is None else variable.value
        if not has_value(value):
            raise NoValue(name, name, near(name, list(self)), "step until something has written it.")
        return as_numpy(value)

    def __contains__(self, name: object) -> bool:
        variable = self._scope.find_var(name) if isinstance(name, str) else None
        return variable is not None and has_value(variable.value)

    def __iter__(self) -> Iterator[str]:
        seen: dict[str, None] = {}
        scope: Scope | None = self._scope
        while scope is not None:
            seen.update((name, None) for name, v in scope.vars.items() if has_value(v.value))
            scope = scope.parent
        return iter(seen)

    def __len__(self) -> int:
        return len(list(iter(self)))

    def among(self, around: Mapping[str, Any]) -> View:
        """The same variables, for expressions that use other names too."""
        return View(self._scope, around)

    def evaluate(self, text: str) -> Any:
        """Evaluate a Python expression; ``v['fc_0.w_0']`` is a variable of any name, ``np`` is numpy."""
        try:
            known = {"np": np, "v": self, **vars(builtins)}
            return eval(code_of(text, "<watch>"), known, _Names(self, self._around))
        except NameError as error:
            name = error.name or text
            otherwise = "names lists the variables; v['fc_0.w_0'] is for names with a dot."
            raise NoValue(name, text, near(name, list(self)), otherwise) from None


class _Names(dict[str, Any]):
    """The local names of an expression: variables of the program."""

    def __init__(self, view: View, around: Mapping[str, Any]) -> None:
        super().__init__()
        self._view, self._around = view, around

    def __missing__(self, name: str) -> Any:
        if name in self._view:
            return self._view[name]
        value = self._around[name]
        if not isinstance(value, Variable):
            return value
        if value.name not in self._view:  # a symbolic variable means its value, and it has none
            raise KeyError(name)
        return self._view[value.name]


def has_value(value: Any) -> bool:
    """Whether a runtime variable's value is set."""
    return value is not None and not (type(value) is LoDTensor and value.array is None)


def as_numpy(value: Any) -> Any:
    """A variable's value for reading: read-only arrays; of a device a `DeviceArray`, which copies what is read."""
    if type(value) is LoDTensor:
        if is_on_device(value.array):
            return DeviceArray(value.array)
        array = np.asarray(value).view()
        array.flags.writeable = False
        return array
    if isinstance(value, LoDTensorArray):
        return [as_numpy(tensor) if has_value(tensor) else None for tensor in value]
    return value


def copied(value: Any) -> Any:
    """A copy of a variable's value: an ndarray, a LoDTensor where there is LoD, a list, or the value."""
    if type(value) is LoDTensor:
        return value._copy() if value.lod_ else np.array(np.asarray(value), order="C")
    if isinstance(value, LoDTensorArray):
        return [copied(tensor) if has_value(tensor) else None for tensor in value]
    if isinstance(value, SelectedRows):
        return SelectedRows(value.rows_, value.height_, value.value._copy())
    return value
