"""A process of its own that measures the pool: nothing of other tests is freed meanwhile. Run by `test_lifetime.py`."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable

import numpy as np

import fluidnb as fluid

L = fluid.layers
PLACE = fluid.CPUPlace()
SIZE = 1024
FEED = {"x": np.ones(SIZE, "float32")}


def used() -> int:
    """Bytes handed out, after what nobody holds is gone."""
    gc.collect()
    return int(fluid.core.memory.used(PLACE))


def loop_over_an_array(steps: int) -> fluid.framework.Variable:
    """The mean of tanh(w * x), again and again, over an array of tensors, with backward."""
    x = L.data("x", [SIZE], append_batch_size=False)
    x.stop_gradient = False
    w = L.create_parameter([SIZE], "float32", name="w")
    i, n = L.zeros([1], "int64"), L.fill_constant([1], "int64", steps)
    array = L.array_write(L.assign(x), i)
    cond = L.less_than(i, n)
    with L.While(cond).block():
        h = L.tanh(L.elementwise_mul(L.array_read(array, i), w))
        L.increment(i)
        L.array_write(h, i, array=array)
        L.less_than(i, n, cond=cond)
    loss = L.mean(L.array_read(array, i))
    fluid.backward.append_backward(loss)
    return loss


def loop_over_a_tensor(steps: int) -> fluid.framework.Variable:
    """tanh again and again in one variable, without backward."""
    i, n = L.zeros([1], "int64"), L.fill_constant([1], "int64", steps)
    h = L.fill_constant([SIZE], "float32", 0.5)
    cond = L.less_than(i, n)
    with L.While(cond, is_test=True).block():
        L.assign(L.tanh(h), h)
        L.increment(i)
        L.less_than(i, n, cond=cond)
    return L.mean(h)


def many_answers() -> list[int]:
    """Bytes while sequences are split in ways that never come again: every mask is a new answer of a guard."""
    with fluid.fresh():
        x, mask = L.data("x", [8], lod_level=1), L.data("mask", [1], dtype="bool")
        yes, no = L.split_lod_tensor(x, mask)
        out = L.mean(L.merge_lod_tensor(L.scale(yes, 2.0), L.scale(no, 3.0), x, mask))
        exe, seen = fluid.Executor(PLACE), []
        rows = fluid.create_lod_tensor(np.ones((32, 8), "float32"), [[2] * 16], PLACE)
        for run in range(1, 6001):
            bits = np.unpackbits(np.array([run], ">u2").view("u1")).astype(bool).reshape(16, 1)
            exe.run(feed={"x": rows, "mask": bits}, fetch_list=[out])
            if run % 1000 == 0:
                seen.append(used())
    return seen


def runs(build: Callable[[int], fluid.framework.Variable], steps: int) -> list[int]:
    """Bytes that a program needs after each of its runs, and after it is gone."""
    before, seen = used(), []
    with fluid.fresh():
        loss = build(steps)
        exe = fluid.Executor(PLACE)
        exe.run(fluid.default_startup_program())
        for _ in range(4):
            exe.run(feed=FEED if build is loop_over_an_array else {}, fetch_list=[loss])
            seen.append(used() - before)
        del loss, exe
    return [*seen, used() - before]


if __name__ == "__main__":
    print(
        json.dumps(
            {
                "array": {n: runs(loop_over_an_array, n) for n in (50, 100, 200)},
                "tensor": {n: runs(loop_over_a_tensor, n) for n in (10, 1000)},
                "answers": {6000: many_answers()},
            }
        )
    )
