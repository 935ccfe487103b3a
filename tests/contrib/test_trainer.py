"""Trainer and Inferencer: the same numbers as a loop over Executor.run, events, checkpoints, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.contrib.inferencer import Inferencer
from fluidnb.contrib.trainer import (
    BeginEpochEvent,
    BeginStepEvent,
    CheckpointConfig,
    EndEpochEvent,
    EndStepEvent,
    Trainer,
)
from fluidnb.errors import EnforceNotMet, FluidError, NotFound, OpTypeError, OpValueError

L = fluid.layers
SAMPLES = [(x, [x @ [1.0, -2.0] + 0.5]) for x in np.random.default_rng(3).normal(size=(20, 2)).astype("float32")]
CPU = fluid.CPUPlace()


def batches() -> Iterator[Any]:
    """Five batches of four samples."""
    return iter(fluid.batch(lambda: iter(SAMPLES), 4)())


def prediction() -> Any:
    """A linear model."""
    start = fluid.initializer.Constant(0.1)
    return L.fc(L.data("x", [2]), 1, param_attr=fluid.ParamAttr(initializer=start), name=None)


def cost() -> Any:
    """Its loss, and the mean prediction."""
    predicted = prediction()
    return [L.mean(L.square_error_cost(predicted, L.data("y", [1]))), L.mean(predicted)]


def adam() -> Any:
    """An optimizer with a state."""
    return fluid.optimizer.Adam(0.05)


def trained(epochs: int = 2, handler: Callable[[Any], object] = lambda event: None, **kwargs: Any) -> Trainer:
    """A trainer that has trained."""
    trainer = Trainer(cost, adam, place=CPU, **kwargs)
    trainer.train(epochs, handler, reader=batches, feed_order=["x", "y"])
    return trainer


def weights(trainer: Trainer) -> dict[str, bytes]:
    """All that is persistable, as bytes."""
    held = {n: v.value for n, v in trainer.scope.vars.items()}
    return {n: np.asarray(t).tobytes() for n, t in held.items() if isinstance(t, fluid.LoDTensor)}


def losses_of_a_loop(epochs: int) -> list[float]:
    """The losses of the same training, written out."""
    programs = fluid.program_guard(fluid.Program(), fluid.Program())
    with programs, fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        loss = cost()[0]
        adam().minimize(loss)
        exe = fluid.Executor(CPU)
        exe.run(fluid.default_startup_program())
        feeder = fluid.DataFeeder(["x", "y"], CPU)
        return [exe.run(feed=feeder.feed(b), fetch_list=[loss])[0].item() for _ in range(epochs) for b in batches()]


@pytest.mark.parametrize("parallel", [False, True])
def test_the_numbers_are_those_of_a_loop(parallel: bool) -> None:
    losses: list[float] = []

    def handler(event: Any) -> None:
        if isinstance(event, EndStepEvent):
            assert len(event.metrics) == 2
            losses.append(event.metrics[0].item())

    programs = fluid.default_main_program(), fluid.default_startup_program()
    trained(3, handler, parallel=parallel)
    assert losses == losses_of_a_loop(3)
    assert (fluid.default_main_program(), fluid.default_startup_program()) == programs
    assert not programs[0].global_block().ops and not fluid.global_scope().vars


def test_events_come_in_order_and_metrics_only_where_wanted() -> None:
    seen: list[Any] = []

    def handler(event: Any) -> None:
        seen.append((type(event).__name__, event.epoch, getattr(event, "step", None)))
        if isinstance(event, BeginStepEvent):
            event.fetch_metrics = event.step == 1
        if isinstance(event, EndStepEvent):
            assert len(event.metrics) == (2 if event.step == 1 else 0)

    trained(2, handler)
    steps = [(kind, s) for s in range(5) for kind in ("BeginStepEvent", "EndStepEvent")]
    assert seen == [
        row
        for e in range(2)
        for row in [("BeginEpochEvent", e, None), *((k, e, s) for k, s in steps), ("EndEpochEvent", e, None)]
    ]
    assert isinstance(BeginEpochEvent(0), fluid.BeginEpochEvent) and fluid.Trainer is Trainer


def test_a_handler_stops_the_training() -> None:
    steps = []

    def handler(event: Any) -> None:
        if isinstance(event, EndStepEvent):
            steps.append((event.epoch, event.step))
            if event.step == 2:
                trainer.stop()

    trainer = Trainer(cost, adam, place=CPU)
    trainer.train(3, handler, reader=batches, feed_order={"y": 1, "x": 0})
    assert steps == [(0, 0), (0, 1), (0, 2)]


def test_a_test_is_the_mean_over_batches_and_changes_nothing() -> None:
    trainer = trained()
    before = weights(trainer)
    loss, mean = trainer.test(batches, ["x", "y"])
    assert weights(trainer) == before
    w = np.frombuffer(before["fc_0.w_0"], "float32")
    b = np.frombuffer(before["fc_0.b_0"], "float32")
    predicted = np.array([x @ w + b for x, _ in SAMPLES]).ravel()
    assert loss == pytest.approx(np.mean((predicted - np.array([y[0] for _, y in SAMPLES])) ** 2), rel=1e-5)
    assert mean == pytest.approx(predicted.mean(), rel=1e-4)
    with pytest.raises(OpValueError, match="nothing to test with"):
        trainer.test(lambda: iter([]), ["x", "y"])


@pytest.mark.parametrize("parallel", [False, True])
def test_parameters_are_saved_and_loaded(tmp_path: Path, parallel: bool) -> None:
    trainer = trained()
    trainer.save_params(tmp_path / "params")
    x = np.array([s[0] for s in SAMPLES])
    inferencer = Inferencer(prediction, tmp_path / "params", place=CPU, parallel=parallel)
    [got] = inferencer.infer({"x": x})
    held = weights(trainer)
    want = x @ np.frombuffer(held["fc_0.w_0"], "float32").reshape(2, 1) + np.frombuffer(held["fc_0.b_0"], "float32")
    np.testing.assert_allclose(got, want, rtol=1e-5)
    assert isinstance(inferencer.infer({"x": x}, return_numpy=False)[0], fluid.LoDTensor)
    again = Trainer(cost, adam, param_path=tmp_path / "params", place=CPU)
    assert weights(again) == held
    with pytest.raises(OpTypeError, match="inputs of Inferencer.infer must be a dict"):
        inferencer.infer([x])  # type: ignore[arg-type]
    with pytest.raises(FluidError, match=r"nowhere/fc_0\.[bw]_0"):
        Inferencer(prediction, tmp_path / "nowhere", place=CPU)


def test_an_inference_model_is_saved(tmp_path: Path) -> None:
    trainer = trained()
    trainer.save_inference_model(tmp_path / "model", ["x"], [1])
    exe = fluid.Executor(CPU)
    program, feeds, fetches = fluid.io.load_inference_model(str(tmp_path / "model"), exe)
    assert feeds == ["x"]
    [mean] = exe.run(program, feed={"x": np.array([s[0] for s in SAMPLES])}, fetch_list=fetches)
    assert mean.item() == pytest.approx(trainer.test(batches, ["x", "y"])[1], rel=1e-5)


class Stop(Exception):
    """The process ends here, as far as the trainer is concerned."""


@pytest.mark.parametrize("at", [(0, 0), (0, 3), (1, 1), (1, 4)])
def test_training_goes_on_from_the_latest_checkpoint(tmp_path: Path, at: tuple[int, int]) -> None:
    whole = weights(trained(3))

    def ends(event: Any) -> None:
        if isinstance(event, EndStepEvent) and (event.epoch, event.step) == at:
            raise Stop

    with pytest.raises(Stop):
        trained(3, ends, checkpoint_config=CheckpointConfig(tmp_path, max_num_checkpoints=2, step_interval=1))
    kept = sorted(p.name for p in tmp_path.iterdir())
    last = at[0] * 5 + at[1]
    assert kept == sorted(f"checkpoint_{n}" for n in range(max(0, last - 1), last + 1))
    assert (tmp_path / kept[-1] / "_SUCCESS").exists() and (tmp_path / kept[-1] / "__model__" / "fc_0.w_0").exists()
    (tmp_path / f"checkpoint_{last + 1}" / "__model__").mkdir(parents=True)  # one that was being written
    config = CheckpointConfig(tmp_path, step_interval=1)
    steps: list[tuple[int, int]] = []

    def handler(event: Any) -> None:
        if isinstance(event, EndStepEvent):
            steps.append((event.epoch, event.step))

    trainer = trained(3, handler, checkpoint_config=config)
    assert (config.load_serial, config.epoch_id, config.step_id) == (last, *at)
    assert steps == [(e, s) for e in range(3) for s in range(5) if (e, s) > at]
    assert weights(trainer) == whole
    assert [p.name for p in tmp_path.iterdir()] == [], "training is over"


def test_checkpoints_come_at_their_intervals(tmp_path: Path) -> None:
    seen: dict[tuple[int, int], int] = {}

    def handler(event: Any) -> None:
        if isinstance(event, EndStepEvent):
            seen[event.epoch, event.step] = len(list(tmp_path.iterdir()))

    trained(3, handler, checkpoint_config=CheckpointConfig(tmp_path, 9, epoch_interval=2, step_interval=3))
    assert [seen[e, 4] for e in range(3)] == [2, 2, 4] and seen[0, 2] == 1


def test_a_damaged_checkpoint_is_told(tmp_path: Path) -> None:
    (tmp_path / "checkpoint_0" / "trainer_0").mkdir(parents=True)
    (tmp_path / "checkpoint_0" / "_SUCCESS").touch()
    with pytest.raises(EnforceNotMet, match=r"checkpoint_0 cannot be read"):
        Trainer(cost, adam, place=CPU, checkpoint_config=CheckpointConfig(tmp_path))


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: Trainer(3, adam), OpTypeError, "train_func of Trainer must be a function"),
        (lambda: Trainer(lambda: 3, adam), OpTypeError, "returns the loss"),
        (lambda: Trainer(cost, lambda: 3), OpTypeError, "should be an instance of Optimizer"),
        (lambda: Trainer(cost, adam, place=fluid.CUDAPinnedPlace()), OpTypeError, "Place should be"),
        (lambda: Trainer(cost, adam, checkpoint_config="here"), OpTypeError, "must be a CheckpointConfig"),
        (lambda: Trainer(cost, adam).train(1, print, batches(), ["x", "y"]), OpTypeError, "must be a reader"),
        (lambda: Trainer(cost, adam).train(1, 3, batches, ["x", "y"]), OpTypeError, "event_handler"),
        (lambda: Trainer(cost, adam).train(1, print, batches, ["x", "z"]), NotFound, '"z" to feed'),
        (lambda: Trainer(cost, adam).train(1, print, batches, "xy"), OpTypeError, "must be a list of texts"),
        (lambda: Trainer(cost, adam).train(1, print, batches, {"x": 1, "y": 2}), OpValueError, "permutation"),
        (lambda: CheckpointConfig(step_interval=0), OpValueError, "step_interval"),
        (lambda: Inferencer(3, "."), OpTypeError, "infer_func of Inferencer must be a function"),
        (lambda: Inferencer(lambda: 3, "."), OpTypeError, "returns the prediction"),
    ],
)
def test_what_makes_no_sense_is_refused(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert isinstance(caught.value, FluidError)
    assert text in caught.value.text(without=["at"])  # the line of the call has the text too


def test_the_order_of_the_model_is_the_default() -> None:
    trainer = Trainer(cost, adam, place=CPU)
    steps: list[Any] = []
    trainer.train(1, steps.append, batches)
    assert sum(isinstance(e, EndEpochEvent) for e in steps) == 1


def test_estimates_refuse_what_is_no_program() -> None:
    with pytest.raises(OpTypeError, match="must be a Program"):
        fluid.contrib.memory_usage("main", 1)
    with pytest.raises(OpValueError, match="positive"):
        fluid.contrib.memory_usage(fluid.Program(), 0)
    with pytest.raises(OpTypeError):
        fluid.contrib.op_freq_statistic("main")


def test_other_names_like_those_of_checkpoints(tmp_path: Path) -> None:
    (tmp_path / "checkpoint_0").write_text("a file")
    (tmp_path / "checkpoint_007").mkdir()
    (tmp_path / "checkpoint_007" / "_SUCCESS").touch()
    seen = set[str]()

    def handler(event: Any) -> None:
        seen.update(path.name for path in tmp_path.iterdir())

    trained(1, handler, checkpoint_config=CheckpointConfig(tmp_path, max_num_checkpoints=1))
    assert "checkpoint_1" in seen and (tmp_path / "checkpoint_0").read_text() == "a file"
    assert (tmp_path / "checkpoint_007" / "_SUCCESS").exists()
