"""``fluidnb train``: trains the program of a script by trainers and parameter servers."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fluidnb.cli.command import Command, number_from, script_options

if TYPE_CHECKING:
    from fluidnb.distributed.training import Training
    from fluidnb.program import Program

#: ``__name__`` of the script, so that its own training in ``if __name__ == "__main__":`` does not run.
RUN_NAME = "__fluidnb_train__"
#: Names under which a script may have its reader.
_READERS = ("train_reader", "reader")
#: Seconds between two reports, and within which the roles must have stopped after Ctrl-C.
_EACH, _STOP = 1.0, 10.0


def arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--trainers", type=number_from(1), default=2, metavar="N", help="trainers (2)")
    parser.add_argument("--pservers", type=number_from(1), default=2, metavar="N", help="parameter servers (2)")
    parser.add_argument("--engine", choices=("local", "ray"), help="threads (local), or processes of Ray")
    parser.add_argument("--address", metavar="HOST:PORT", help="a running Ray cluster; chooses the engine ray")
    parser.add_argument("--async", action="store_true", dest="unsynchronized", help="do not wait for all trainers")
    parser.add_argument("--reader", metavar="NAME", help="the script's reader (train_reader, or reader)")
    parser.add_argument("--passes", type=number_from(1), default=1, help="times to go through the reader (1)")
    parser.add_argument("--watch", metavar="NAME", help="the variable to report (the loss)")
    parser.add_argument("--save", metavar="FOLDER", type=Path, help="write the parameters there at the end")
    script_options(parser)
    parser.add_argument("arguments", metavar="ARGS", nargs="*", help="what the script finds in sys.argv, after --")


def run(options: Namespace) -> int:
    """Train; 0, or 1 after an error of the script or of a role."""
    from fluidnb.cli import script
    from fluidnb.cli.run import status_of
    from fluidnb.errors import FluidError

    with script.as_program(options.script, options.arguments, options.force, options.seed):
        try:
            return _followed(_training(options, script.run(options.script, RUN_NAME)), options)
        except SystemExit as ended:
            return status_of(ended.code)
        except KeyboardInterrupt:
            print("\ninterrupted", file=sys.stderr)
            raise
        except FluidError as error:
            if error.op is None:
                error.where = None  # a line of the command
            script.print_error(error, options.script)
            return 1
        except BaseException as error:  # noqa: BLE001  whatever a script may raise
            script.print_error(error, options.script)
            return 1


def _training(options: Namespace, names: dict[str, Any]) -> Training:
    """The training that a script describes."""
    from fluidnb.distributed.training import Shares, Training, endpoints
    from fluidnb.program import default_main_program
    from fluidnb.transpiler import DistributeTranspiler
    from fluidnb.viz.lessons.backward.examples import likely_loss

    program = default_main_program()
    transpiler = DistributeTranspiler()
    transpiler.transpile(
        0, program, pservers=endpoints(options.pservers), trainers=options.trainers,
        sync_mode=not options.unsynchronized,
    )  # fmt: skip
    reader = _reader(options, names)
    shares = Shares.of(program, reader, options.trainers, options.passes, names.get("feed_list"))
    loss = options.watch or likely_loss(program)
    watch = [] if loss is None else [program.global_block().var(loss).name]
    engine = options.engine or ("local" if options.address is None else "ray")
    return Training(transpiler, shares, watch, engine, options.address)


def _reader(options: Namespace, names: dict[str, Any]) -> Any:
    """The reader of a script."""
    from fluidnb.errors import NotFound, near

    wanted = [options.reader] if options.reader else _READERS
    found = next((names[name] for name in wanted if name in names), None)
    if not callable(found) and not hasattr(found, "__iter__"):
        own = [name for name, value in names.items() if callable(value) and not name.startswith("_")]
        raise NotFound(
            f"{options.script.name} has no reader {' or '.join(wanted)}.", received=", ".join(own) or "no functions",
            expected="a function that returns batches, at the top of the script",
            hint=near(wanted[0], own) or "--reader NAME says which name it has.",
        )  # fmt: skip
    return found


def _followed(training: Training, options: Namespace) -> int:
    """Report until the training is over."""
    print(f"{len(training.roles())} roles start", flush=True)
    training.start()
    try:
        while not training.wait(_EACH):
            if any(training.steps):  # not while Ray starts its processes
                _report(training)
    except KeyboardInterrupt:
        training.stop()
        training.wait(_STOP)
        raise
    _report(training)
    training.raise_error()
    losses = training.losses()
    words = [f"{len(losses):,} steps in {training.seconds:.1f} s", f"{training.throughput():,.0f} samples/s"]
    words += [f"{name} {first:.4g} → {last:.4g}" for name, first, last in _ends(training, losses)]
    if training.left_out:
        words.append(f"{training.left_out} samples of smaller batches left out")
    print("; ".join(words))
    if options.save is not None:
        _save(training, options.save)
        print(f"parameters in {options.save}")
    return 0


def _ends(training: Training, losses: list[list[float]]) -> list[tuple[str, float, float]]:
    """Each watched value at the first and at the last step."""
    return list(zip(training.watch, losses[0], losses[-1], strict=True)) if losses else []


def _report(training: Training) -> None:
    """Print a line for each role."""
    from fluidnb.viz.base.styled_text import plain
    from fluidnb.viz.roles.text import state_lines

    now = f"{training.elapsed():6.1f} s  "
    rows = plain(state_lines(training.roles())).splitlines()
    print("\n".join(now + row.rstrip() for row in rows), flush=True)


def _save(training: Training, folder: Path) -> None:
    """Write the values of all variables that last."""
    import fluidnb as fluid
    from fluidnb.distributed.server_values import store

    program: Program = training.plan.program
    scope, block = fluid.Scope(), program.global_block()
    store(scope, {name: value for name, value in training.values.items() if name in block.vars})
    kept = [block.var(name) for name in training.values if name in block.vars]
    with fluid.scope_guard(scope):
        fluid.io.save_vars(fluid.Executor(), str(folder), program, vars=kept)


COMMAND = Command(
    "Train the program of a script by trainers and parameter servers.", arguments, run,
    example="examples:\n  fluidnb train fit.py --trainers 4 --pservers 2 --engine ray --save fitted\n"
    "  fluidnb train --trainers 4 fit.py -- --width 100\n\n"
    "The script builds its program in the default programs, calls minimize, and has\n"
    "at its top a reader: train_reader is a function that returns batches, lists of\n"
    "samples or dicts of arrays. feed_list names the variables that a sample has\n"
    'fields for (all data variables). Its __name__ is not "__main__", so a loop for\n'
    'one process goes below if __name__ == "__main__":. A line for each role comes\n'
    "each second; Ctrl-C stops all of them. --save writes parameters for\n"
    "fluid.io.load_persistables.",
)  # fmt: skip
