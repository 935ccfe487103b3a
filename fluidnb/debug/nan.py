"""Finds the first operator that writes NaN or infinity."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fluidnb.debug.breakpoints import Breakpoint
from fluidnb.debug.debugger import Debugger
from fluidnb.debug.session import Session
from fluidnb.debug.snapshot import OpLocation, op_location
from fluidnb.debug.stop import StopKind
from fluidnb.debug.tensor_stats import TensorStats, tensor_stats
from fluidnb.errors import EnforceNotMet
from fluidnb.program import Program
from fluidnb.runtime.compile.lowering import LoweredOp, LoweredProgram
from fluidnb.runtime.scope import Scope
from fluidnb.values.place import Place


@dataclass(frozen=True, slots=True, repr=False)
class Finding:
    """The operator that wrote the first bad number."""

    op: OpLocation
    iterations: tuple[int, ...]  # of the blocks around it, outermost first
    inputs: tuple[TensorStats, ...]  # the tensors that it read
    outputs: tuple[TensorStats, ...]  # the tensors that it wrote
    source: str = ""  # the user's line, as text; empty if unknown
    before: str = ""  # where bad inputs came from, or the message of a check that refused the outputs; else empty

    @property
    def rows(self) -> list[tuple[str, bool]]:
        """Lines of text, and whether each one is about bad numbers."""
        at = f", iteration {' of '.join(map(str, reversed(self.iterations)))}" if self.iterations else ""
        head = f"op {self.op.index} ({self.op.type}) in block {self.op.block}{at}  {self.op.where}".rstrip()
        rows = [(head, False)]
        if self.source:
            rows.append((f"    {self.source}", False))
        rows += [(f"  reads   {numbers.text}", bool(numbers.nan or numbers.inf)) for numbers in self.inputs]
        rows += [(f"  writes  {numbers.text}", bool(numbers.nan or numbers.inf)) for numbers in self.outputs]
        rows += [(f"  {self.before}", not self.outputs)] if self.before else []  # a check refused the outputs
        return rows

    @property
    def text(self) -> str:
        """The operator, its inputs and its outputs, as a few lines."""
        return "\n".join(row for row, _ in self.rows)

    def __repr__(self) -> str:
        return f"<{self.text}>"


def find_nan(
    program: Program | None = None, feed: Mapping[str, Any] | None = None, scope: Scope | None = None,
    limit: float | None = None, place: Place | None = None,
) -> Finding | None:  # fmt: skip
    """Run a program once and find the first operator that writes NaN, infinity, or a number above a limit.

    Parameters are restored afterwards.

    Args:
        program: the program; default the main program.
        scope: where persistable variables live; default the global scope.
        limit: the largest absolute value allowed; None for any finite number.
        place: where to run; default the CPU.

    Returns:
        The operator, or None.
    """
    session = Session(program, {} if feed is None else feed, scope=scope, place=place)
    try:
        return session.do(search_nan, "" if limit is None else str(limit))
    finally:
        session.do(Debugger.restart)
        session.close()


def search_nan(debugger: Debugger, limit: str = "") -> Finding | None:
    """Run to just behind the first operator that writes a bad number; None at the end of the run."""
    lowered, whole = debugger.tape.interpreter.lowered, debugger.tape.at == debugger.tape.runs[-1].first
    snapshot = debugger.run_to(Breakpoint("nan", limit))
    # The user's own breakpoints do not end the search.
    while snapshot.stop.at_breakpoint and snapshot.stop.kind is not StopKind.NAN:
        snapshot = debugger.run_to(Breakpoint("nan", limit))
    if snapshot.error is not None:
        error, op = snapshot.error, debugger.tape.interpreter.here
        if not isinstance(error, EnforceNotMet) or not lowered.check_nan or op is None:
            raise error
        # FLAGS_check_nan_inf refused the outputs of this operator; the debugger is paused before it.
        inputs = _rows(debugger.tape.interpreter.stack[-1].scope, op.reads())
        return _finding(debugger, op, inputs, (), f"{error.summary} {error.received}")
    if snapshot.stop.kind is not StopKind.NAN:
        return None
    frame = debugger.tape.last().stack[-1]
    op = frame.block.ops[frame.pc]
    outputs = _rows(frame.scope, op.writes())
    debugger.tape.back()
    inputs = _rows(frame.scope, op.reads())
    debugger.tape.forward()
    bad = [n.name for n in inputs if n.nan or n.inf]
    return _finding(debugger, op, inputs, outputs, _before(bad, lowered, whole))


def _finding(
    debugger: Debugger, op: LoweredOp, inputs: tuple[TensorStats, ...], outputs: tuple[TensorStats, ...], before: str
) -> Finding:
    where, stack = op.where(), debugger.tape.interpreter.stack
    iterations = tuple(f.control.iteration(f.k) for f in stack if f.control is not None)
    return Finding(op_location(op), iterations, inputs, outputs, "" if where is None else where.source, before)


def _rows(scope: Scope, names: Iterable[str]) -> tuple[TensorStats, ...]:
    rows = ((name, scope.find_var(name)) for name in dict.fromkeys(names))
    return tuple(tensor_stats(name, None if v is None else v.value) for name, v in rows)


def _before(bad: list[str], lowered: LoweredProgram, whole: bool) -> str:
    """The origin of bad inputs; ``whole``: the search began at the start of the run."""
    if not bad:
        return ""
    names = ", ".join(bad)
    if not whole:
        return f"{names} was bad before the search began: who {bad[0]} goes to the operator that wrote it"
    if set(bad) <= set(lowered.feeds):
        return f"{names} was fed with bad numbers"
    return f"{names} was bad before this run: %fluid nan on stops an earlier run where it is written"
