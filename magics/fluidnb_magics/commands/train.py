"""``%fluid train``: trains a program on a reader."""

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import Any

from fluidnb.data import batch
from fluidnb.errors import OpValueError
from fluidnb.program import Program
from fluidnb.tracking import track
from fluidnb.viz import Gradients, gradient_lines, gradients_html
from fluidnb.viz.lessons.backward.examples import likely_loss
from fluidnb.viz.time.progress_renderings import State
from fluidnb.viz.time.training_runs import overlaid
from fluidnb_magics.arguments import evaluate, positive, unquoted, variables
from fluidnb_magics.commands._command import (
    Namespace,
    Section,
    UsageError,
    Workbench,
    argument,
    command,
    program_option,
    show,
    width,
)
from fluidnb_magics.commands._offers import global_variables
from fluidnb_magics.commands.runs import find_runs
from fluidnb_magics.session.training import Reader, Run, Task, continued, parameters_of
from fluidnb_magics.session.training import train as run_training


@command(Section.RUN, "train batches --passes 3 --watch loss", global_variables)
@argument("reader", nargs="*", help="an expression: a reader of batches, or of samples with --batch")
@argument("--passes", type=positive, default=1, help="how often to go through the reader (1)")
@argument("--batch", type=positive, metavar="N", help="samples to a batch, for a reader of samples")
@argument("--watch", nargs="+", action="append", default=[], metavar="NAME", help="variables to draw; default the loss")
@argument("--test", nargs="+", metavar="READER", help="a reader for a validation after each pass")
@argument("--smooth", type=positive, metavar="N", help="draw the mean of N steps; 1 draws each, default by length")
@argument("--name", help="what the run is called; a number by default")
@argument("--resume", action="store_true", help="continue the last run, or the one of --name, with further passes")
@argument("--new", action="store_true", help="start a new run even if the last one was interrupted")
@argument("--beside", nargs="+", default=[], metavar="RUN", help="draw the curves of other runs, too")
@argument("--fields", nargs="+", action="append", default=[], metavar="NAME", help="what a sample has fields for")
@argument("--gradients", action="store_true", help="show gradients and updates of all parameters at the end")
@argument("--track", nargs="+", action="append", default=[], metavar="TRACKER", help="a tracker of fluid.tracking")
@argument("--trainers", type=positive, metavar="N", help="divide each batch among N trainers")
@argument("--pservers", type=positive, metavar="N", help="parameter servers of these trainers (2)")
@argument("--engine", choices=("local", "ray"), help="threads of this process (local), or processes of Ray")
@argument("--address", metavar="HOST:PORT", help="a Ray cluster; without it, Ray starts on this machine")
@argument("--async", action="store_true", dest="unsynchronized", help="servers do not wait for all trainers")
@argument("--join", action="store_true", help="wait for trainers that an interrupted cell has left")
@argument("--stop", action="store_true", help="stop all trainers after the same step")
@argument("--resize", type=positive, metavar="N", help="let trainers join or leave, so that there are N; then wait")
@program_option()
def train(bench: Workbench, args: Namespace) -> None:
    """Train a program on the batches of a reader, with a progress bar and a live plot.

    The same line continues a run that was interrupted: its steps, its curves and its position in the reader. --test
    runs the forward operators on another reader after each pass, in test mode, which changes nothing. %fluid runs lists
    runs.

    With --trainers the program is divided among trainers and parameter servers, as DistributeTranspiler does. They
    begin with the parameters of this session, and give them back at the end. An interrupted cell leaves them running:
    --join waits again, --stop ends them, --resize 4 lets trainers join or leave. %fluid roles shows them.
    """
    names = bench.shell.user_ns
    if args.join or args.stop or args.resize:
        _join(bench, args)
        return
    if not args.reader:
        raise UsageError("%fluid train needs a reader: %fluid train batches --passes 3.")
    _check_roles(args)
    program, _ = bench.existing(args.program)
    reader = _reader(bench, args.reader, args.batch)
    test = None if args.test is None else _reader(bench, args.test, args.batch)
    feed = variables(chain(*args.fields), program, names) if args.fields else None
    losses = [] if (loss := likely_loss(program)) is None else [program.global_block().var(loss)]
    watch = variables(chain(*args.watch), program, names) if args.watch else losses
    if args.trainers:
        _distribute(bench, program, args, reader, watch, feed)
        return
    beside = [trace for run in find_runs(bench, args.beside) for trace in overlaid([run])]
    gradients = Gradients(program) if args.gradients else None
    trackers = [evaluate(unquoted(" ".join(words)), names) for words in args.track]
    with _restored_if_refused(bench), track(*trackers, watch=watch, program=program):
        run = _run(bench, program, args)
        task = Task(program, reader, watch, run.state.passes, feed, test, gradients, args.smooth, beside)
        run_training(bench.executor, task, run)
    if gradients is not None:
        picture = gradients.picture()
        show(bench.shell, gradient_lines(picture, width(bench.shell)), lambda: gradients_html(picture))


