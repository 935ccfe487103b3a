"""Every tensor of every scope lies in the pool, and a step of training allocates next to nothing outside it."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import memory
from fluidnb.runtime import Scope
from fluidnb.values import LoDTensor, LoDTensorArray
from tests.runtime.numpy_memory import counted

CPU = fluid.CPUPlace()


def digits_mlp() -> tuple[Any, Any]:
    """A classifier of 8x8 images with two hidden layers, Adam, loss and accuracy."""
    image, label = fluid.layers.data("image", shape=[64]), fluid.layers.data("label", shape=[1], dtype="int64")
    hidden = fluid.layers.fc(fluid.layers.fc(image, size=128, act="relu"), size=64, act="relu")
    prediction = fluid.layers.fc(hidden, size=10, act="softmax")
    loss = fluid.layers.mean(fluid.layers.cross_entropy(prediction, label))
    accuracy = fluid.layers.accuracy(prediction, label)
    fluid.optimizer.Adam(0.001).minimize(loss)
    return loss, accuracy


def batch(size: int = 256) -> dict[str, Any]:
    """Random images and labels."""
    rng = np.random.default_rng(size)
    return {"image": rng.random((size, 64), dtype="float32"), "label": rng.integers(0, 10, (size, 1))}


def loop() -> tuple[Any, Any]:
    """A loop that fills an array of tensors."""
    x, i, n = fluid.layers.data("x", shape=[3]), fluid.layers.zeros([1], "int64"), fluid.layers.ones([1], "int64")
    array = fluid.layers.array_write(x, i)
    cond = fluid.layers.less_than(i, n)
    with fluid.layers.While(cond).block():
        inside = fluid.layers.scale(fluid.layers.array_read(array, i), scale=2.0)
        fluid.layers.array_write(inside, fluid.layers.increment(i), array=array)
        fluid.layers.less_than(i, n, cond=cond)
    return array, fluid.layers.array_read(array, n)


def tensors(scope: Scope) -> Iterator[tuple[str, LoDTensor]]:
    """The tensors of a scope that hold something, arrays of tensors included."""
    for name, variable in scope.vars.items():
        held = variable.value if isinstance(variable.value, LoDTensorArray) else [variable.value]
        yield from ((name, t) for t in held if isinstance(t, LoDTensor) and t.array is not None and t.array.size)


def outside_the_pool(scopes: list[Scope]) -> tuple[list[str], int]:
    """Names of tensors whose data is not in a chunk of the pool, and how many tensors there are."""
    every = [(name, t) for scope in scopes for name, t in tensors(scope)]
    return [n for n, t in every if not memory.contains(CPU, t.array.ctypes.data)], len(every)


@pytest.mark.parametrize("machine", [False, True])
@pytest.mark.parametrize("make", [digits_mlp, loop])
def test_every_tensor_of_every_scope_lies_in_the_pool(make: Any, machine: bool) -> None:
    before = [o for o in gc.get_objects() if isinstance(o, Scope)]  # held, so that no identity comes twice
    known = set(map(id, before))
    fetches = list(make())
    feed = batch() if make is digits_mlp else {"x": np.ones((4, 3), "float32")}
    exe, scope = fluid.Executor(CPU), fluid.Scope()
    exe.run(fluid.default_startup_program(), scope=scope)
    for _ in range(3):
        exe.run(feed=feed, fetch_list=fetches, scope=scope, keep_scopes=machine)
    scopes = [o for o in gc.get_objects() if isinstance(o, Scope) and id(o) not in known]
    outside, count = outside_the_pool(scopes)
    assert outside == [] and count > (40 if make is digits_mlp else 5)


def test_the_look_itself_would_notice() -> None:
    scope = Scope()
    scope.var("stranger").value = LoDTensor(np.ones(3))
    assert outside_the_pool([scope]) == (["stranger"], 1)


def test_a_step_of_training_allocates_next_to_nothing() -> None:
    fetches, feed, exe = list(digits_mlp()), batch(), fluid.Executor(CPU)
    exe.run(fluid.default_startup_program())
    for _ in range(3):
        exe.run(feed=feed, fetch_list=fetches)
    entry = exe._hot
    assert entry is not None
    (arena,) = (a.nbytes for a in entry.bound.arenas.values())
    assert arena > 250_000
    with counted() as sizes:
        fetched = exe.run(feed=feed, fetch_list=fetches)
    assert sum(sizes) - sum(f.nbytes for f in fetched) < 0.01 * arena, sizes


def test_nothing_stays_behind_from_step_to_step(monkeypatch: pytest.MonkeyPatch) -> None:
    # on a slow machine the runs take long enough to be compiled in their midst, and native code has memory of its own
    monkeypatch.setitem(memory.flags.values, "native", "off")
    fetches, feed, exe = list(digits_mlp()), batch(), fluid.Executor(CPU)
    exe.run(fluid.default_startup_program())
    exe.run(feed=feed, fetch_list=fetches)
    exe.run(feed=feed, fetch_list=fetches)
    used = memory.used(CPU)
    tracemalloc.start()
    try:
        for _ in range(20):
            exe.run(feed=feed, fetch_list=fetches)
        arrays = tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)
        held = tracemalloc.take_snapshot().filter_traces([arrays])
    finally:
        tracemalloc.stop()
    assert memory.used(CPU) <= used
    assert sum(trace.size for trace in held.traces) <= 64  # the last fetched copies


def test_the_count_counts() -> None:
    with counted() as sizes:
        kept = np.empty(1000), np.zeros((10, 10), "float32")
    np.empty(5)
    assert sizes == [8000, 400] and len(kept) == 2


def test_a_planned_run_needs_less_than_its_tensors_one_by_one() -> None:
    fetches, feed, exe = list(digits_mlp()), batch(), fluid.Executor(CPU)
    exe.run(fluid.default_startup_program())
    exe.run(feed=feed, fetch_list=fetches)
    assert exe._hot is not None
    (arena,) = (a.nbytes for a in exe._hot.bound.arenas.values())
    scope = fluid.Scope()
    exe.run(fluid.default_startup_program(), scope=scope)
    exe.run(feed=feed, fetch_list=fetches, scope=scope, keep_scopes=True)
    (local,) = scope.kids
    assert arena < 0.5 * sum(t.array.nbytes for _, t in tensors(local))
