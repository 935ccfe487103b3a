"""Edits of a paused program, a tensor or the attributes of an operator; stepping back undoes them."""

from collections.abc import Mapping
from typing import Any, Protocol

from fluidnb.debug.stop import Stop, StopKind
from fluidnb.errors import FluidError, NotFound, near
from fluidnb.op import check_desc, get_op
from fluidnb.op.compile_context import infer_compile
from fluidnb.proto.desc import OpDesc, ProgramDesc
from fluidnb.runtime.compile.lowering import LoweredOp, LoweredProgram
from fluidnb.runtime.interpreter.interpreter import Interpreter, Undo
from fluidnb.runtime.scope import Scope
from fluidnb.values.copies import put
from fluidnb.values.device_context import copy_of
from fluidnb.values.exact_cast import exact_cast, numbers
from fluidnb.values.tensor import LoDTensor


class Change(Protocol):
    """An edit, recorded as a separate step."""

    stop: Stop  # the stop of a session after the edit

    def apply(self, interpreter: Interpreter) -> Undo:
        """Apply the edit; raises a FluidError if that is not possible."""

    def undo(self, interpreter: Interpreter, undo: Undo) -> None:
        """Undo `apply`."""

    def restore_program(self, interpreter: Interpreter) -> None:
        """Undo what the edit changed in the lowered program; the run begins again."""


class SetTensor:
    """Sets a variable.

    Args:
        value: a number, which fills the tensor, or an array of the same shape.
        frame: the block in whose scope it is looked up, outermost first; default the innermost.
    """

    def __init__(self, name: str, value: Any, frame: int = -1) -> None:
        self.name, self._frame = name, frame
        self._value = numbers(name, value)
        self.stop = Stop(StopKind.EDIT, names=(name,))

    def apply(self, interpreter: Interpreter) -> Undo:
        """Writes the new value."""
        variable = interpreter.stack[self._frame].scope.find_var(self.name)
        tensor = None if variable is None else variable.value
        if variable is None or type(tensor) is not LoDTensor or tensor.array is None:
            raise NotFound(
                f'"{self.name}" has no tensor here.', expected="a tensor that has a value",
                received="nothing" if tensor is None else type(tensor).__name__,
                hint=near(self.name, names_of(interpreter)) or "step until something has written it.",
            )  # fmt: skip
        array = tensor.array
        new = exact_cast(self.name, self._value, array)
        undo = Undo(interpreter.stack, [], [(array, copy_of(array))], [])
        put(array, new)
        return undo

    def undo(self, interpreter: Interpreter, undo: Undo) -> None:
        """Restores the value that was replaced."""
        undo.restore()

    def restore_program(self, interpreter: Interpreter) -> None:
        """Nothing: the run's checkpoint restores tensors."""


class SetAttrs:
    """Sets attributes of an operator for the rest of the run, on a copy: the program itself stays as it is."""

    def __init__(self, op: LoweredOp, attrs: Mapping[str, Any]) -> None:
        self._op, self._attrs = op, dict(attrs)
        self._lowered: LoweredProgram | None = None
        self.stop = Stop(StopKind.EDIT, op=op.desc.optype, attrs=tuple((name, str(v)) for name, v in attrs.items()))

    def apply(self, interpreter: Interpreter) -> Undo:
        """Sets the attributes, after the checks that the operator had while the program was built."""
        undo, lowered = Undo(interpreter.stack, [], [], []), interpreter.lowered
        changed = {**lowered.changed, (self._op.block, self._op.index): self._changed()}
        interpreter.lowered = lowered.again(lowered.seed, changed)
        self._lowered = lowered
        blocks = interpreter.lowered.blocks
        interpreter.stack = tuple(f._replace(block=blocks[f.block.index]) for f in interpreter.stack)
        for frame in interpreter.stack:
            frame.scope.block = frame.block
        return undo

    def undo(self, interpreter: Interpreter, undo: Undo) -> None:
        """Restores the attributes that were replaced."""
        self.restore_program(interpreter)
        undo.restore()
        interpreter.stack = undo.stack
        for frame in interpreter.stack:
            frame.scope.block = frame.block

    def restore_program(self, interpreter: Interpreter) -> None:
        """Restores the lowered program that ran before the edit."""
        assert self._lowered is not None
        interpreter.lowered = self._lowered

    def _changed(self) -> OpDesc:
        """A copy of the operator with the new attributes, checked with the shapes of the program."""
        desc, definition = self._op.desc, get_op(self._op.desc.optype)
        for name in self._attrs:
            if name not in definition.attrs:
                raise NotFound(
                    f"{definition.type} has no attribute {name}.", op=self._op.text(),
                    expected=", ".join(definition.attrs) or "an operator with attributes", received=name,
                    hint=near(name, definition.attrs),
                )  # fmt: skip
        changed, block = desc.clone(), desc.block
        assert block is not None, "an operator of a program is in a block"
        try:
            for name, value in self._attrs.items():
                changed.set_attr(name, value, definition.attrs[name].number)
            check_desc(definition, changed)
            infer_compile(definition, changed, ProgramDesc(block.program).blocks[block.idx])
        except FluidError as error:
            error.op, error.where = self._op.text(), None  # the user's line has other attributes
            raise
        changed.block, changed.view = block, desc.view  # after the edits, which would count as edits of the program
        return changed


def names_of(interpreter: Interpreter) -> list[str]:
    """The names of all visible variables, innermost scope first."""
    names: dict[str, None] = {}
    scope: Scope | None = interpreter.stack[-1].scope
    while scope is not None:
        names.update(dict.fromkeys(scope.vars))
        scope = scope.parent
    return list(names)
