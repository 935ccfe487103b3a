"""Means of the last values of parameters against plain numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import OpTypeError, OpValueError

L = fluid.layers
EXE = fluid.Executor(fluid.CPUPlace())
FEED = {"x": np.array([[1, 2], [3, 4]], "float32")}
W = "fc_0.w_0"


def model() -> Any:
    """A loss with SGD behind, of a weight that is taken in and a bias that is not."""
    loss = L.mean(L.fc(L.data("x", [2]), 1, param_attr=fluid.ParamAttr(do_model_average=True)))
    fluid.optimizer.SGD(0.1).minimize(loss)
    return loss


def held(name: str = W) -> Any:
    """A copy of what the scope has."""
    return np.array(fluid.global_scope().find_var(name).get_tensor())


def test_the_means_are_those_of_the_last_steps() -> None:
    model()
    average = fluid.optimizer.ModelAverage(0.5, min_average_window=2, max_average_window=3)
    EXE.run(fluid.default_startup_program())
    seen, old, new = [], [], []
    for step in range(1, 9):
        EXE.run(feed=FEED)
        seen.append(held())
        new.append(seen[-1])
        if len(new) >= 2 and len(new) >= min(3, int(step * 0.5)):
            old, new = new, []
        with average.apply(EXE):
            np.testing.assert_allclose(held(), np.mean([*old, *new], axis=0), rtol=1e-5)
        np.testing.assert_array_equal(held(), seen[-1])
    assert 2 <= len([*old, *new]) < len(seen)


def test_the_parameters_come_back_when_asked_and_after_an_error() -> None:
    model()
    average = fluid.optimizer.ModelAverage(0.5, 2, 10, name="mine.")
    EXE.run(fluid.default_startup_program())
    EXE.run(feed=FEED)
    EXE.run(feed=FEED)
    trained = held()
    with average.apply(EXE, need_restore=False):
        pass
    assert np.abs(held() - trained).max() > 1e-3
    average.restore(EXE)
    np.testing.assert_array_equal(held(), trained)
    with pytest.raises(ZeroDivisionError), average.apply(EXE):
        _ = 1 / 0
    np.testing.assert_array_equal(held(), trained)
    assert any(n.startswith(f"mine.{W}_sum_1") for n in fluid.global_scope().vars)


def test_a_parameter_stays_out_unless_it_asks() -> None:
    model()
    average = fluid.optimizer.ModelAverage(0.5, 2, 10)
    written = {n for op in average.apply_program.global_block().ops for n in op.output_arg_names}
    assert W in written and "fc_0.b_0" not in written


def test_the_operators_belong_to_training() -> None:
    model()
    before = len(fluid.default_main_program().global_block().ops)
    fluid.optimizer.ModelAverage(0.5, 2, 10)
    made = fluid.default_main_program().global_block().ops[before:]
    assert {op.type for op in made} == {"average_accumulates"}
    assert {op.attr("op_role") for op in made} == {int(fluid.framework.OpRole.Optimize)}


def test_without_parameters_nothing_is_averaged() -> None:
    fluid.layers.fc(fluid.layers.data("x", [2]), 1)  # no parameter asks for a mean
    before = [len(p.global_block().ops) for p in (fluid.default_main_program(), fluid.default_startup_program())]
    average = fluid.optimizer.ModelAverage(0.15)
    EXE.run(fluid.default_startup_program())
    weights = held("fc_0.w_0")
    with average.apply(EXE):
        np.testing.assert_array_equal(held("fc_0.w_0"), weights)
    average.restore(EXE)
    after = [len(p.global_block().ops) for p in (fluid.default_main_program(), fluid.default_startup_program())]
    assert after == before


def test_what_makes_no_sense_is_refused() -> None:
    model()
    before = len(fluid.default_main_program().global_block().ops)
    with pytest.raises(OpValueError, match="must not be larger"):
        fluid.optimizer.ModelAverage(0.15, 10, 5)
    with pytest.raises(OpTypeError, match="max_average_window of ModelAverage must be an int"):
        fluid.optimizer.ModelAverage(0.15, 2, 10.5)
    assert len(fluid.default_main_program().global_block().ops) == before
    average = fluid.optimizer.ModelAverage(0.15, 2, 10)
    EXE.run(fluid.default_startup_program())
    with pytest.raises(OpValueError, match="Nothing has been averaged yet"), average.apply(EXE):
        pass
