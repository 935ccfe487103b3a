"""Finds the first operator that writes NaN or infinity."""

from __future__ import annotations

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
    """The operator that wrote the first bad number.

    Args:
        op: the operator.
        iterations: of the blocks around it, outermost first.
        inputs: the tensors that it read.
        outputs: the tensors that it wrote.
        source: the user's line, as text; empty if unknown.
        before: where bad inputs came from, or the message of a check that refused the outputs; else empty.
    """

    op: OpLocation
    iterations: tuple[int, ...]
    inputs: tuple[TensorStats, ...]
    outputs: tuple[TensorStats, ...]
    source: str = ""
    before: str = ""

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
    program: Program | None = None,
    feed: Mapping[str, Any] | None = None,
    scope: Scope | None = None,
    limit: float | None = None,
    place: Place | None = None,
) -> Finding | None:
    """Run a program once and find the first operator that writes NaN, infinity, or a number above a limit.

    Parameters are restored afterwards.

    Args:
        program: the program; default the main program.
        feed: what to feed.
        scope: where persistable variables live; default the global scope.
        limit: the largest absolute value allowed; None for any finite number.
        place: where to run; default the CPU.

    Returns:
        The operator, or None.

    Raises:
        FluidError: what ``exe.run`` would raise.

    Example:
        >>> x = fluid.layers.data("x", shape=[2])
        >>> y = fluid.layers.log(fluid.layers.relu(x))
        >>> print(find_nan(feed={"x": np.array([[1.0, -1.0]], "float32")}).text)
        op 1 (log) in block 0
          reads   relu_0.tmp_0  float32[1, 2]  0 … 1
          writes  log_0.tmp_0  float32[1, 2]  1 infinite  0
    """
    session = Session(program, feed or {}, scope=scope, place=place)
    try:
        return session.do(search_nan, "" if limit is None else str(limit))
    finally:
        session.do(Debugger.restart)
        session.close()


def search_nan(debugger: Debugger, limit: str = "") -> Finding | None:
    """Run to just behind the first operator that writes a bad number; None at the end of the run."""
    plan, whole = debugger.tape.machine.plan, debugger.tape.at == debugger.tape.runs[-1].first
    snapshot = debugger.run_to(Breakpoint("nan", limit))
    # The user's own breakpoints do not end the search.
    while snapshot.stop.at_breakpoint and snapshot.stop.kind is not StopKind.NAN:
        snapshot = debugger.run_to(Breakpoint("nan", limit))
    if snapshot.error is not None:
        checked = isinstance(snapshot.error, EnforceNotMet) and plan.check_nan
        op = debugger.tape.machine.here
        if not checked or op is None:
            raise snapshot.error
        return _refused(debugger, op, snapshot.error)
    if snapshot.stop.kind is not StopKind.NAN:
        return None
    frame = debugger.tape.last().stack[-1]
    op = frame.block.ops[frame.pc]
    where = op.where()

    outputs = _rows(frame.scope, op.writes())
    debugger.tape.back()
    inputs = _rows(frame.scope, op.reads())
    debugger.tape.forward()
    bad = [n.name for n in inputs if n.nan or n.inf]
    source = "" if where is None else where.source
    return Finding(op_location(op), _iterations(debugger), inputs, outputs, source, _before(bad, plan, whole))


def _refused(debugger: Debugger, op: LoweredOp, error: Any) -> Finding:
    """An operator whose outputs FLAGS_check_nan_inf has refused; the debugger is paused before it."""
    where = op.where()
    inputs = _rows(debugger.tape.machine.stack[-1].scope, op.reads())
    source = "" if where is None else where.source
    return Finding(op_location(op), _iterations(debugger), inputs, (), source, f"{error.summary} {error.received}")


def _rows(scope: Scope, names: Iterable[str]) -> tuple[TensorStats, ...]:
    found = ((name, scope.find_var(name)) for name in dict.fromkeys(names))
    return tuple(tensor_stats(name, None if v is None else v.value) for name, v in found)


def _iterations(debugger: Debugger) -> tuple[int, ...]:
    return tuple(f.control.iteration(f.k) for f in debugger.tape.machine.stack if f.control is not None)


def _before(bad: list[str], plan: LoweredProgram, whole: bool) -> str:
    """The origin of bad inputs; ``whole``: the search began at the start of the run."""
    if not bad:
        return ""
    names = ", ".join(bad)
    if not whole:
        return f"{names} was bad before the search began: who {bad[0]} goes to the operator that wrote it"
    if set(bad) <= set(plan.feeds):
        return f"{names} was fed with bad numbers"
    return f"{names} was bad before this run: %fluid nan on stops an earlier run where it is written"
