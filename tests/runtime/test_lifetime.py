"""How long memory lives: what nobody holds goes, and what runs again needs no more than before."""

import gc

import numpy as np

import fluidnb as fluid

L = fluid.layers
PLACE = fluid.CPUPlace()


def used() -> int:
    return fluid.core.memory.used(PLACE)


def loop_over_an_array(steps: int, size: int = 1024) -> fluid.framework.Variable:
    """tanh(w * x), again and again, over an array of tensors."""
    x = L.data("x", [size], append_batch_size=False)
    x.stop_gradient = False
    w = L.create_parameter([size], "float32", name="w")
    i, n = L.zeros([1], "int64"), L.fill_constant([1], "int64", steps)
    array = L.array_write(L.assign(x), i)
    cond = L.less_than(i, n)
    with L.While(cond).block():
        h = L.tanh(L.elementwise_mul(L.array_read(array, i), w))
        L.increment(i)
        L.array_write(h, i, array=array)
        L.less_than(i, n, cond=cond)
    return L.mean(L.array_read(array, i))


def memory_of_runs(loss: fluid.framework.Variable, feed: dict[str, np.ndarray], runs: int = 4) -> list[int]:
    exe = fluid.Executor(PLACE)
    exe.run(fluid.default_startup_program())
    seen = []
    for _ in range(runs):
        exe.run(feed=feed, fetch_list=[loss])
        seen.append(used())
    return seen


def test_a_loop_needs_no_more_from_run_to_run():
    loss = loop_over_an_array(200)
    fluid.backward.append_backward(loss)
    seen = memory_of_runs(loss, {"x": np.ones(1024, "float32")})
    assert seen[1:] == seen[:-1]


def test_a_loop_with_backward_needs_memory_in_proportion_to_its_steps():
    needs = []
    for steps in (50, 100, 200):
        gc.collect()
        before = used()
        with fluid.fresh():
            loss = loop_over_an_array(steps)
            fluid.backward.append_backward(loss)
            needs.append(max(memory_of_runs(loss, {"x": np.ones(1024, "float32")})) - before)
            del loss
    # an iteration keeps the array's element, its gradient, and what tanh and the product read: 4 tensors of 4 KB
    assert (needs[2] - needs[1]) <= 100 * 4 * 4096 * 1.5
    assert abs((needs[2] - needs[1]) - 2 * (needs[1] - needs[0])) <= 64 * 1024


def test_a_loop_without_arrays_or_backward_needs_the_same_however_long():
    needs = []
    for steps in (10, 1000):
        gc.collect()
        with fluid.fresh():
            i, n = L.zeros([1], "int64"), L.fill_constant([1], "int64", steps)
            h = L.fill_constant([1024], "float32", 0.5)
            cond = L.less_than(i, n)
            with L.While(cond, is_test=True).block():
                L.assign(L.tanh(h), h)
                L.increment(i)
                L.less_than(i, n, cond=cond)
            before = used()
            needs.append(memory_of_runs(L.mean(h), {})[-1] - before)
    assert needs[0] == needs[1]


def test_a_program_that_nobody_holds_gives_its_memory_back():
    gc.collect()
    before = used()
    with fluid.fresh():
        loss = loop_over_an_array(100)
        fluid.backward.append_backward(loss)
        assert memory_of_runs(loss, {"x": np.ones(1024, "float32")})[-1] > before + 100 * 4096
        del loss
    gc.collect()
    assert used() <= before
