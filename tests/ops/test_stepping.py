"""Loops that step through sequences of different lengths: what is bound for one batch must serve the next."""

import numpy as np
import pytest

import fluidnb as fluid

WIDTH = 2


def network():
    """h[t] = tanh(x[t] w + h[t-1]), written with the layers under DynamicRNN; gives the steps as sequences."""
    layers = fluid.layers
    x = layers.data("x", [WIDTH], dtype="float64", lod_level=1)
    h0 = layers.data("h", [WIDTH], dtype="float64")
    table = layers.lod_rank_table(x)
    steps = layers.max_sequence_len(table)
    inputs = layers.lod_tensor_to_array(x, table)
    i = layers.zeros([1], "int64")
    memory = layers.array_write(layers.reorder_lod_tensor_by_rank(h0, table), i)
    outputs = layers.create_array("float64")
    cond = layers.less_than(i, steps)
    with layers.While(cond).block():
        h = layers.shrink_memory(layers.array_read(memory, i), i, table)
        h = layers.tanh(layers.elementwise_add(layers.array_read(inputs, i), h))
        layers.array_write(h, i, outputs)
        layers.increment(i)
        layers.array_write(h, i, memory)
        layers.less_than(i, steps, cond=cond)
    return layers.array_to_lod_tensor(outputs, table)


def expected(rows, h0, lengths):
    out, at = [], 0
    for start, n in zip(h0, lengths, strict=True):
        h = start
        for x in rows[at : at + n]:
            h = np.tanh(x + h)
            out.append(h)
        at += n
    return np.array(out).reshape(-1, WIDTH)


@pytest.mark.parametrize("keep", [False, True])
def test_every_batch_has_other_lengths(keep):
    out, exe, rng = network(), fluid.Executor(fluid.CPUPlace()), np.random.default_rng(0)
    for lengths in ([2, 3], [1, 1, 1], [2, 3], [4, 0, 2], [5], [3, 2], [1, 1, 1]):
        rows, h0 = rng.normal(size=(sum(lengths), WIDTH)), rng.normal(size=(len(lengths), WIDTH))
        feed = {"x": fluid.create_lod_tensor(rows, [lengths], fluid.CPUPlace()), "h": h0}
        (got,) = exe.run(feed=feed, fetch_list=[out], return_numpy=False, keep_scopes=keep)
        assert np.allclose(got, expected(rows, h0, lengths), atol=1e-15)
        assert got.recursive_sequence_lengths() == [lengths]


def test_both_walkers_give_the_same_bits():
    out, exe, rng = network(), fluid.Executor(fluid.CPUPlace()), np.random.default_rng(0)
    rows, h0 = rng.normal(size=(9, WIDTH)), rng.normal(size=(3, WIDTH))
    feed = {"x": fluid.create_lod_tensor(rows, [[2, 4, 3]], fluid.CPUPlace()), "h": h0}
    runs = [
        exe.run(feed=feed, fetch_list=[out], return_numpy=False, keep_scopes=keep)[0] for keep in (False, False, True)
    ]
    assert len({np.asarray(r).tobytes() for r in runs}) == 1


def slopes(rows, h0, lengths, weights):
    """Central differences of the weighted sum of what is expected."""
    found = []
    for given in (rows, h0):
        slope = np.empty_like(given)
        for at in np.ndindex(given.shape):
            sides = []
            for step in (1e-6, -1e-6):
                kept, given[at] = given[at], given[at] + step
                sides.append((expected(rows, h0, lengths) * weights).sum())
                given[at] = kept
            slope[at] = (sides[0] - sides[1]) / 2e-6
        found.append(slope)
    return found


