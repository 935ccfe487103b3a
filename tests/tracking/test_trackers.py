"""Trackers: what they are told of a training, and what they tell their packages, which are stubs here."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import OpTypeError
from fluidnb.extras import MissingPackage
from fluidnb.tracking import MLflow, Step, TensorBoard, Tqdm, Tracker, VisualDL, WandB, frame, track

BATCH = {"x": np.ones((2, 3), "float32")}


class Notes(Tracker):
    """Keeps everything."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.told: list[Any] = []

    def begin(self, program: fluid.Program) -> None:
        self.told.append(program)

    def step(self, step: Step) -> None:
        self.steps.append(step)

    def end(self, how: str) -> None:
        self.told.append(how)


class Calls(ModuleType):
    """A package that writes down its calls: (name, arguments, keywords)."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def call(*args: Any, **kwargs: Any) -> Calls:
            self.calls.append((name, args, kwargs))
            return self

        return call


@pytest.fixture
def training() -> tuple[fluid.Executor, fluid.framework.Variable]:
    """An executor that is ready to train, and the loss."""
    loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [3]), 2))
    fluid.optimizer.SGD(0.5).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe, loss


def train(training: Any, steps: int = 3, **options: Any) -> None:
    exe, loss = training
    with track(*options.pop("trackers"), **options):
        for _ in range(steps):
            exe.run(feed=BATCH, fetch_list=[loss])


def test_each_run_of_the_program_is_a_step_with_its_values(training: Any) -> None:
    exe, loss = training
    notes, expected = Notes(), []
    other = fluid.Program()
    with fluid.program_guard(other, fluid.Program()):
        alone = fluid.layers.fill_constant([1], "float32", 7.0)
    with track(notes):
        for _ in range(3):
            expected.append(exe.run(feed=BATCH, fetch_list=[loss])[0].item())
            exe.run(other, fetch_list=[alone])
    assert notes.told == [fluid.default_main_program(), "done"]
    assert [step.number for step in notes.steps] == [0, 1, 2]
    assert [step.values[loss.name] for step in notes.steps] == pytest.approx(expected)
    assert len(set(expected)) == 3
    exe.run(feed=BATCH, fetch_list=[loss])
    assert len(notes.steps) == 3, "outside of the with nothing is tracked"


def test_watched_variables_fetched_or_persistable_and_every_other_step(training: Any) -> None:
    notes = Notes()
    train(training, 4, trackers=[notes], watch=["learning_rate_0", training[1], "no such"], every=2)
    assert [step.number for step in notes.steps] == [0, 2]
    assert set(notes.steps[0].values) == {"learning_rate_0", training[1].name}
    assert notes.steps[0].values["learning_rate_0"] == 0.5
    [(name, weights)] = [(n, a) for n, a in notes.steps[0].parameters() if n.endswith("w_0")]
    assert weights.shape == (3, 2) and name == "fc_0.w_0"


@pytest.mark.parametrize(("error", "how"), [(KeyboardInterrupt, "interrupted"), (ValueError, "failed")])
def test_trackers_learn_how_a_training_ended(training: Any, error: type[BaseException], how: str) -> None:
    notes = Notes()
    with pytest.raises(error), track(notes):
        raise error
    assert notes.told[-1] == how


def test_a_tracker_that_raises_is_left_out_and_the_training_goes_on(training: Any, capsys: Any) -> None:
    class Broken(Tracker):
        def step(self, step: Step) -> None:
            raise ValueError("disk full")

    notes = Notes()
    train(training, trackers=[Broken(), notes])
    assert capsys.readouterr().err.count("ValueError: disk full") == 1
    assert [step.number for step in notes.steps] == [0, 1, 2]


def test_something_else_is_refused(training: Any) -> None:
    with pytest.raises(OpTypeError, match="TensorBoard"), track("tensorboard"):  # type: ignore[arg-type]
        pass


def test_the_steps_of_a_trainer_are_tracked() -> None:
    notes = Notes()

    def model() -> Any:
        return fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [2]), 1))

    trainer = fluid.Trainer(model, lambda: fluid.optimizer.SGD(0.1), place=fluid.CPUPlace())
    batches = fluid.batch(lambda: iter([([1.0, 2.0],)] * 4), 2)
    with track(notes, program=trainer.train_program):
        trainer.train(2, lambda event: None, reader=batches, feed_order=["x"])
    assert [step.number for step in notes.steps] == [0, 1, 2, 3]
    assert all(len(step.values) == 1 for step in notes.steps)
    assert dict(notes.steps[0].parameters()), "the parameters are in the scope of the trainer"


def test_wandb_mlflow_tqdm_and_visualdl_are_told(training: Any, monkeypatch: Any, tmp_path: Any) -> None:
    stubs = {name: Calls(name) for name in ("wandb", "mlflow", "tqdm.auto", "visualdl")}
    for name, stub in stubs.items():
        monkeypatch.setitem(sys.modules, name, stub)
    monkeypatch.setitem(sys.modules, "tqdm", ModuleType("tqdm"))
    stubs["tqdm.auto"].n = 0  # type: ignore[attr-defined]
    trackers = [
        WandB(project="p"), MLflow({"lr": 0.5}, run_name="r"), Tqdm(total=2), VisualDL(str(tmp_path), histograms=1),
    ]  # fmt: skip
    train(training, 1, trackers=trackers)
    told = {name: [call for call, _, _ in stub.calls] for name, stub in stubs.items()}
    assert told == {
        "wandb": ["init", "log", "finish"],
        "mlflow": ["start_run", "log_params", "log_metrics", "end_run"],
        "tqdm.auto": ["tqdm", "set_postfix", "update", "close"],
        "visualdl": ["LogWriter", "add_scalar", "add_histogram", "add_histogram", "close"],
    }
    assert stubs["wandb"].calls[1][2] == {"step": 0} and set(stubs["wandb"].calls[1][1][0]) == {training[1].name}
    assert stubs["mlflow"].calls[-1][1] == ("FINISHED",)
    assert fluid.Program.parse_from_string((tmp_path / "__model__").read_bytes()).global_block().ops


@pytest.mark.parametrize(
    ("make", "package", "extra"),
    [
        (lambda: TensorBoard("runs"), "tensorboard", "tensorboard"),
        (lambda: VisualDL("runs"), "visualdl", "visualdl"),
        (lambda: WandB(), "wandb", "wandb"),
        (lambda: MLflow(), "mlflow", "mlflow"),
        (lambda: Tqdm(), "tqdm", "tqdm"),
        (lambda: frame([]), "pandas", "pandas"),
    ],
)
def test_a_missing_package_is_named_with_its_command(make: Any, package: str, extra: str, monkeypatch: Any) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [_Missing(package), *sys.meta_path])
    with pytest.raises(MissingPackage) as raised:
        make()
    assert f"pip install 'fluidnb[{extra}]'" in str(raised.value)


class _Missing:
    """An importer that lacks a package."""

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] == self._package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
