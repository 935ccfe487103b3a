"""Models that are trained for the measurements, and what measures them."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import fluidnb as fluid
from fluidnb import memory

L = fluid.layers
CPU = fluid.CPUPlace()
Feed = dict[str, np.ndarray]


@dataclass
class Model:
    """A model ready to train.

    Args:
        main: the training program.
        startup: the startup program.
        fetch: what is fetched, the loss first.
        feed: a batch.
    """

    main: fluid.Program
    startup: fluid.Program
    fetch: list[str]
    feed: Feed

    def scope(self) -> fluid.Scope:
        """A new scope with the first parameters."""
        scope = fluid.Scope()
        fluid.Executor(CPU).run(self.startup, scope=scope)
        return scope

    def train(self, steps: int = 3, machine: bool = False) -> list[bytes]:
        """The bytes of everything fetched in some steps, and of the parameters after the last."""
        exe, scope = fluid.Executor(CPU), self.scope()
        out = []
        for _ in range(steps):
            got = exe.run(self.main, feed=self.feed, fetch_list=self.fetch, scope=scope, keep_scopes=machine)
            out += [x.tobytes() for x in got]
        scope.drop_kids()
        return out + [np.array(scope.find_var(n).get_tensor()).tobytes() for n in sorted(scope.vars)]

    def peak(self) -> int:
        """Bytes at the peak of a run that nobody planned: the machine gives every tensor a block of its own."""
        scope, pool = self.scope(), memory.pool(CPU)
        gc.collect()
        before = memory.used(CPU)
        pool.reset_peak()
        fluid.Executor(CPU).run(self.main, feed=self.feed, fetch_list=self.fetch, scope=scope, keep_scopes=True)
        scope.drop_kids()
        return memory.stats(CPU).peak - before

    def arena(self) -> int:
        """Bytes that a planned run takes: its arenas, and what has a block of its own."""
        scope = self.scope()
        gc.collect()
        before = memory.used(CPU)
        exe = fluid.Executor(CPU)
        exe.run(self.main, feed=self.feed, fetch_list=self.fetch, scope=scope)
        return memory.used(CPU) - before


def build(make: Callable[[], tuple[list[Any], Feed]], optimizer: Any = None) -> Model:
    """Build a model and its backward.

    Args:
        make: writes the forward part; gives what is fetched, the loss first, and a batch.
        optimizer: minimizes the loss; None for none.
    """
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 7
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        fetch, feed = make()
        if optimizer is not None:
            optimizer.minimize(fetch[0])
    return Model(main, startup, [v.name for v in fetch], feed)


def lenet(batch: int = 64) -> tuple[list[Any], Feed]:
    """LeNet for images of 28 by 28."""
    image, label = L.data("image", [1, 28, 28]), L.data("label", [1], dtype="int64")
    x = image
    for filters in (20, 50):
        x = L.pool2d(L.conv2d(x, filters, 5, act="relu"), 2, "max", 2)
    guess = L.fc(L.fc(x, 500, act="relu"), 10, act="softmax")
    loss = L.mean(L.cross_entropy(guess, label))
    rng = np.random.default_rng(0)
    feed = {"image": rng.random((batch, 1, 28, 28), "float32"), "label": rng.integers(0, 10, (batch, 1))}
    return [loss, L.accuracy(guess, label)], feed


def cell(x: Any, h: Any, c: Any, size: int) -> tuple[Any, Any]:
    """One step of an LSTM, written out: the new h and c."""
    gates = L.elementwise_add(L.fc(x, 4 * size), L.fc(h, 4 * size, bias_attr=False))
    i, f, o, g = L.split(gates, 4, dim=1)
    c = L.elementwise_add(L.elementwise_mul(L.sigmoid(f), c), L.elementwise_mul(L.sigmoid(i), L.tanh(g)))
    return L.elementwise_mul(L.sigmoid(o), L.tanh(c)), c


def words(steps: int, batch: int, size: int) -> Feed:
    """Sequences of vectors, time first, and what follows them."""
    rng = np.random.default_rng(0)
    return {
        "x": rng.standard_normal((steps, batch, size)).astype("float32"),
        "y": rng.standard_normal((batch, 1)).astype("float32"),
    }