def _check_roles(args: Namespace) -> None:
    """Refuse options that do not go together."""
    only = {"--pservers": args.pservers, "--engine": args.engine, "--address": args.address,
            "--async": args.unsynchronized}  # fmt: skip
    given = [name for name, value in only.items() if value]
    if given and not args.trainers:
        raise UsageError(f"{given[0]} needs --trainers N: %fluid train batches --trainers 2 --pservers 2.")
    alone = {"--test": args.test, "--gradients": args.gradients, "--resume": args.resume, "--beside": args.beside,
             "--track": args.track}  # fmt: skip
    refused = [name for name, value in alone.items() if value]
    if args.trainers and refused:
        raise UsageError(f"{refused[0]} is for training in one process; leave it out, or --trainers.")


def _distribute(
    bench: Workbench, program: Program, args: Namespace, reader: Reader, watch: list[Any], feed: list[Any] | None
) -> None:
    """Train by several roles."""
    from fluidnb_magics.session.distributed_training import Roles, start

    roles = Roles(args.trainers, args.pservers or 2, args.engine or "local", args.address, not args.unsynchronized)
    run = _new_run(bench, program, args)
    bench.distributed = start(bench, program, run, reader, watch, feed, args.passes, roles)
    _follow(bench)


def _join(bench: Workbench, args: Namespace) -> None:
    """Wait for the trainers that a cell has left, stop them, or change their number."""
    from fluidnb_magics.session.distributed_training import current_run

    run = current_run(bench)
    if args.resize:
        run.training.resize(args.resize)
    if args.stop and not run.training.over:
        run.training.stop()
    _follow(bench)


def _follow(bench: Workbench) -> None:
    from fluidnb_magics.session.distributed_training import collect, current_run, follow

    run = current_run(bench)
    follow(run)
    note = collect(bench)
    run.training.raise_error()
    if note:
        show(bench.shell, [[(note, "")]])


@contextmanager
def _restored_if_refused(bench: Workbench) -> Iterator[None]:
    """Restores the runs of the session after an error before the first step of a run."""
    before = [(run, replace(run)) for run in bench.runs]
    try:
        yield
    except Exception:
        steps = {id(run): copy.state.step for run, copy in before}
        if all(run.state.step == steps.get(id(run), 0) for run in bench.runs):
            bench.runs[:] = [run for run, _ in before]
            for run, copy in before:
                vars(run).update(vars(copy))
        raise


def _run(bench: Workbench, program: Program, args: Any) -> Run:
    """The run to continue, or a new one."""
    line = f"{unquoted(' '.join(args.reader))} {args.batch}"
    mine = [run for run in bench.runs if run.program() is program and args.name in (None, run.name)]
    last = mine[-1] if mine else None
    if args.resume and last is None:
        raise OpValueError(
            "there is no run to continue.", expected="a run of this program", received="--resume",
            hint="without --resume a new run begins.",
        )  # fmt: skip
    same = last is not None and last.ended == "interrupted" and last.line == line
    if last is not None and (args.resume or (same and not args.new and last.parameters == parameters_of(program))):
        last.state, last.line = continued(last, args.passes), line
        print(f"{last.name} continues after step {last.state.step:,}")
        return last
    return _new_run(bench, program, args)


def _new_run(bench: Workbench, program: Program, args: Any) -> Run:
    """A new run of the session."""
    line = f"{unquoted(' '.join(args.reader))} {args.batch}"
    number = max((run.number for run in bench.runs), default=0) + 1
    name = unquoted(args.name) if args.name else f"run {number}"
    run = Run(number, name, weakref.ref(program), line, State(name, 0, None, 0, args.passes, 0.0))
    bench.runs[:] = [*(other for other in bench.runs if other.name != name), run]
    return run


def _reader(bench: Workbench, words: list[str], size: int | None) -> Reader:
    text = unquoted(" ".join(words))
    reader = evaluate(text, bench.shell.user_ns)
    if not callable(reader) and not hasattr(reader, "__iter__"):
        raise UsageError(f"{text} is not a reader (a function that returns an iterable of batches).")
    return batch(reader, size) if size else reader
