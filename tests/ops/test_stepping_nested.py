"""A network that steps through sequences inside one that steps through groups of them, forward and backward."""

import numpy as np
import pytest

import fluidnb as fluid

layers = fluid.layers
WIDTH = 2


def chain(x):
    """h[t] = tanh(x[t] + h[t-1]) along each sequence of x, from zero."""
    table = layers.lod_rank_table(x)
    steps, inputs, i = layers.max_sequence_len(table), layers.lod_tensor_to_array(x, table), layers.zeros([1], "int64")
    memory, outputs = (
        layers.array_write(layers.scale(layers.array_read(inputs, i), 0.0), i),
        layers.create_array("float64"),
    )
    cond = layers.less_than(i, steps)
    with layers.While(cond).block():
        h = layers.shrink_memory(layers.array_read(memory, i), i, table)
        h = layers.tanh(layers.elementwise_add(layers.array_read(inputs, i), h))
        layers.array_write(h, i, outputs)
        layers.increment(i)
        layers.array_write(h, i, memory)
        layers.less_than(i, steps, cond=cond)
    return layers.array_to_lod_tensor(outputs, table)


def network():
    """The end of the chain of every sequence, found group by group."""
    x = layers.data("x", [WIDTH], dtype="float64", lod_level=2, stop_gradient=False)
    table = layers.lod_rank_table(x, level=0)
    steps, inputs = layers.max_sequence_len(table), layers.lod_tensor_to_array(x, table)
    i, outputs = layers.zeros([1], "int64"), layers.create_array("float64")
    cond = layers.less_than(i, steps)
    with layers.While(cond).block():
        ends = layers.sequence_pool(chain(layers.array_read(inputs, i)), "last")
        layers.array_write(ends, i, outputs)
        layers.increment(i)
        layers.less_than(i, steps, cond=cond)
    return x, layers.array_to_lod_tensor(outputs, table)


def expected(rows, lengths):
    ends, at = [], 0
    for n in lengths:
        h = np.zeros(WIDTH)
        for x in rows[at : at + n]:
            h = np.tanh(x + h)
        ends.append(h)
        at += n
    return np.array(ends)


def slopes(rows, lengths, weights):
    """Central differences of the weighted sum of what is expected."""
    found = np.empty_like(rows)
    for at in np.ndindex(rows.shape):
        sides = []
        for step in (1e-6, -1e-6):
            moved = rows.copy()
            moved[at] += step
            sides.append((expected(moved, lengths) * weights).sum())
        found[at] = (sides[0] - sides[1]) / 2e-6
    return found


@pytest.mark.parametrize("keep", [False, True])
def test_a_network_inside_a_network(keep):
    x, out = network()
    weights = layers.data("weights", [WIDTH], dtype="float64")
    grads = fluid.gradients(layers.reduce_sum(layers.elementwise_mul(out, weights)), x)
    exe, rng = fluid.Executor(fluid.CPUPlace()), np.random.default_rng(0)
    for outer, inner in (
        ([2, 1], [1, 3, 2]), ([1, 2], [2, 1, 3]), ([2, 1], [1, 3, 2]), ([3], [2, 2, 2]), ([2, 2], [2, 2, 2, 2]),
    ):  # fmt: skip
        rows, w = rng.normal(size=(sum(inner), WIDTH)), rng.normal(size=(len(inner), WIDTH))
        feed = {"x": fluid.create_lod_tensor(rows, [outer, inner], fluid.CPUPlace()), "weights": w}
        got, grad = exe.run(feed=feed, fetch_list=[out, *grads], return_numpy=False, keep_scopes=keep)
        assert np.allclose(got, expected(rows, inner)) and got.recursive_sequence_lengths() == [outer]
        assert np.allclose(grad, slopes(rows, inner, w), atol=1e-8)
        assert grad.recursive_sequence_lengths() == [outer, inner]
