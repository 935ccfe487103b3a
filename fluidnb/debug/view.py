"""The variables of a paused program as a user sees them: numpy arrays, looked up from a scope outwards."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fluidnb.errors import NotFound, near
from fluidnb.expressions import code_of
from fluidnb.program import Variable
from fluidnb.runtime.scope import Scope
from fluidnb.values.copies import is_on_device
from fluidnb.values.device_array import DeviceArray
from fluidnb.values.selected_rows import SelectedRows
from fluidnb.values.tensor import LoDTensor, LoDTensorArray


class NoValue(NotFound):
    """A variable without a value.

    Args:
        name: the variable.
        received: what asked for it: the name, or an expression.
        similar: a hint with similar names; empty if there is none.
        otherwise: the hint where there is none.
    """

    def __init__(self, name: str, received: str, similar: str, otherwise: str) -> None:
        expected = "a variable that has a value" if received == name else None
        super().__init__(
            f'"{name}" has no value here.', expected=expected, received=received, hint=similar or otherwise
        )
        self.similar = similar


class View(Mapping[str, Any]):
    """The variables visible from a scope, by name, as read-only arrays.

    Args:
        scope: the scope.
        around: the user's own names, for expressions; the program's variables come first.

    Example:
        >>> scope = fluid.Scope(); scope.var("x").get_tensor().set(np.ones(3, "float32"))
        >>> view = View(scope)
        >>> view["x"].sum(), list(view), "y" in view
        (np.float32(3.0), ['x'], False)
    """

    __slots__ = ("_around", "_scope")

    def __init__(self, scope: Scope, around: Mapping[str, Any] | None = None) -> None:
        self._scope, self._around = scope, {} if around is None else around

    def __getitem__(self, name: str) -> Any:
        variable = self._scope.find_var(name)
        value = None if variable is None else variable.value
        if value is None or (type(value) is LoDTensor and value.array is None):
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
        """Evaluate a Python expression over the variables; ``np`` is numpy.

        Names that are no Python names are written ``v["fc_0.w_0"]``.

        Args:
            text: the expression, for example ``loss.mean() > 3``.

        Returns:
            Its value.

        Raises:
            NotFound: it uses a name that has no value.
            Exception: whatever else the expression raises.

        Example:
            >>> scope = fluid.Scope(); scope.var("x").get_tensor().set(np.ones(3, "float32"))
            >>> View(scope).evaluate("x.sum() == 3 and v['x'][0] > 0")
            np.True_
        """
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
        found = self._around[name]
        if not isinstance(found, Variable):
            return found
        if found.name not in self._view:  # a symbolic variable means its value, and it has none
            raise KeyError(name)
        return self._view[found.name]


def has_value(value: Any) -> bool:
    """Whether a runtime variable's value is set.

    Example:
        >>> has_value(None), has_value(LoDTensor())
        (False, False)
    """
    return value is not None and not (type(value) is LoDTensor and value.array is None)


def as_numpy(value: Any) -> Any:
    """A variable's value for reading: tensors and arrays of tensors as read-only numpy arrays.

    Args:
        value: a LoDTensor, SelectedRows, LoDTensorArray or anything else.

    Returns:
        An ndarray, a list of them, or the value itself; of a device a `DeviceArray`, which copies only what is read.

    Example:
        >>> as_numpy(LoDTensorArray())
        []
    """
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
    """A copy of a variable's value, which stays as it is while the program runs.

    Args:
        value: a LoDTensor, SelectedRows, LoDTensorArray or anything else.

    Returns:
        An ndarray, a LoDTensor where there is LoD, a list, or the value.

    Example:
        >>> tensor = LoDTensor(); tensor.set(np.ones(2, "float32"))
        >>> kept = copied(tensor); tensor.set(np.zeros(2, "float32")); kept
        array([1., 1.], dtype=float32)
    """
    if type(value) is LoDTensor:
        return value._copy() if value.lod_ else np.array(np.asarray(value), order="C")
    if isinstance(value, LoDTensorArray):
        return [copied(tensor) if has_value(tensor) else None for tensor in value]
    if isinstance(value, SelectedRows):
        return SelectedRows(value.rows_, value.height_, value.value._copy())
    return value