@pytest.mark.parametrize("keep", [False, True])
def test_gradients_of_every_batch(keep):
    layers = fluid.layers
    out, exe, rng = network(), fluid.Executor(fluid.CPUPlace()), np.random.default_rng(0)
    block = fluid.default_main_program().global_block()
    weights = layers.data("weights", [WIDTH], dtype="float64", lod_level=1)
    x, h0 = block.var("x"), block.var("h")
    x.stop_gradient = h0.stop_gradient = False
    grads = fluid.gradients(layers.reduce_sum(layers.elementwise_mul(out, weights)), [x, h0])
    assert [g.shape for g in grads] == [(-1, WIDTH)] * 2
    for lengths in ([2, 3], [1, 1, 1], [2, 3], [4, 0, 2], [5], [3, 2]):
        rows, start, w = (rng.normal(size=(n, WIDTH)) for n in (sum(lengths), len(lengths), sum(lengths)))
        feed = {"h": start}
        for name, value in (("x", rows), ("weights", w)):
            feed[name] = fluid.create_lod_tensor(value, [lengths], fluid.CPUPlace())
        got = exe.run(feed=feed, fetch_list=grads, return_numpy=False, keep_scopes=keep)
        for have, want in zip(got, slopes(rows, start, lengths, w), strict=True):
            assert np.allclose(have, want, atol=1e-8), lengths
        assert got[0].recursive_sequence_lengths() == [lengths]


def nested():
    """The last row of each inner sequence, step by step over the outer ones, summed up along them."""
    layers = fluid.layers
    x = layers.data("x", [WIDTH], dtype="float64", lod_level=2)
    table = layers.lod_rank_table(x, level=0)
    steps, inputs = layers.max_sequence_len(table), layers.lod_tensor_to_array(x, table)
    i, outputs = layers.zeros([1], "int64"), layers.create_array("float64")
    cond = layers.less_than(i, steps)
    with layers.While(cond).block():
        inner = layers.array_read(inputs, i)
        order = layers.lod_rank_table(inner)
        first = layers.array_read(layers.lod_tensor_to_array(inner, order), layers.zeros([1], "int64"))
        layers.array_write(layers.scale(first, scale=2.0), i, outputs)
        layers.increment(i)
        layers.less_than(i, steps, cond=cond)
    return outputs


@pytest.mark.parametrize("keep", [False, True])
def test_a_table_made_inside_a_loop(keep):
    out, exe, rng = nested(), fluid.Executor(fluid.CPUPlace()), np.random.default_rng(0)
    for outer, inner in (([2, 1], [1, 3, 2]), ([1, 2], [2, 1, 3]), ([2, 1], [1, 3, 2]), ([3], [1, 1, 2])):
        rows = rng.normal(size=(sum(inner), WIDTH))
        feed = {"x": fluid.create_lod_tensor(rows, [outer, inner], fluid.CPUPlace())}
        (got,) = exe.run(feed=feed, fetch_list=[out], return_numpy=False, keep_scopes=keep)
        starts, groups = np.cumsum([0, *inner]), np.cumsum([0, *outer])
        ranked = sorted(range(len(outer)), key=lambda g: -outer[g])
        for t, element in enumerate(got):
            sequences = [groups[g] + t for g in ranked if outer[g] > t]
            sequences.sort(key=lambda s: -inner[s])
            assert np.array_equal(element, 2 * rows[[starts[s] for s in sequences]])


@pytest.mark.parametrize("keep", [False, True])
def test_steps_that_a_loop_does_not_read_get_no_gradient(keep):
    layers = fluid.layers
    x = layers.data("x", [1], dtype="float64", lod_level=1, stop_gradient=False)
    n = layers.data("n", [1], dtype="int64", append_batch_size=False)
    inputs, i = layers.lod_tensor_to_array(x, layers.lod_rank_table(x)), layers.zeros([1], "int64")
    start = layers.zeros([1], "float64")
    start.stop_gradient = False
    sums, cond = layers.array_write(start, i), layers.less_than(i, n)
    with layers.While(cond).block():
        squares = layers.reshape(layers.reduce_sum(layers.square(layers.array_read(inputs, i))), [1])
        total = layers.elementwise_add(layers.array_read(sums, i), squares)
        layers.increment(i)
        layers.array_write(total, i, sums)
        layers.less_than(i, n, cond=cond)
    grads, exe = fluid.gradients(layers.array_read(sums, i), x), fluid.Executor(fluid.CPUPlace())
    rows = np.arange(1.0, 6.0).reshape(5, 1)
    for count, want in ((3, [2, 4, 6, 8, 10]), (1, [2, 0, 0, 8, 0]), (0, [0] * 5), (2, [2, 4, 0, 8, 10])):
        feed = {"x": fluid.create_lod_tensor(rows, [[3, 2]], fluid.CPUPlace()), "n": np.array([count])}
        (got,) = exe.run(feed=feed, fetch_list=grads, return_numpy=False, keep_scopes=keep)
        assert np.ravel(got).tolist() == want, count
