"""Exponential moving averages of parameters against plain numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import OpTypeError, OpValueError

L = fluid.layers
EXE = fluid.Executor(fluid.CPUPlace())
FEED = {"x": np.array([[1, 2], [3, 4]], "float32")}


def model() -> Any:
    """A loss with SGD behind; gives (the loss, the program without SGD)."""
    loss = L.mean(L.fc(L.data("x", [2]), 1))
    test = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.SGD(0.1).minimize(loss)
    return loss, test


def held(name: str) -> Any:
    """A copy of what the scope has."""
    return np.array(fluid.global_scope().find_var(name).get_tensor())


@pytest.mark.parametrize("counted", [False, True])
def test_the_averages_are_those_of_numpy(counted: bool) -> None:
    loss, test = model()
    steps = L.autoincreased_step_counter(begin=0) if counted else None
    ema = fluid.optimizer.ExponentialMovingAverage(0.6, thres_steps=steps)
    ema.update()
    EXE.run(fluid.default_startup_program())
    mean, product = 0.0, 1.0
    for t in range(4):
        EXE.run(feed=FEED, fetch_list=[loss])
        decay = min(0.6, (1 + t) / (10 + t)) if counted else 0.6
        mean, product = decay * mean + (1 - decay) * held("fc_0.w_0"), product * decay
    trained = held("fc_0.w_0")
    before = EXE.run(test, feed=FEED, fetch_list=[loss.name])[0]
    with ema.apply(EXE):
        np.testing.assert_allclose(held("fc_0.w_0"), mean / (1 - product), rtol=1e-5)
        assert EXE.run(test, feed=FEED, fetch_list=[loss.name])[0] != before
    np.testing.assert_array_equal(held("fc_0.w_0"), trained)
    assert EXE.run(test, feed=FEED, fetch_list=[loss.name])[0] == before


def test_averages_have_the_dtype_of_their_parameter() -> None:
    w = L.create_parameter([2], "float64", name="w")
    v = L.create_parameter([2], "float32", name="v")
    fluid.optimizer.SGD(0.1).minimize(L.elementwise_add(L.reduce_sum(w), L.cast(L.reduce_sum(v), "float64")))
    ema = fluid.optimizer.ExponentialMovingAverage(0.6)
    ema.update()
    EXE.run(fluid.default_startup_program())
    means, product = {"w": 0.0, "v": 0.0}, 1.0
    for _ in range(3):
        EXE.run()
        means, product = {n: 0.6 * mean + 0.4 * held(n) for n, mean in means.items()}, product * 0.6
    with ema.apply(EXE):
        np.testing.assert_allclose(held("w"), means["w"] / (1 - product), rtol=1e-7)
        np.testing.assert_allclose(held("v"), means["v"] / (1 - product), rtol=1e-5)
    assert (held("w").dtype, held("v").dtype) == (np.float64, np.float32)


def test_what_is_refused_changes_nothing() -> None:
    fluid.optimizer.SGD(0.1).minimize(L.reduce_sum(L.create_parameter([2], "float32", name="w")))
    programs = fluid.default_main_program(), fluid.default_startup_program()
    ema = fluid.optimizer.ExponentialMovingAverage(0.5, thres_steps=L.data("steps", [3]))
    before = [p.desc.serialize_to_string() for p in programs]
    with pytest.raises(ValueError, match="Broadcast dimension mismatch"):
        ema.update()
    assert [p.desc.serialize_to_string() for p in programs] == before
    fluid.default_main_program().global_block().create_parameter(name="whole", shape=[2], dtype="int64")
    before = [p.desc.serialize_to_string() for p in programs]
    with pytest.raises(fluid.errors.FluidError):
        fluid.optimizer.ExponentialMovingAverage(0.5)
    assert [p.desc.serialize_to_string() for p in programs] == before


def test_the_parameters_come_back_when_asked() -> None:
    model()
    ema = fluid.optimizer.ExponentialMovingAverage(0.5, name="mine.")
    ema.update()
    EXE.run(fluid.default_startup_program())
    EXE.run(feed=FEED)
    EXE.run(feed=FEED)
    trained = held("fc_0.w_0")
    with ema.apply(EXE, need_restore=False):
        pass
    assert np.abs(held("fc_0.w_0") - trained).max() > 1e-3
    ema.restore(EXE)
    np.testing.assert_array_equal(held("fc_0.w_0"), trained)
    assert any(n.startswith("mine.fc_0.w_0_ema") for n in fluid.global_scope().vars)


def test_a_frozen_parameter_has_no_average() -> None:
    L.fc(L.data("x", [2]), 1, bias_attr=fluid.ParamAttr(trainable=False))
    ema = fluid.optimizer.ExponentialMovingAverage()
    written = {n for op in ema.apply_program.global_block().ops for n in op.output_arg_names}
    assert "fc_0.w_0" in written and "fc_0.b_0" not in written


def test_the_operators_belong_to_training() -> None:
    model()
    before = len(fluid.default_main_program().global_block().ops)
    fluid.optimizer.ExponentialMovingAverage().update()
    roles = [op.attr("op_role") for op in fluid.default_main_program().global_block().ops[before:]]
    assert roles and set(roles) == {int(fluid.framework.OpRole.Optimize)}


def test_mistakes_are_said() -> None:
    with pytest.raises(OpValueError, match="no parameters to average"):
        fluid.optimizer.ExponentialMovingAverage()
    model()
    before = fluid.default_main_program().desc.serialize_to_string()
    with pytest.raises(OpValueError, match="below 1"):
        fluid.optimizer.ExponentialMovingAverage(1.0)
    with pytest.raises(OpTypeError, match="thres_steps of ExponentialMovingAverage must be a Variable"):
        fluid.optimizer.ExponentialMovingAverage(thres_steps=3)
    assert fluid.default_main_program().desc.serialize_to_string() == before
    ema = fluid.optimizer.ExponentialMovingAverage()
    with fluid.program_guard(fluid.Program()), pytest.raises(OpValueError, match="averages are of another program"):
        ema.update()
    EXE.run(fluid.default_startup_program())
    with pytest.raises(OpValueError, match="Nothing has been averaged yet"), ema.apply(EXE):
        pass
