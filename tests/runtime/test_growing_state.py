"""A persistable variable that a program reads and gives another shape or LoD: every run sees what the last one left."""

from __future__ import annotations

import numpy as np
import pytest

import fluidnb as fluid

layers = fluid.layers


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def growing():
    """A program that appends what is fed to a variable."""
    x = layers.data("x", [2])
    block = fluid.default_main_program().global_block()
    state = block.create_var(name="state", shape=[-1, 2], dtype="float32", persistable=True)
    grown = layers.concat([state, x], axis=0)
    layers.assign(grown, output=state)
    fluid.global_scope().var("state").get_tensor().set(np.zeros((1, 2), "float32"), fluid.CPUPlace())
    return grown


@pytest.mark.parametrize("stepped", [False, True])
def test_a_state_that_grows_in_every_run(stepped):
    grown, exe = growing(), fluid.Executor(fluid.CPUPlace())
    rows = [[0.0, 0.0]]
    for i in range(1, 5):
        rows.append([i, i])
        [out] = exe.run(feed={"x": np.full((1, 2), i, "float32")}, fetch_list=[grown], keep_scopes=stepped)
        assert out.tolist() == rows


def test_batches_of_changing_size_share_the_state():
    """What is bound for one batch size sees the buffer that another one made."""
    grown, exe = growing(), fluid.Executor(fluid.CPUPlace())
    count = 1
    for size in (1, 2, 1, 2, 0, 1, 2):
        count += size
        [out] = exe.run(feed={"x": np.ones((size, 2), "float32")}, fetch_list=[grown])
        assert len(out) == count and out.sum() == 2 * (count - 1)


def test_a_state_that_keeps_its_shape_is_bound_once():
    x = layers.data("x", [2], append_batch_size=False)
    total = layers.create_global_var([2], 0.0, "float32", persistable=True)
    layers.sums([total, x], out=total)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    entries = set()
    for i in range(1, 4):
        [out] = exe.run(feed={"x": np.ones(2, "float32")}, fetch_list=[total])
        assert out.tolist() == [i, i]
        entries.add(id(exe._hot))
    assert len(entries) == 1


def test_a_state_whose_sequences_change():
    x = layers.data("x", [1], lod_level=1)
    block = fluid.default_main_program().global_block()
    state = block.create_var(name="state", shape=[-1, 1], dtype="float32", lod_level=1, persistable=True)
    sums = layers.sequence_pool(state, "sum")
    layers.assign(x, output=state)
    tensor = fluid.global_scope().var("state").get_tensor()
    tensor.set(np.ones((3, 1), "float32"), fluid.CPUPlace())
    tensor.set_recursive_sequence_lengths([[3]])
    exe, last = fluid.Executor(fluid.CPUPlace()), [3]
    for lengths in ([1, 2], [2, 1], [1, 2], [3], [3], [2, 1]):
        feed = {"x": fluid.create_lod_tensor(np.ones((3, 1), "float32"), [lengths])}
        assert exe.run(feed=feed, fetch_list=[sums])[0].ravel().tolist() == last
        last = lengths
