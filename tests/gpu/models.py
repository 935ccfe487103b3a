"""Training steps of four nets on a device beside torch: one process, the same numbers to begin with, turn by turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

import fluidnb as fluid
from fluidnb import layers
from tests.benchmarks.peers import fluidnb_peer
from tests.gpu import torch_side
from tests.gpu.turns import Effort, turns, verdict

#: How much of another side's time a step may take at most.
GOALS = {"torch eager": 1.0, "torch.compile": 1.2}
#: Losses that are compared before anything is timed: the first one closely.
_STEPS = 5

Built = tuple[dict[str, Any], Any, dict[str, Any]]


@dataclass(frozen=True)
class Model:
    """A net that is trained.

    Args:
        title: what it is.
        build: makes its programs: what is fed, the loss, and the batch as torch takes it.
        peer: the net of `torch_side`.
        small: sizes for an emulator; by default those of the title.
        own: what `build` is told beside sizes.
    """

    title: str
    build: Callable[..., Built]
    peer: str
    small: dict[str, Any]
    own: dict[str, Any]


def _mlp(**sizes: Any) -> Built:
    feed, loss = fluidnb_peer.mlp(fluid, **sizes)
    return feed, loss, feed


def _lenet(**sizes: Any) -> Built:
    feed, loss = fluidnb_peer.lenet(fluid, **sizes)
    return feed, loss, feed


def _lstm(fixed: bool, rows: int = 32, longest: int = 50, width: int = 128) -> Built:
    lengths, x, label = fluidnb_peer.noise(rows, longest, width)
    if fixed:
        lengths[:] = longest
    loss = fluidnb_peer.lod_lstm(fluid, rows, width)
    return {"x": fluidnb_peer.packed(fluid, lengths, x), "label": label}, loss, {
        "x": x, "label": label, "lengths": lengths,
    }  # fmt: skip


def _transformer(rows: int = 8, length: int = 128, width: int = 256, heads: int = 4) -> Built:
    rng = np.random.RandomState(0)
    feed = {"x": rng.randn(rows, length, width).astype("float32"), "label": rng.randint(0, 10, (rows, length, 1))}
    x, label = layers.data("x", [length, width]), layers.data("label", [length, 1], dtype="int64")

    def wide(h: Any, size: int, act: str | None = None) -> Any:
        return layers.fc(h, size, num_flatten_dims=2, act=act)

    h = layers.layer_norm(x, begin_norm_axis=2)
    q, k, v = (layers.transpose(layers.reshape(wide(h, width), [0, 0, heads, width // heads]), [0, 2, 1, 3])
               for _ in range(3))  # fmt: skip
    seen = layers.softmax(layers.matmul(q, k, transpose_y=True, alpha=1 / sqrt(width // heads)))
    mixed = layers.transpose(layers.matmul(layers.dropout(seen, 0.0), v), [0, 2, 1, 3])
    x = layers.elementwise_add(x, layers.dropout(wide(layers.reshape(mixed, [0, 0, width]), width), 0.0))
    h = wide(wide(layers.layer_norm(x, begin_norm_axis=2), 4 * width, "relu"), width)
    x = layers.elementwise_add(x, layers.dropout(h, 0.0))
    loss = layers.mean(layers.softmax_with_cross_entropy(wide(x, 10), label))
    fluid.optimizer.Adam(1e-3).minimize(loss)
    return feed, loss, feed


_sequences = {"rows": 3, "longest": 6, "width": 8}
MODELS = [
    Model("MLP 784-200-200-10, Adam, batch 64", _mlp, "mlp", {"rows": 4, "width": 8}, {}),
    Model("LeNet, momentum, batch 64", _lenet, "lenet", {"rows": 2, "filters": (2, 3), "width": 8}, {}),
    Model("LSTM, Adam, 32 sequences of 5 to 50, 128 wide", _lstm, "lstm", _sequences, {"fixed": False}),
    Model("LSTM, Adam, 32 sequences of 50, 128 wide", _lstm, "lstm", _sequences, {"fixed": True}),
    Model("transformer block, 4 heads, 256 wide, Adam, batch 8 of 128", _transformer, "transformer",
          {"rows": 2, "length": 4, "width": 8, "heads": 2}, {}),
]  # fmt: skip


class Ours:
    """A model in fluidnb, its batch on the device.

    Args:
        model: the model.
        sizes: of it.
        place: the device.

    Attributes:
        start: what its parameters begin with.
        data: the batch for torch.
    """

    def __init__(self, model: Model, sizes: dict[str, Any], place: fluid.CUDAPlace) -> None:
        with fluid.fresh() as (main, startup):
            startup.random_seed = 1
            feed, loss, self.data = model.build(**model.own, **sizes)
        self._exe, self._scope = fluid.Executor(place), fluid.Scope()
        self._run = (main, {name: resident(value, place) for name, value in feed.items()}, [loss])
        self._exe.run(startup, scope=self._scope)
        found = [self._scope.find_var(p.name).get_tensor() for p in main.all_parameters()]
        self.start = [np.array(tensor) for tensor in found]

    def step(self) -> float:
        """Make a step.

        Returns:
            The loss.
        """
        main, feed, fetch = self._run
        return float(self._exe.run(main, feed, fetch, scope=self._scope)[0].item())


def resident(value: Any, place: fluid.CUDAPlace) -> fluid.LoDTensor:
    """A value of the host on a device.

    Args:
        value: an array, or a LoDTensor.
        place: the device.
    """
    tensor = fluid.LoDTensor()
    tensor.set(np.array(value), place)
    if isinstance(value, fluid.LoDTensor):
        tensor.set_lod(value.lod())
    return tensor


def differs(ours: Sequence[float], theirs: Sequence[float], numbers: tuple[int, int]) -> str:
    """In what two trainings are not the same.

    Args:
        ours: losses of the first steps.
        theirs: losses of the same steps.
        numbers: how many parameters each has.

    Returns:
        A few words; empty when they are the same.

    Example:
        >>> differs([2.0, 1.0], [2.0, 1.001], (7, 7)), differs([2.0, 2.1], [2.0, 1.0], (7, 8))
        ('', '7 and 8 parameters')
        >>> differs([2.0, 1.0], [2.0, 1.5], (7, 7))
        'losses 1 and 1.5 in step 1'
    """
    if numbers[0] != numbers[1]:
        return f"{numbers[0]} and {numbers[1]} parameters"
    for step, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        if not abs(a - b) <= (0.02 if step else 1e-3) * max(abs(a), abs(b)):
            return f"losses {a:.5g} and {b:.5g} in step {step}"
    return "" if theirs[-1] < theirs[0] else f"losses do not fall: {theirs[0]:.5g} to {theirs[-1]:.5g}"


def measured(model: Model, place: fluid.CUDAPlace, effort: Effort) -> dict[str, Any]:
    """A model's row.

    Args:
        model: the model.
        place: the device.
        effort: how much is measured.

    Returns:
        Its title, sizes where they are not those of the title, parameters, losses, the seconds of each side, why a
        side is missing, and in what one is not the same.
    """
    sizes = model.small if effort.small else {}
    ours = Ours(model, sizes, place)
    losses = [ours.step() for _ in range(_STEPS)]
    count = sum(value.size for value in ours.start)
    runs: dict[str, Callable[[], float]] = {"fluidnb": ours.step}
    missing, wrong = {}, {}
    if not losses[-1] < losses[0]:
        wrong["fluidnb"] = f"losses do not fall: {losses[0]:.5g} to {losses[-1]:.5g}"
    for kind in torch_side.KINDS:
        try:
            step, theirs = torch_side.training(kind, model.peer, ours.data, ours.start, sizes, effort.on_gpu)
        except torch_side.Missing as why:
            missing[kind] = str(why)
            continue
        runs[kind] = step
        said = differs(losses, [step() for _ in range(_STEPS)], (count, theirs))
        if said:
            wrong[kind] = said
    return {
        "title": model.title, "sizes": sizes, "parameters": count, "losses": losses, "missing": missing,
        "wrong": wrong, "seconds": turns(runs, effort), "goals": GOALS,
    }  # fmt: skip


def lines(rows: Sequence[dict[str, Any]], judged: bool) -> list[str]:
    """The table of the models.

    Args:
        rows: what was measured.
        judged: whether the times mean anything.
    """
    heads = [f"{kind} (goal {bound}x)" for kind, bound in GOALS.items()]
    made = [f"| training step | parameters | loss, {_STEPS} steps | fluidnb | {' | '.join(heads)} |",
            "|---|---:|---:|---:|---:|---:|"]  # fmt: skip
    for row in rows:
        title = row["title"] + (f"; here {row['sizes']}" if row["sizes"] else "")
        said = [_told(row, kind, judged) for kind in ("fluidnb", *GOALS)]
        first, last = row["losses"][0], row["losses"][-1]
        made.append(f"| {title} | {row['parameters']:,} | {first:.3f} to {last:.3f} | {' | '.join(said)} |")
    return made


def _told(row: dict[str, Any], kind: str, judged: bool) -> str:
    if kind in row["missing"]:
        return str(row["missing"][kind])
    if kind in row["wrong"]:
        return f"NOT THE SAME: {row['wrong'][kind]}"
    seconds = row["seconds"]
    own = f"{seconds[kind] * 1e6:,.0f} us"
    return own if kind == "fluidnb" else f"{own}: {verdict(seconds['fluidnb'] / seconds[kind], GOALS[kind], judged)}"
