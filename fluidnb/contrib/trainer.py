"""Fluid's ``trainer`` module: a training loop with events, checkpoints and tests, of versions 0.13 to 1.3."""

import itertools
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from fluidnb import core, io
from fluidnb.arguments import checked, shown
from fluidnb.data import DataFeeder
from fluidnb.data.reader.decorators import Reader, samples_of
from fluidnb.errors import EnforceNotMet, NotFound, OpTypeError, OpValueError, near, typed
from fluidnb.files.atomic_write import atomic_write
from fluidnb.optimizer.base import Optimizer
from fluidnb.parallel_executor import ParallelExecutor
from fluidnb.program import Program, Variable, program_guard, unique_name
from fluidnb.runtime import Executor, Scope, scope_guard
from fluidnb.values import CPUPlace, CUDAPlace, Place

__all__ = ["BeginEpochEvent", "BeginStepEvent", "CheckpointConfig", "EndEpochEvent", "EndStepEvent", "Trainer"]

#: The folders and files of a checkpoint, as Fluid names them.
_FOLDER, _MODEL, _TRAINER, _WHOLE = "checkpoint_{}", "__model__", "trainer_0", "_SUCCESS"


class BeginEpochEvent:
    """The beginning of an epoch; ``epoch`` is its number, from 0."""

    def __init__(self, epoch_id: int) -> None:
        self.epoch = epoch_id


class EndEpochEvent:
    """The end of an epoch; ``epoch`` is its number, from 0."""

    def __init__(self, epoch_id: int) -> None:
        self.epoch = epoch_id


class BeginStepEvent:
    """The beginning of a step: a batch is about to be run.

    Attributes:
        epoch: number of the epoch, from 0.
        step: number of the step in its epoch, from 0.
        fetch_metrics: whether the step shall fetch what ``train_func`` returned; a handler may set it to False.
    """

    def __init__(self, epoch_id: int, step_id: int) -> None:
        self.epoch, self.step = epoch_id, step_id
        self.fetch_metrics = True


class EndStepEvent:
    """The end of a step.

    Attributes:
        epoch: number of the epoch, from 0.
        step: number of the step in its epoch, from 0.
        metrics: values of what ``train_func`` returned, arrays in its order; empty if they were not to be fetched.
    """

    def __init__(self, epoch_id: int, step_id: int, metrics: list[Any]) -> None:
        self.epoch, self.step, self.metrics = epoch_id, step_id, metrics


@checked
class CheckpointConfig:
    """Configures when and where a `Trainer` saves checkpoints, and which one it resumes from.

    Args:
        checkpoint_dir: the folder; default the current one.
        max_num_checkpoints: how many are kept; the oldest go.
        epoch_interval: checkpoints are saved in every n-th epoch.
        step_interval: in these, at every n-th step.

    Attributes:
        epoch_id: epoch of the checkpoint that was loaded, else 0.
        step_id: step of the checkpoint that was loaded, else 0.
        load_serial: number of the checkpoint that was loaded, or None.
    """

    def __init__(
        self, checkpoint_dir: str | os.PathLike[str] | None = None, max_num_checkpoints: int = 3,
        epoch_interval: int = 1, step_interval: int = 10,
    ) -> None:  # fmt: skip
        numbers = {
            "max_num_checkpoints": max_num_checkpoints, "epoch_interval": epoch_interval, "step_interval": step_interval
        }
        for name, number in numbers.items():
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise OpValueError(f"{name} of CheckpointConfig is a count.", expected="1 or more", received=number)
        self.checkpoint_dir = os.getcwd() if checkpoint_dir is None else os.fspath(checkpoint_dir)
        self.max_num_checkpoints, self.epoch_interval, self.step_interval = numbers.values()
        self.epoch_id = self.step_id = 0
        self.load_serial: int | None = None


