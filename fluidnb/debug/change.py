"""Edits of a paused program, a tensor or the attributes of an operator; stepping back undoes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from fluidnb.debug.stop import Stop, StopKind
from fluidnb.errors import NotFound, OpTypeError, OpValueError, near
from fluidnb.op import check_desc, get_op
from fluidnb.proto.desc import OpDesc
from fluidnb.runtime.compile.lowering import LoweredProgram
from fluidnb.runtime.interpreter.interpreter import Interpreter, Undo
from fluidnb.runtime.scope import Scope
from fluidnb.values.copies import put
from fluidnb.values.device_context import copy_of
from fluidnb.values.tensor import LoDTensor


class Change(Protocol):
    """An edit, recorded as a separate step."""

    def apply(self, machine: Interpreter) -> Undo:
        """Apply the edit; raises a FluidError if that is not possible."""

    def undo(self, machine: Interpreter, undo: Undo) -> None:
        """Undo `apply`."""

    def restore_program(self, machine: Interpreter) -> None:
        """Undo what the edit changed in the program itself; the run begins again."""

    @property
    def stop(self) -> Stop:
        """The stop of a session after the edit."""


class SetTensor:
    """Sets a variable.

    Args:
        name: the variable.
        value: a number, which fills the tensor, or an array of the same shape.
        frame: the block in whose scope it is looked up, outermost first; default the innermost.

    Raises:
        OpTypeError: the values cannot have the variable's dtype.
    """

    def __init__(self, name: str, value: Any, frame: int = -1) -> None:
        self.name, self._frame = name, frame
        self._value = np.array(value)

    @property
    def stop(self) -> Stop:
        """See `Change`."""
        return Stop(StopKind.EDIT, names=(self.name,))

    def apply(self, machine: Interpreter) -> Undo:
        """See `Change`."""
        variable = machine.stack[self._frame].scope.find_var(self.name)
        tensor = None if variable is None else variable.value
        if variable is None or type(tensor) is not LoDTensor or tensor.array is None:
            raise NotFound(
                f'"{self.name}" has no tensor here.', expected="a tensor that has a value", received=_kind(tensor),
                hint=near(self.name, names_of(machine)) or "step until something has written it.",
            )  # fmt: skip
        array = tensor.array
        if self._value.dtype.kind not in "biuf" or (self._value.dtype.kind == "f" and array.dtype.kind in "iub"):
            raise OpTypeError(
                f'"{self.name}" cannot hold these values.', expected=str(array.dtype), received=str(self._value.dtype),
                hint=f'value.astype("{array.dtype}") converts them.',
            )  # fmt: skip
        try:
            new = np.broadcast_to(self._value, array.shape)
        except ValueError:
            raise OpValueError(
                f'"{self.name}" has another shape.', slots=[("", self.name, str(array.dtype), array.shape)],
                expected=f"a shape that broadcasts to {list(array.shape)}", received=f"{list(self._value.shape)}",
            ) from None  # fmt: skip
        undo = Undo(machine.stack, [], [(array, copy_of(array))], [])
        put(array, np.asarray(new, array.dtype))
        return undo

    def undo(self, machine: Interpreter, undo: Undo) -> None:
        """See `Change`."""
        undo.take_back()

    def restore_program(self, machine: Interpreter) -> None:
        """See `Change`: nothing to do, the run's checkpoint restores tensors."""


class SetAttrs:
    """Sets attributes of an operator, from its next execution on.

    Args:
        op: the operator.
        attrs: name -> value.
    """

    def __init__(self, op: OpDesc, attrs: Mapping[str, Any]) -> None:
        self._op, self._attrs = op, dict(attrs)
        self._old: dict[str, Any] = {}
        self._plan: LoweredProgram | None = None

    @property
    def stop(self) -> Stop:
        """See `Change`."""
        attrs = tuple((name, str(value)) for name, value in self._attrs.items())
        return Stop(StopKind.EDIT, op=self._op.optype, attrs=attrs)

    def apply(self, machine: Interpreter) -> Undo:
        """See `Change`."""
        definition = get_op(self._op.optype)
        for name in self._attrs:
            if name not in definition.attrs:
                raise NotFound(
                    f"{definition.type} has no attribute {name}.", expected=", ".join(definition.attrs),
                    received=name, hint=near(name, definition.attrs),
                )  # fmt: skip
        self._old = {name: self._op.attrs[name] for name in self._attrs if self._op.has_attr(name)}
        undo, plan = Undo(machine.stack, [], [], []), machine.plan
        try:
            for name, value in self._attrs.items():
                self._op.set_attr(name, value, definition.attrs[name].number)
            check_desc(definition, self._op)
            machine.plan = LoweredProgram(plan.desc, plan.feeds, plan.fetches, plan.place, plan.seed, plan.given)
        except BaseException:
            self._restore()
            raise
        self._plan = plan
        machine.stack = tuple(replace(f, block=machine.plan.blocks[f.block.index]) for f in machine.stack)
        for frame in machine.stack:
            frame.scope.block = frame.block
        return undo

    def undo(self, machine: Interpreter, undo: Undo) -> None:
        """See `Change`."""
        self.restore_program(machine)
        undo.take_back()
        machine.stack = undo.stack
        for frame in machine.stack:
            frame.scope.block = frame.block

    def restore_program(self, machine: Interpreter) -> None:
        """See `Change`."""
        assert self._plan is not None
        self._restore()
        machine.plan = self._plan

    def _restore(self) -> None:
        for name in self._attrs:
            if name in self._old:
                self._op.set_attr(name, self._old[name], self._op.attr_type(name))
            elif self._op.has_attr(name):
                self._op.remove_attr(name)


def names_of(machine: Interpreter) -> list[str]:
    """The names of all visible variables, innermost scope first."""
    names: dict[str, None] = {}
    scope: Scope | None = machine.stack[-1].scope
    while scope is not None:
        names.update(dict.fromkeys(scope.vars))
        scope = scope.parent
    return list(names)


def _kind(value: Any) -> str:
    return "nothing" if value is None else type(value).__name__
