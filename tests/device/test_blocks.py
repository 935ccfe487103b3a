"""Loops, branches and recurrent networks train on CUDAPlace as they do on CPUPlace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from tests.paddle.programs_control_flow import OFFSETS, PROGRAMS, SHAPE, trained


def sparse_in_a_step_net() -> Any:
    """A table that each step of a recurrent network looks into; its gradients come in rows."""
    ids = layers.cast(layers.abs(layers.reduce_sum(_given(), dim=1, keep_dim=True)), "int64")
    ids = layers.lod_reset(ids, target_lod=OFFSETS)
    rnn = layers.DynamicRNN()
    with rnn.block():
        now, before = rnn.step_input(ids), rnn.memory(shape=[3], value=0.1)
        word = layers.embedding(now, [9, 3], is_sparse=True)
        hidden = layers.tanh(layers.elementwise_add(before, word))
        rnn.update_memory(before, hidden)
        rnn.output(hidden)
    return rnn()


def _given() -> Any:
    return layers.data("x", shape=list(SHAPE), append_batch_size=False)


@pytest.mark.parametrize("build", [*PROGRAMS, sparse_in_a_step_net], ids=lambda f: f.__name__)
def test_blocks_train_the_same(build: Callable[[], Any], cuda: fluid.CUDAPlace) -> None:
    main, startup, loss = trained(build)
    parameters = [p.name for p in main.all_parameters()]
    got = []
    for place in (fluid.CPUPlace(), cuda):
        numbers, exe = np.random.default_rng(2), fluid.Executor(place)
        with fluid.scope_guard(fluid.Scope()):
            exe.run(startup)
            losses = [
                exe.run(main, feed={"x": numbers.normal(size=SHAPE).astype("float32")}, fetch_list=[loss])[0]
                for _ in range(3)
            ]
            held = [np.array(fluid.global_scope().find_var(name).get_tensor()) for name in parameters]
        got.append([*losses, *held])
    for there, here in zip(got[1], got[0], strict=True):
        np.testing.assert_allclose(there, here, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("build", PROGRAMS[2:8:2], ids=lambda f: f.__name__)
def test_blocks_are_walked_step_by_step(build: Callable[[], Any], cuda: fluid.CUDAPlace) -> None:
    main, startup, loss = trained(build)
    feed = {"x": np.random.default_rng(2).normal(size=SHAPE).astype("float32")}
    got = []
    for place in (fluid.CPUPlace(), cuda):
        with fluid.scope_guard(fluid.Scope()):
            fluid.Executor(place).run(startup)
            session = fluid.debug(main, feed=feed, fetch_list=[loss], place=place)
            session.step(12)
            session.back(5)
            assert session.continue_().state == "done"
            got.append(session.results[0])
            session.close()
    np.testing.assert_allclose(got[1], got[0], rtol=1e-4)


@pytest.mark.parametrize("which", [0, 1])
def test_one_of_several_is_chosen(which: int, cuda: fluid.CUDAPlace) -> None:
    x, mask = _given(), layers.data("mask", shape=[1], dtype="int32", append_batch_size=False)
    ways = [layers.create_tensor("float32") for _ in range(2)]
    x.block.append_op("select_output", {"X": [x], "Mask": [mask]}, {"Out": ways})
    out = layers.create_tensor("float32")
    x.block.append_op("select_input", {"X": ways, "Mask": [mask]}, {"Out": [out]})
    given = np.arange(12, dtype="float32").reshape(SHAPE)
    (got,) = fluid.Executor(cuda).run(feed={"x": given, "mask": np.array([which], "int32")}, fetch_list=[out])
    np.testing.assert_array_equal(got, given)