@checked
class Trainer:
    """Builds a model, trains it in a loop, and reports each epoch and step to an event handler.

    Everything happens in programs and a scope of the trainer's own.

    Args:
        train_func: builds the model; returns the loss, or a list whose first entry is the loss.
        optimizer_func: returns an optimizer.
        param_path: a folder that `save_params` wrote, whose values the parameters begin with.
        place: where to run; default the GPU if there is one, else the CPU.
        parallel: whether `ParallelExecutor` runs the steps; with one device the results are the same.
        checkpoint_config: when and where to save checkpoints; training resumes from the latest one found.

    Attributes:
        train_program: the program of a training step.
        startup_program: what initializes the parameters.
        test_program: the program of a test: no backward, operators in test mode.
        train_func_outputs: what ``train_func`` returned, as a list.
        scope: the parameters.

    Raises:
        NotFound: ``param_path`` has not all parameters.

    Example:
        >>> def model():
        ...     x, y = fluid.layers.data("x", [2]), fluid.layers.data("y", [1])
        ...     return fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
        >>> batches = fluid.batch(lambda: iter([([1.0, 2.0], 3.0), ([2.0, 0.0], 2.0)] * 20), 4)
        >>> losses = []
        >>> def handler(event):
        ...     if isinstance(event, EndStepEvent):
        ...         losses.append(event.metrics[0].item())
        >>> trainer = Trainer(model, lambda: fluid.optimizer.SGD(0.1), place=fluid.CPUPlace())
        >>> trainer.train(5, handler, reader=batches, feed_order=["x", "y"])
        >>> len(losses), losses[-1] < losses[0]
        (50, True)
    """

    def __init__(
        self, train_func: Callable[[], Any], optimizer_func: Callable[[], Any],
        param_path: str | os.PathLike[str] | None = None, place: Place | None = None, parallel: bool = False,
        checkpoint_config: CheckpointConfig | None = None,
    ) -> None:  # fmt: skip
        self.parallel, self.place, self.checkpoint_cfg = parallel, check_and_get_place(place), checkpoint_config
        self.scope, self.startup_program, self.train_program = Scope(), Program(), Program()
        self._stop = False
        with program_guard(self.train_program, self.startup_program), unique_name.guard():
            outputs = train_func()
            self.train_func_outputs: list[Variable] = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
            if not self.train_func_outputs:
                raise OpValueError(
                    "train_func of Trainer returns the loss, or a list of variables that begins with it.",
                    expected="a Variable", received="an empty list",
                )  # fmt: skip
            for i, variable in enumerate(self.train_func_outputs):
                if not isinstance(variable, Variable):
                    raise OpTypeError(
                        "train_func of Trainer returns the loss, or a list of variables that begins with it.",
                        expected="a Variable", received=f"{variable!r} ({type(variable).__name__}) at {i}"[:200],
                    )  # fmt: skip
            self.test_program = self.train_program.clone(for_test=True)
            optimizer = optimizer_func()
            if not isinstance(optimizer, Optimizer):
                raise OpTypeError(
                    "The optimizer should be an instance of Optimizer.", expected="fluid.optimizer.SGD(0.1), say",
                    received=typed(optimizer),
                )  # fmt: skip
            optimizer.minimize(self.train_func_outputs[0])
        self._executor = Executor(self.place)
        self._parallel: ParallelExecutor | None = None
        with self._guards():
            self._executor.run(self.startup_program)
            if self.checkpoint_cfg is not None:
                self._load_checkpoint(self.checkpoint_cfg)
            if param_path is not None and os.path.isdir(param_path):
                io.load_persistables(self._executor, os.fspath(param_path), self.startup_program)

    @contextmanager
    def _guards(self) -> Iterator[None]:
        with program_guard(self.train_program, self.startup_program), scope_guard(self.scope):
            yield

    def stop(self) -> None:
        """Ends the training after the step under way; an event handler calls it."""
        self._stop = True

    def train(
        self, num_epochs: int, event_handler: Callable[[Any], object], reader: Reader | None = None,
        feed_order: Sequence[str] | Mapping[str, int] | None = None,
    ) -> None:  # fmt: skip
        """Trains.

        Args:
            num_epochs: how many epochs; those that a loaded checkpoint has seen count.
            feed_order: names of the data variables in the order of a sample's fields, or name -> index; default the
                order in which the model declares them.
        """
        if reader is None:
            raise OpTypeError("Trainer.train needs a reader.", expected="a function that gives the batches of an epoch")
        with self._guards():
            feeder = DataFeeder(feed_variables(self.train_program, feed_order), self.place)
            batches = feeder.decorate_reader(reader, multi_devices=self.parallel)
            self._train(num_epochs, event_handler, batches)
            if self.checkpoint_cfg is not None:
                self._clean_checkpoints(self.checkpoint_cfg)

    def _train(self, num_epochs: int, handler: Callable[[Any], object], batches: Reader) -> None:
        config = self.checkpoint_cfg
        done = (-1, -1) if config is None or config.load_serial is None else (config.epoch_id, config.step_id)
        for epoch in range(max(done[0], 0), num_epochs):
            handler(BeginEpochEvent(epoch))
            for step, batch in enumerate(batches()):
                if self._stop:
                    return
                if (epoch, step) <= done:
                    continue
                begin = BeginStepEvent(epoch, step)
                handler(begin)
                metrics = self._run(batch, self.train_func_outputs if begin.fetch_metrics else [])
                if config is not None and epoch % config.epoch_interval == 0 and step % config.step_interval == 0:
                    self._save_checkpoint(config, epoch, step)
                handler(EndStepEvent(epoch, step, metrics))
            handler(EndEpochEvent(epoch))
            if self._stop:
                return

    def _run(self, batch: Any, wanted: list[Variable]) -> list[Any]:
        """A step."""
        names = [variable.name for variable in wanted]
        if not self.parallel:
            return self._executor.run(self.train_program, feed=batch, fetch_list=names)
        if self._parallel is None:
            self._parallel = ParallelExecutor(isinstance(self.place, CUDAPlace), self.train_func_outputs[0].name)
        return self._parallel.run(names, feed=batch)

    def test(self, reader: Reader, feed_order: Sequence[str] | Mapping[str, int] | None = None) -> list[float]:
        """Runs the test program over data; arguments as in `train`.

        Returns:
            For each output of ``train_func``, the mean of its first element over the batches.
        """
        with scope_guard(self.scope):
            feeder = DataFeeder(feed_variables(self.test_program, feed_order), self.place)
            names = [variable.name for variable in self.train_func_outputs]
            rows = [
                [np.ravel(value)[0] for value in self._executor.run(self.test_program, feeder.feed(batch), names)]
                for batch in samples_of(reader)
            ]
        if not rows:
            raise OpValueError("There is nothing to test with.", expected="a batch or more", received="an empty reader")
        return [float(sum(column) / len(rows)) for column in zip(*rows, strict=True)]

    def save_params(self, param_path: str | os.PathLike[str]) -> None:
        """Saves all persistable variables, the parameters among them."""
        with self._guards():
            io.save_persistables(self._executor, os.fspath(param_path))

    def save_inference_model(
        self, param_path: str | os.PathLike[str], feeded_var_names: Sequence[str], target_var_indexes: Sequence[int]
    ) -> None:
        """Saves a program that computes outputs of ``train_func``, with its parameters.

        Args:
            param_path: the folder.
            feeded_var_names: names of the variables that will be fed.
            target_var_indexes: which outputs of ``train_func``.
        """
        with self._guards():
            try:
                targets = [self.train_func_outputs[index] for index in target_var_indexes]
            except IndexError:
                raise OpValueError(
                    "train_func has no such output.", expected=f"indices from 0 to {len(self.train_func_outputs) - 1}",
                    received=shown(target_var_indexes),
                ) from None  # fmt: skip
            io.save_inference_model(os.fspath(param_path), list(feeded_var_names), targets, self._executor)

    # ---- checkpoints

    def _save_checkpoint(self, config: CheckpointConfig, epoch: int, step: int) -> None:
        """Write a checkpoint; the mark that it is whole comes last."""
        folder = Path(config.checkpoint_dir)
        serials = itertools.count(max(_serials(folder), default=-1) + 1)
        # a file of that name is not this program's
        checkpoint = next(p for n in serials if not (p := folder / _FOLDER.format(n)).is_file())
        if checkpoint.exists():  # left over by a process that ended in the middle
            shutil.rmtree(checkpoint)
        io.save_persistables(self._executor, str(checkpoint / _MODEL), self.train_program)
        (checkpoint / _TRAINER).mkdir(parents=True, exist_ok=True)
        for name, number in (("epoch_id", epoch), ("step_id", step)):
            with atomic_write(checkpoint / _TRAINER / name, text=True) as file:
                file.write(f"{number}\n")
        (checkpoint / _WHOLE).touch()
        for old in sorted(_serials(folder))[: -config.max_num_checkpoints]:
            shutil.rmtree(folder / _FOLDER.format(old))

    def _load_checkpoint(self, config: CheckpointConfig) -> None:
        """Resume from the latest checkpoint, if there is one."""
        folder = Path(config.checkpoint_dir)
        config.load_serial = max(_serials(folder), default=None)
        if config.load_serial is None:
            return
        checkpoint = folder / _FOLDER.format(config.load_serial)
        try:
            config.epoch_id, config.step_id = (
                int((checkpoint / _TRAINER / name).read_text("utf-8")) for name in ("epoch_id", "step_id")
            )
        except (OSError, ValueError) as error:
            raise EnforceNotMet(
                f"The checkpoint {checkpoint} cannot be read.", expected=f"numbers in {_TRAINER}/epoch_id and step_id",
                received=str(error), hint="remove its folder; training then resumes from the previous one.",
            ) from None  # fmt: skip
        io.load_persistables(self._executor, str(checkpoint / _MODEL), self.train_program)

    def _clean_checkpoints(self, config: CheckpointConfig) -> None:
        """Training is over: its checkpoints go."""
        folder = Path(config.checkpoint_dir)
        for serial in _serials(folder):
            shutil.rmtree(folder / _FOLDER.format(serial))


