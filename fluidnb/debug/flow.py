"""Gradient flow: which parameters learn, which do not, and which operator is the cause."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluidnb.debug.debugger import Debugger
from fluidnb.debug.session import Session
from fluidnb.debug.snapshot import OpLocation, op_location
from fluidnb.debug.tensor_stats import TensorStats, tensor_stats
from fluidnb.errors import NotFound
from fluidnb.op import EMPTY, GRAD, has_grad
from fluidnb.program import Program, default_main_program
from fluidnb.program.constants import role_of
from fluidnb.proto.desc import OpDesc
from fluidnb.runtime.compile.lowering import LoweredOp
from fluidnb.runtime.scope import Scope
from fluidnb.values.place import Place

#: The statistics of each variable that was written.
Stats = Mapping[str, TensorStats]
#: Each gradient -> the operator that wrote it, and the largest norm among the gradients that it read.
Writers = Mapping[str, tuple[LoweredOp, float]]
#: A gradient is small or large at these ratios of its norm to that of its parameter (to 1 where that is 0).
SMALL, LARGE = 1e-6, 1e3


@dataclass(frozen=True, slots=True, repr=False)
class Flow:
    """The gradient of one parameter."""

    parameter: str
    verdict: str  # ``fine``, ``vanishing``, ``exploding``, ``dead`` (all zeros), ``NaN`` or ``disconnected`` (none)
    weights: TensorStats  # statistics of the parameter
    gradient: TensorStats | None = None  # statistics of the gradient; None if there is none
    blocker: OpLocation | None = None  # the operator that is the cause; None if the gradient is fine
    why: str = ""  # what that operator does, as text
    forward: OpLocation | None = None  # its forward operator, or itself; None if there is none

    @property
    def share(self) -> float:
        """The gradient's norm over the parameter's."""
        return 0.0 if self.gradient is None else self.gradient.norm / (self.weights.norm or 1.0)

    @property
    def text(self) -> str:
        """Parameter, verdict, ratio and cause in one line."""
        share = "no gradient" if self.gradient is None else f"gradient/weight {self.share:.2g}"
        return f"{self.parameter}  {self.verdict}  {share}" + (f"  {self.why}" if self.why else "")

    def __repr__(self) -> str:
        return f"<{self.text}>"


def gradient_flow(
    program: Program | None = None, feed: Mapping[str, Any] | None = None, scope: Scope | None = None,
    place: Place | None = None,
) -> list[Flow]:  # fmt: skip
    """Run a program once and judge the gradient of each parameter.

    Parameters are restored afterwards.

    Args:
        program: a program with backward; default the main program.
        scope: the scope of the parameters; default the global scope.
        place: where to run; default the CPU.

    Returns:
        One for each trainable parameter, in the program's order.
    """
    program = default_main_program() if program is None else program
    if not any(role_of(op.desc) == "backward" for op in program.global_block().ops):
        raise NotFound(
            "This program has no backward.", expected="gradients of a loss", received="forward operators only",
            hint="append_backward(loss), or an optimizer's minimize(loss).",
        )  # fmt: skip
    session = Session(program, {} if feed is None else feed, scope=scope, place=place)
    try:
        return session.do(flows, program)
    finally:
        session.do(Debugger.restart)
        session.close()


def flows(debugger: Debugger, program: Program) -> list[Flow]:
    """Run to the end, and judge the gradients; see `gradient_flow`."""
    tape = debugger.tape
    scope = tape.interpreter.stack[0].scope
    parameters = [p for p in program.all_parameters() if p.trainable]
    weights = {p.name: _stats(scope, p.name) for p in parameters}
    stats: dict[str, TensorStats] = {}
    writers: dict[str, tuple[LoweredOp, float]] = {}

    while not tape.done:
        op, inner = tape.interpreter.here, tape.interpreter.stack[-1].scope
        tape.forward()
        if op is None:
            continue
        for name in op.writes():
            stats[name] = _stats(inner, name)
            if GRAD in name and name not in op.reads():
                arriving = [stats[n].norm for n in op.reads() if GRAD in n and n in stats]
                writers[name] = (op, max(arriving, default=0.0))
    all_ops = [op for block in tape.interpreter.lowered.blocks for op in block.ops]
    return [_flow(p.name, weights[p.name], stats, writers, program, all_ops) for p in parameters]


def _stats(scope: Scope, name: str) -> TensorStats:
    variable = scope.find_var(name)
    return tensor_stats(name, None if variable is None else variable.value)


def _flow(
    name: str, weights: TensorStats, stats: Stats, writers: Writers, program: Program, ops: list[LoweredOp],
) -> Flow:  # fmt: skip
    gradient = stats.get(name + GRAD)
    if gradient is None:
        op, why = _cut(name, program, ops)
        spot = None if op is None else op_location(op)
        return Flow(name, "disconnected", weights, None, spot, why, spot)
    if weights.nan or weights.inf:
        return Flow(name, "NaN", weights, gradient, None, "the parameter itself was NaN or infinite before this run")
    share = gradient.norm / (weights.norm or 1.0)
    if gradient.nan or gradient.inf:
        verdict, worst = "NaN", np.inf
    elif gradient.norm == 0:
        verdict, worst = "dead", 0.0
    elif share < SMALL:
        verdict, worst = "vanishing", 0.0
    elif share > LARGE:
        verdict, worst = "exploding", np.inf
    else:
        return Flow(name, "fine", weights, gradient)
    blocker, why = _narrow(name + GRAD, stats, writers, worst > 0, verdict)
    if blocker is None:
        return Flow(name, verdict, weights, gradient, None, why)
    return Flow(name, verdict, weights, gradient, op_location(blocker), why, _forward_of(blocker, ops))


def forward_of(op: OpDesc, ops: Iterable[OpDesc]) -> OpDesc | None:
    """The operator of the type without ``_grad`` that wrote what this one reads, or reads the gradient of."""
    if not op.optype.endswith("_grad"):
        return None
    names = {name.partition(GRAD)[0] for name in op.input_arg_names()}
    kind = op.optype.removesuffix("_grad")
    same = (o for o in ops if o.optype == kind and role_of(o) == "forward")
    return next((o for o in same if not names.isdisjoint(o.output_arg_names())), None)


def _forward_of(op: LoweredOp, ops: list[LoweredOp]) -> OpLocation | None:
    """The forward operator of a gradient operator; itself, if it is a forward operator."""
    if role_of(op.desc) == "forward":
        return op_location(op)
    forward = forward_of(op.desc, (o.desc for o in ops))
    return next((op_location(o) for o in ops if o.desc is forward), None)


def _narrow(name: str, stats: Stats, writers: Writers, grows: bool, verdict: str) -> tuple[LoweredOp | None, str]:
    """The operator between the loss and a gradient that changed its norm most, and what it does."""
    best: tuple[float, LoweredOp | None, str] = (0.0, None, "")
    seen = set()
    while name in writers and name not in seen:
        seen.add(name)
        op, arriving = writers[name]
        leaving = stats[name].norm
        bad = stats[name].nan + stats[name].inf
        factor = np.inf if bad else leaving / arriving if arriving else 0.0
        change = (factor if grows else 1 / factor if factor else np.inf) if arriving or grows else 0.0
        source = _zero_input(op, stats) if verdict == "dead" and arriving and not leaving else None
        if change >= best[0] and (arriving or bad):
            text = f"{op.desc.optype} turns norm {arriving:.2g} into {'NaN' if bad else format(leaving, '.2g')}"
            best = (change, op, f"{text}: {source} is all 0" if source else text)
        gradients = [n for n in op.reads() if GRAD in n and n in stats and n not in seen]
        if not gradients:
            break
        name = max(gradients, key=lambda n: stats[n].norm if stats[n].low is not None else np.inf)
    return best[1], best[2]


def _zero_input(op: LoweredOp, stats: Stats) -> str | None:
    """A forward value that is all 0, by which a gradient is multiplied."""
    return next((n for n in op.reads() if GRAD not in n and n in stats and stats[n].dtype and not stats[n].norm), None)


def _cut(name: str, program: Program, ops: list[LoweredOp]) -> tuple[LoweredOp | None, str]:
    """The operator at which backward stops before it reaches a parameter, and why."""
    with_gradient = {n.partition(GRAD)[0] for op in ops for n in op.writes() if GRAD in n}
    reached, last = {name}, None
    for op in ops:
        if role_of(op.desc) != "forward" or reached.isdisjoint(op.reads()):
            continue
        last = op
        writes = [n for n in op.writes() if n != EMPTY]
        if not with_gradient.isdisjoint(writes):
            if not has_grad(op.desc.optype):
                return op, f"{op.desc.optype} has no gradient"
            stopped = [n for n in op.reads() if n in reached and n != name and _stops(program, n)]
            what = " and ".join(stopped) or "an input of it"
            return op, f"{op.desc.optype} propagates no gradient: {what} has stop_gradient"
        reached.update(writes)
    if last is None:
        return None, "no operator reads it"
    why = "the loss does not depend on it, or it has stop_gradient"
    return last, f"the output of {last.desc.optype} has no gradient: {why}"


def _stops(program: Program, name: str) -> bool:
    """Whether backward stops at a variable."""
    return any(name in block.desc.vars and block.desc.vars[name].stop_gradient() for block in program.blocks)
