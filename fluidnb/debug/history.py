"""The steps of a run that read or write a variable: forward, backward and optimizer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fluidnb.debug.debugger import Debugger
from fluidnb.debug.snapshot import OpLocation, op_location
from fluidnb.debug.writes import wrote
from fluidnb.op import GRAD
from fluidnb.program.op_roles import role_of
from fluidnb.runtime.interpreter.interpreter import Undo
from fluidnb.values.array_stats import stats_of
from fluidnb.values.tensor import LoDTensor, array_of


@dataclass(frozen=True, slots=True)
class Access:
    """A step that read or wrote a variable.

    Args:
        at: the step after it.
        op: the operator.
        role: ``forward``, ``backward`` or ``optimizer``.
        name: the variable, or a gradient of it.
        how: ``reads``, ``writes`` or ``changes`` (both).
        iterations: of the blocks around the operator, outermost first.
        shape: of its value after the step; None if it is not a tensor.
        norm: the L2 norm of its value; None if it is not a tensor of numbers.
    """

    at: int
    op: OpLocation
    role: str
    name: str
    how: str
    iterations: tuple[int, ...]
    shape: tuple[int, ...] | None
    norm: float | None


def accesses(debugger: Debugger, name: str) -> list[Access]:
    """Replay the current run up to here, and list each step that reads or writes a variable or its gradients."""
    found: list[Access] = []
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
            array = variable.value.array if type(variable.value) is LoDTensor else None
            found.append(
                Access(
                    tape.at, op_location(op), role_of(op.desc), touched, how,
                    tuple(f.control.iteration(f.k) for f in undo.stack if f.control is not None),
                    None if array is None else tuple(array.shape),
                    _norm(array_of(variable.value)),
                )
            )  # fmt: skip

    tape.replay(visit)
    return found


def _norm(array: Any) -> float | None:
    if array is None or array.dtype.kind not in "fiu":
        return None
    return stats_of(array).norm(array)
