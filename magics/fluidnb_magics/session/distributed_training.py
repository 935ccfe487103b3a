"""Training by several roles from a magic: it runs in the background, and cells wait for it, leave it or stop it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fluidnb.distributed.training import Shares, Training, endpoints
from fluidnb.errors import NotFound, OpValueError
from fluidnb.program import Program, Variable, hooks
from fluidnb.runtime import global_scope
from fluidnb.transpiler import DistributeTranspiler
from fluidnb.values.copies import on_host
from fluidnb.values.place import CPUPlace
from fluidnb.values.tensor import array_of
from fluidnb.viz.base.curves import Curve
from fluidnb.viz.base.display_target import find_display_target
from fluidnb.viz.base.html import cells_html
from fluidnb.viz.base.styled_text import plain
from fluidnb.viz.roles.text import state_lines, state_rows
from fluidnb.viz.time.progress_renderings import State, progress_html, progress_text
from fluidnb_magics.session.training import Reader, Run, parameters_of
from fluidnb_magics.session.workbench import Workbench

#: Seconds between two updates of the display.
_INTERVAL = 0.3


@dataclass(frozen=True)
class Roles:
    """Numbers of roles, engine and mode."""

    trainers: int
    pservers: int
    engine: str  # ``local`` or ``ray``
    address: str | None  # of a Ray cluster
    sync: bool


@dataclass
class DistributedRun:
    """A training in the background, and the run that the session keeps."""

    training: Training
    run: Run
    program: Program
    passes: int
    curves: list[Curve] = field(default_factory=list)
    drawn: int = 0  # steps that the curves have
    collected: bool = False  # whether its parameters are in the scope

    def state(self) -> State:
        """The state for the display."""
        losses = self.training.losses(self.drawn)
        for step, row in enumerate(losses, self.drawn):
            for curve, value in zip(self.curves, row, strict=True):
                curve.add(step, value)
        self.drawn += len(losses)
        done = self.training.over and self.training.error is None and not self.training.stopped
        return State(
            self.run.name, self.drawn, None, self.passes - 1 if done else 0, self.passes, self.training.elapsed(),
            self.curves, done,
        )  # fmt: skip


def start(
    bench: Workbench, program: Program, run: Run, reader: Reader, watch: Sequence[Variable],
    feed: Sequence[Variable] | None, passes: int, roles: Roles,
) -> DistributedRun:  # fmt: skip
    """Start the roles of a training; the session's values are the initial ones.

    Raises:
        OpValueError: the program reads no data or has no optimizer, another training runs, or the place is no CPU.
    """
    if bench.distributed is not None and not bench.distributed.training.over:
        raise OpValueError(
            f"{bench.distributed.run.name} still trains.", expected="one training at a time", received="another one",
            hint="%fluid train --join waits for it, %fluid train --stop ends it.",
        )  # fmt: skip
    if bench.place != CPUPlace():
        raise OpValueError(
            "Trainers and servers run on the CPU.", expected="CPUPlace()", received=repr(bench.place),
            hint="%fluid place cpu chooses it.",
        )  # fmt: skip
    main, startup = next(pair for pair in bench.programs.values() if pair[0] is program)
    bench.before_run(main, global_scope())
    transpiler = DistributeTranspiler()
    transpiler.transpile(
        0, program, pservers=endpoints(roles.pservers), trainers=roles.trainers, sync_mode=roles.sync,
        startup_program=startup.clone(),
    )  # fmt: skip
    shares = Shares.of(program, reader, roles.trainers, passes, feed)
    names = [v.name for v in watch]
    training = Training(transpiler, shares, names, roles.engine, roles.address, _initial(program))
    training.start()
    return DistributedRun(training, run, program, passes, [Curve(name, False) for name in names])


def follow(run: DistributedRun) -> None:
    """Show a training until it is over; an interrupt leaves it running.

    Raises:
        KeyboardInterrupt: with the commands that come back to it.
    """
    target = find_display_target()

    def draw(last: bool) -> None:
        state, states = run.state(), run.training.roles()
        run.run.state = replace(state, beside=())
        running = sum(row.state == "running" for row in states)
        text = f"{progress_text(state)}  {running}/{len(states)} roles run"
        html = progress_html(state) + cells_html(state_rows(states))
        if last:
            for line in state_lines(states):
                target.line(plain([line]))
            text = f"{progress_text(state)}  {run.training.throughput():,.0f} samples/s"
        target.show(lambda: text, lambda: html, last)

    try:
        while not run.training.wait(_INTERVAL):
            draw(False)
    except KeyboardInterrupt:
        run.run.ended = "interrupted"
        draw(True)
        raise KeyboardInterrupt(
            f"{run.run.name} continues in the background: %fluid train --join shows it, --stop ends it"
        ) from None
    draw(True)


def collect(bench: Workbench) -> str:
    """Give the session's variables the values of a training that is over; a note for the user, or nothing."""
    run = bench.distributed
    if run is None or run.collected or not run.training.over:
        return ""
    run.collected = True
    run.run.state = replace(run.state(), beside=())
    block = run.program.global_block()
    for name, value in run.training.values.items():
        if name in block.vars and hooks.set_value is not None:
            hooks.set_value(name, value)
    error = run.training.error
    run.run.ended = "failed" if error is not None else "done"
    run.run.parameters = parameters_of(run.program)
    if error is not None:
        return f"{run.run.name} has failed: {str(error).splitlines()[0]}"
    left_out = run.training.left_out
    note = f"; {left_out} samples of smaller batches were left out" if left_out else ""
    return f"{run.run.name} is over after {run.run.state.step:,} steps, its parameters are in the scope{note}"


def current_run(bench: Workbench) -> DistributedRun:
    """The training that was started last.

    Raises:
        NotFound: there is none.
    """
    if bench.distributed is None:
        raise NotFound(
            "No training by several roles was started.", expected="%fluid train READER --trainers 2 --pservers 2",
            received="none",
        )  # fmt: skip
    return bench.distributed


def _initial(program: Program) -> dict[str, Any]:
    """The session's values of all variables that last."""
    scope, values = global_scope(), {}
    for name, var in program.desc.block(0).vars.items():
        found = scope.find_var(name) if var.persistable() else None
        array = array_of(None if found is None else found.value)
        if array is not None:
            values[name] = np.array(on_host(array))
    return values
