"""Training from a magic: validation after each pass, runs that are kept, continued where they were interrupted."""

import weakref
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from fluidnb.data import DataFeeder
from fluidnb.data.feeder import data_variables, feed_of
from fluidnb.data.reader.decorators import samples_of
from fluidnb.errors import OpValueError
from fluidnb.program import Program, Variable
from fluidnb.runtime import Executor, global_scope
from fluidnb.runtime.interrupt import whole_runs
from fluidnb.values.copies import on_host
from fluidnb.values.tensor import array_of
from fluidnb.viz.base.curves_svg import Trace
from fluidnb.viz.lessons.backward.examples import forward_part
from fluidnb.viz.time.gradients import Gradients
from fluidnb.viz.time.progress import Progress
from fluidnb.viz.time.progress_renderings import State
from fluidnb_magics.session.running import without_change

#: How to find the operator after a training that became NaN or infinite.
_ADVICE = "%fluid reset --params and %fluid nan on, then train again: that stops at the first operator that writes it."

Reader = Callable[[], Iterable[Any]] | Iterable[Any]


@dataclass
class Run:
    """A training run that the session keeps."""

    number: int  # from 1
    name: str
    program: weakref.ref[Program]  # what was trained
    # the reader and the batch size as the user wrote them; the same line continues a run that was interrupted
    line: str
    state: State  # the run as it was shown last
    ended: str = "failed"  # ``done``, ``interrupted`` or ``failed``
    parameters: int = 0  # a checksum of the parameters at its end


@dataclass
class Task:
    """The program to train, and its data."""

    program: Program
    reader: Reader  # gives batches: lists of samples, or dicts from variable name to value
    watch: list[Variable]  # variables to fetch and draw
    passes: int = 1  # how often to go through the reader
    # the variables that a sample has fields for; the program's data variables by default
    feed: list[Variable] | None = None
    test: Reader | None = None  # gives the batches of a validation after each pass
    gradients: Gradients | None = None  # records the gradients of each step, if given
    smooth: int | None = None  # steps over which curves are smoothed in the picture; None chooses by itself
    beside: Sequence[Trace] = field(default_factory=list)  # curves of other runs, for the picture


def train(executor: Executor, task: Task, run: Run) -> None:
    """Train, and show the progress; the state is kept in the run, however it ends."""
    feeds = data_variables(task.program) if task.feed is None else task.feed
    if not feeds:
        raise OpValueError("the program reads no data.", expected="a variable made by layers.data", hint="%fluid show")
    feeder = DataFeeder(feeds, executor.place, task.program)
    validation = None if task.test is None else partial(_validated, executor, task, feeder)
    progress = Progress(
        task.reader, task.watch, task.passes, title=run.name, start=run.state, after_pass=validation,
        smooth=task.smooth, beside=task.beside, advice=_ADVICE,
    )  # fmt: skip
    run.ended = "failed"
    try:
        with closing(iter(progress)) as batches, whole_runs() as patience:
            for batch in batches:
                feed = feed_of(feeder, batch)
                if task.gradients is None:
                    values = executor.run(task.program, feed=feed, fetch_list=task.watch, return_numpy=False)
                else:
                    values = task.gradients.run(executor, feed, task.watch, return_numpy=False)
                progress.take(values)
                patience.check()
        run.ended = "done"
    except KeyboardInterrupt as error:
        run.ended = "interrupted"
        state = progress.state()
        reached = f"step {state.step:,} of {state.total:,}" if state.total else f"step {state.step:,}"
        interrupt = KeyboardInterrupt(f"interrupted at {reached}, parameters kept; train again to continue")
        for note in getattr(error, "__notes__", ()):
            interrupt.add_note(note)
        raise interrupt from None
    finally:
        run.state = replace(progress.state(run.ended == "done"), beside=())
        run.parameters = parameters_of(task.program)


def continued(run: Run, passes: int) -> State:
    """The state from which a run continues: after the last step of an interrupted one, else with further passes."""
    state = run.state
    if run.ended == "interrupted":
        return replace(state, passes=max(passes, state.pass_id + 1))
    a_pass = state.total // state.passes if state.total else 0
    return replace(
        state, done=False, pass_id=state.passes, passes=state.passes + passes, began=state.step, sums=(),
        total=a_pass * (state.passes + passes) or None,
    )  # fmt: skip


def parameters_of(program: Program) -> int:
    """A checksum of the parameters of a program that the global scope holds."""
    scope, checksum = global_scope(), 0
    for parameter in program.all_parameters():
        variable = scope.find_var(parameter.name)
        array = array_of(None if variable is None else variable.value)
        if array is not None:
            checksum = zlib.crc32(np.ascontiguousarray(on_host(array)).tobytes(), checksum)
    return checksum


def _validated(executor: Executor, task: Task, feeder: DataFeeder) -> Mapping[str, float]:
    """The means of the watched values over the samples of a validation; nothing changes."""
    forward = forward_part(task.program)
    written = {name for op in forward.desc.blocks[0].ops for name in op.output_arg_names()}
    names = [v.name for v in task.watch if v.name in written]
    program = forward.inference_optimize(prune_read_op=False).prune(names)
    read = {name for op in program.desc.blocks[0].ops for name in op.input_arg_names()}
    fetches = [program.global_block().var(name) for name in names]
    sums: dict[str, float] = defaultdict(float)
    count, reader = 0, task.test
    assert reader is not None
    for batch in samples_of(reader) if callable(reader) else reader:
        feed = {name: value for name, value in feed_of(feeder, batch).items() if name in read}
        with without_change(executor, program, feed, fetches):
            values = executor.run(program, feed=feed, fetch_list=fetches, return_numpy=False)
        size = len(next(iter(batch.values()))) if isinstance(batch, dict) else len(batch)
        for name, value in zip(names, values, strict=True):
            sums[name] += size * float(np.asarray(value).mean())
        count += size
    if not count:
        raise OpValueError(
            "the reader of the validation gives no batch.", expected="a reader of one batch or more",
            received="no batch", hint="with --batch it gives samples, without it batches of samples.",
        )  # fmt: skip
    return {name: total / count for name, total in sums.items()}