def _serials(folder: Path) -> list[int]:
    """The numbers of the checkpoints of a folder that are whole."""
    pattern = re.compile(_FOLDER.format("(0|[1-9][0-9]*)"))
    matches = [pattern.fullmatch(path.name) for path in folder.iterdir()] if folder.is_dir() else []
    return [int(m[1]) for m in matches if m is not None and (folder / m[0] / _WHOLE).exists()]


def check_and_get_place(place: Place | None) -> Place:
    """The place to run on; for None the GPU if there is one, else the CPU."""
    if place is None:
        return CUDAPlace(0) if core.is_compiled_with_cuda() else CPUPlace()
    if not isinstance(place, CPUPlace | CUDAPlace):
        raise OpTypeError("Place should be either CUDAPlace or CPUPlace.", received=repr(place))
    return place


def feed_variables(program: Program, feed_order: Sequence[str] | Mapping[str, int] | None) -> list[Variable]:
    """The data variables of a program in the order of a sample's fields; for None in that of their declaration.

    Example:
        >>> x, y = fluid.layers.data("x", [1]), fluid.layers.data("y", [1])
        >>> [v.name for v in feed_variables(fluid.default_main_program(), {"y": 0, "x": 1})]
        ['y', 'x']
    """
    block = program.global_block()
    if feed_order is None:
        return [variable for variable in block.vars.values() if variable.is_data]
    if isinstance(feed_order, Mapping):
        if sorted(feed_order.values()) != list(range(len(feed_order))):
            raise OpValueError(
                "The values of 'feed_order' should be a permutation of [0, len(feed_order)).",
                expected=", ".join(map(str, range(len(feed_order)))), received=dict(feed_order),
            )  # fmt: skip
        feed_order = sorted(feed_order, key=feed_order.__getitem__)
    for name in feed_order:
        if name not in block.vars:
            known = [n for n, v in block.vars.items() if v.is_data]
            raise NotFound(
                f'The model has no variable "{name}" to feed.', expected=", ".join(known), received=name,
                hint=near(name, known) or "feed_order has the names given to layers.data.",
            )  # fmt: skip
    return [block.var(name) for name in feed_order]
