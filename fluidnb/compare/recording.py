"""The values of one run: what each operator wrote, in order, inside loops and branches too."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fluidnb.op import Control
from fluidnb.program import Program
from fluidnb.proto.desc import OpDesc
from fluidnb.runtime.compile.lowering import LoweredOp
from fluidnb.runtime.executor import Executor
from fluidnb.runtime.interpreter.interpreter import Interpreter
from fluidnb.runtime.scope import Scope
from fluidnb.utils.source_location import SourceLocation
from fluidnb.values import LoDTensor

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Write:
    """One operator of a run, and what it wrote.

    Args:
        op: its description; None for values that come without a program.
        block: index of its block.
        index: its place in the block.
        iterations: the iterations of the loops around it, outermost first.
        values: variable -> value.
        where: the user's line that made it, where known.
    """

    op: OpDesc | None
    block: int
    index: int
    iterations: tuple[int, ...]
    values: dict[str, Array]
    where: SourceLocation | None = None


@dataclass
class Recording:
    """The values of one run.

    Args:
        title: what was run, for texts.
        program: the program; None for values that come without one.
        feeds: variable -> value.
        fetches: the results, by name.
        parameters: variable -> value.
        writes: the operators in the order in which they ran.
    """

    title: str
    program: Program | None
    feeds: dict[str, Array]
    fetches: list[str]
    parameters: dict[str, Array] = field(default_factory=dict)
    writes: list[Write] = field(default_factory=list)

    def value(self, name: str) -> Array | None:
        """The last value of a variable; None where there is none."""
        for write in reversed(self.writes):
            if name in write.values:
                return write.values[name]
        return self.feeds.get(name, self.parameters.get(name))


class Recorder(Interpreter):
    """An interpreter that keeps a copy of what each operator writes."""

    writes: list[Write]

    def run_op(self, op: LoweredOp, scope: Scope) -> Control | None:
        """Runs an operator and copies what it wrote."""
        control = super().run_op(op, scope)
        if control is None:
            self.note(op, scope)
        return control

    def enter_block(self, control: Control, k: int) -> None:
        """Begins an iteration, or ends the operator that runs the block and copies what it wrote."""
        outer = self.stack[-1]
        super().enter_block(control, k)
        if self.stack[-1].block is outer.block and self.stack[-1].pc == outer.pc + 1:
            self.note(outer.block.ops[outer.pc], outer.scope)

    def note(self, op: LoweredOp, scope: Scope) -> None:
        """Copies what an operator wrote."""
        iterations = tuple(k for _, k in self._around())[::-1]
        self.writes.append(Write(op.desc, op.block, op.index, iterations, tensors(op.writes(), scope), op.where()))


def record(
    title: str, program: Program, feeds: Mapping[str, Array], fetches: list[str], scope: Scope, place: Any
) -> Recording:
    """Runs a program operator by operator and keeps every value.

    Args:
        title: what it is, for texts.
        program: the program.
        feeds: variable -> value.
        fetches: the results, by name.
        scope: the parameters.
        place: where it runs.
    """
    run = Executor(place).interpret(program, dict(feeds), fetches, scope, Recorder)
    assert isinstance(run, Recorder)
    run.writes = []
    run.run(journal=False)
    names = [var.name for var in program.list_vars() if var.persistable]
    return Recording(title, program, dict(feeds), fetches, tensors(names, scope), run.writes)


def tensors(names: Iterable[str], scope: Scope) -> dict[str, Array]:
    """Copies of the variables that have a tensor."""
    found = {}
    for name in names:
        variable = scope.find_var(name)
        value = None if variable is None else variable.value
        if isinstance(value, LoDTensor) and value.array is not None:
            found[name] = np.array(value)
    return found
