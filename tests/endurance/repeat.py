"""Repeats one kind of use in a process of its own and prints the resident memory. Usage: repeat.py KIND TIMES"""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import fluidnb as fluid
from fluidnb import layers

#: Where memory is read: a tenth, two tenths ... of the repetitions.
MARKS = 10


def resident() -> int:
    """Kilobytes of resident memory, without garbage."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4


def mlp() -> layers.Variable:
    """Builds a small network that trains; its loss."""
    loss = layers.mean(layers.fc(layers.data("x", [8]), 16, act="relu"))
    fluid.optimizer.Adam(0.01).minimize(loss)
    return loss


def programs() -> Callable[[int], None]:
    """Builds, runs and drops a program, its scope and its executor."""

    def once(i: int) -> None:
        main, startup, scope, exe = fluid.Program(), fluid.Program(), fluid.Scope(), fluid.Executor()
        with fluid.program_guard(main, startup), fluid.unique_name.guard():
            loss = mlp()
        exe.run(startup, scope=scope)
        exe.run(main, feed={"x": np.ones((4, 8), "float32")}, fetch_list=[loss], scope=scope)

    return once


def batches() -> Callable[[int], None]:
    """Trains with batch sizes between 1 and 600."""
    loss, exe, rng = mlp(), fluid.Executor(), np.random.default_rng(0)
    exe.run(fluid.default_startup_program())
    return lambda i: exe.run(feed={"x": np.ones((rng.integers(1, 600), 8), "float32")}, fetch_list=[loss])


def lods() -> Callable[[int], None]:
    """Trains an LSTM; nearly every batch has a LoD that was not there before."""
    words = layers.data("x", [1], dtype="int64", lod_level=1)
    states, _ = layers.dynamic_lstm(layers.fc(layers.embedding(words, [50, 16]), 64), 64)
    loss = layers.mean(layers.sequence_pool(states, "max"))
    fluid.optimizer.SGD(0.01).minimize(loss)
    exe, rng = fluid.Executor(), np.random.default_rng(0)
    exe.run(fluid.default_startup_program())

    def once(i: int) -> None:
        lengths = rng.integers(1, 12, size=rng.integers(1, 6)).tolist()
        data = rng.integers(0, 50, (sum(lengths), 1))
        exe.run(feed={"x": fluid.create_lod_tensor(data, [lengths], fluid.CPUPlace())}, fetch_list=[loss])

    return once


def cells() -> Callable[[int], None]:
    """Runs one cell of a notebook again and again, with other text each time."""
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance(history_length=0)
    shell.history_manager.enabled = False
    shell.cache_size = 0
    shell.run_cell("%load_ext fluidnb", silent=True)
    shell.run_cell("%%fluid first\nx = layers.data('x', [8])", silent=True)
    shell.run_cell("%%fluid second\nh = layers.fc(x, 4)", silent=True)

    def once(i: int) -> None:
        result = shell.run_cell(f"%%fluid first\nx = layers.data('x', [{8 + i % 7}])", silent=True)
        result.raise_error()

    return once


def debugger() -> Callable[[int], None]:
    """Steps through a training step and back."""
    loss, exe = mlp(), fluid.Executor()
    exe.run(fluid.default_startup_program())

    def once(i: int) -> None:
        with fluid.debug(feed={"x": np.ones((4, 8), "float32")}, fetch_list=[loss]) as session:
            session.step(5)
            session.back(3)

    return once


KINDS = {f.__name__: f for f in (programs, batches, lods, cells, debugger)}


def main(kind: str, times: int) -> None:
    """Repeats, and prints kilobytes at the marks as JSON."""
    once, found = KINDS[kind](), []
    for i in range(times):
        once(i)
        if (i + 1) % (times // MARKS) == 0:
            found.append(resident())
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
