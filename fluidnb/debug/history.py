"""The steps of a run that read or write a variable: forward, backward and optimizer."""

from __future__ import annotations

from dataclasses import dataclass

from fluidnb.debug.debugger import Debugger
from fluidnb.debug.journal import wrote
from fluidnb.debug.snapshot import OpLocation, op_location
from fluidnb.op import GRAD
from fluidnb.program.constants import role_of
from fluidnb.runtime.interpreter.interpreter import Undo
from fluidnb.values.array_stats import stats_of
from fluidnb.values.tensor import LoDTensor, array_of


@dataclass(frozen=True, slots=True)
class Access:
    """A step that read or wrote a variable."""

    at: int  # the step after it
    op: OpLocation  # the operator
    role: str  # ``forward``, ``backward`` or ``optimizer``
    name: str  # the variable, or a gradient of it
    how: str  # ``reads``, ``writes`` or ``changes`` (both)
    iterations: tuple[int, ...]  # of the blocks around the operator, outermost first
    shape: tuple[int, ...] | None  # of its value after the step; None if it is not a tensor
    norm: float | None  # the L2 norm of its value; None if it is not a tensor of numbers


def accesses(debugger: Debugger, name: str) -> list[Access]:
    """Replay the current run up to here, and list each step that reads or writes a variable or its gradients."""
    rows: list[Access] = []
    tape = debugger.tape

    def visit(undo: Undo) -> None:
        frame = undo.stack[-1]
        left = frame.pc >= len(frame.block.ops)
        if left and len(undo.stack) == 1:
            return
        frame = undo.stack[-2] if left else frame  # what leaves a block may hand values to the block around
        op = frame.block.ops[frame.pc]
        reads, writes = set() if left else set(op.reads()), set(op.writes())
        for touched in sorted(reads | writes):
            if touched != name and touched.partition(GRAD)[0] != name:
                continue
            variable = frame.scope.find_var(touched)
            if variable is None:
                continue
            does = touched in writes and wrote(undo, variable)
            if not does and touched not in reads:
                continue
            how = "changes" if does and touched in reads else "writes" if does else "reads"
            tensor = variable.value.array if type(variable.value) is LoDTensor else None
            array = array_of(variable.value)
            norm = None if array is None or array.dtype.kind not in "fiu" else stats_of(array).norm(array)
            iterations = tuple(f.control.iteration(f.k) for f in undo.stack if f.control is not None)
            shape = None if tensor is None else tuple(tensor.shape)
            rows.append(Access(tape.at, op_location(op), role_of(op.desc), touched, how, iterations, shape, norm))

    tape.replay(visit)
    return rows
