"""Ten thousand iterations take the memory of ten: nothing piles up, in the pools or in Python."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import memory
from fluidnb.memory import flags

L = fluid.layers
CPU = fluid.CPUPlace()
X = np.full((64, 64), 0.5, "float32")


@pytest.fixture(autouse=True)
def without_native_code() -> Iterator[None]:
    """No compiler in the background, whose memory would be counted."""
    before = flags.values["native"]
    fluid.set_flags({"FLAGS_native": "off"})
    yield
    flags.values["native"] = before


@contextmanager
def loop(count: Any) -> Iterator[Any]:
    """A while that runs so often; gives its counter."""
    i = L.zeros([1], "int64")
    more = L.less_than(i, count)
    with L.While(more).block():
        yield i
        L.increment(i)
        L.less_than(i, count, cond=more)


def plain(count: Any, x: Any) -> Any:
    """A sum."""
    total = L.scale(x, scale=0.0)
    with loop(count):
        L.sums([total, x], out=total)
    return total


def branch(count: Any, x: Any) -> Any:
    """A branch in every iteration, taken at first only."""
    total, five = L.scale(x, scale=0.0), L.fill_constant([1], "int64", 5)
    with loop(count) as i:
        with L.control_flow.ConditionalBlock([L.less_than(i, five)], is_scalar_condition=True).block():
            L.sums([total, x], out=total)
    return total


def inner_loop(count: Any, x: Any) -> Any:
    """A loop in every iteration."""
    total, two = L.scale(x, scale=0.0), L.fill_constant([1], "int64", 2)
    with loop(count), loop(two):
        L.sums([total, x], out=total)
    return total


def array(count: Any, x: Any) -> Any:
    """An element of an array, read and written again and again."""
    zero = L.zeros([1], "int64")
    held = L.array_write(x, zero)
    with loop(count):
        L.array_write(L.scale(L.array_read(held, zero), scale=0.5), zero, array=held)
    return L.array_read(held, zero)


def random(count: Any, x: Any) -> Any:
    """Random numbers."""
    total = L.scale(x, scale=0.0)
    with loop(count):
        L.sums([total, L.dropout(x, 0.5)], out=total)
    return total


def grown(program: fluid.Program, out: Any, count: int) -> tuple[int, int, int]:
    """By how much a run raises the bytes in the pool, their peak, and the bytes in Python."""
    gc.collect()
    memory.pool(CPU).reset_peak()
    used, python = memory.used(CPU), tracemalloc.get_traced_memory()[0]
    fluid.Executor(CPU).run(program, feed={"count": np.array([count]), "x": X}, fetch_list=[out])
    gc.collect()
    return memory.used(CPU) - used, memory.stats(CPU).peak - used, tracemalloc.get_traced_memory()[0] - python


@pytest.mark.parametrize("make", [plain, branch, inner_loop, array, random], ids=lambda make: make.__name__)
def test_ten_thousand_iterations(make: Callable[[Any, Any], Any]) -> None:
    out = make(L.data("count", [1], False, "int64"), L.data("x", [64]))
    program = fluid.default_main_program()
    tracemalloc.start()
    try:
        for _ in range(2):
            grown(program, out, 10)
        few = grown(program, out, 10)
        long = [grown(program, out, 10000)]
        while long[-1][2] >= few[2] + 20_000 and len(long) < 3:  # other threads, a test runner's own, allocate too
            long.append(grown(program, out, 10000))
    finally:
        tracemalloc.stop()
    for many in long:
        assert few[0] == many[0] == 0
        assert many[1] <= few[1]
    assert long[-1][2] < few[2] + 20_000


def test_what_backward_keeps_serves_the_next_run() -> None:
    count, x = L.data("count", [1], False, "int64"), L.data("x", [64], stop_gradient=False)
    total = L.scale(x, scale=0.0)
    with loop(count):
        L.sums([total, L.square(L.scale(x, scale=0.5))], out=total)
    program, loss = fluid.default_main_program(), L.mean(total)
    inference = program.clone(for_test=True)
    fluid.append_backward(loss)
    tracemalloc.start()
    try:
        kept = [grown(program, x.grad, n) for n in (5, 200, 200, 50, 200)]
        free = [grown(inference, loss.name, n) for n in (5, 200)]
    finally:
        tracemalloc.stop()
    assert max(kept[1][0], kept[1][2]) > 190 * X.nbytes  # each iteration's own values
    assert all(row[0] == 0 and row[2] < 20_000 for row in (*kept[2:], free[1]))


def test_kept_scopes_go_with_their_run() -> None:
    out = plain(L.data("count", [1], False, "int64"), L.data("x", [64]))
    exe, scope = fluid.Executor(CPU), fluid.Scope()
    gc.collect()
    before = memory.used(CPU)
    for n in (3, 30, 3):
        exe.run(feed={"count": np.array([n]), "x": X}, fetch_list=[out], scope=scope, keep_scopes=True)
        assert len(scope.kids[0].kids) == n
    scope.drop_kids()
    gc.collect()
    assert memory.used(CPU) == before
