"""NetBuilder: layers by name, training in one call."""

from __future__ import annotations

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import FluidError, OpTypeError
from fluidnb.net import NetBuilder, NetDesc, PlainNet, RecurrentNet, var_def
from tests.net.nets import held, put, scope


def builder() -> NetBuilder:
    """A builder of a net with data variables x [-1, 2] and y [-1, 1]."""
    return NetBuilder(PlainNet(NetDesc(vars=[var_def("x", [-1, 2]), var_def("y", [-1, 1])])))


def regression(build: NetBuilder) -> fluid.Variable:
    """The mean squared error of an fc."""
    p = build.add_op("fc", input="x", size=1, param_attr="w", bias_attr=False)
    return build.add_op("mean", build.add_op("square_error_cost", input=p, label="y"))


def test_training_adds_its_operators_once() -> None:
    build, inside = builder(), put(scope(), x=np.ones((4, 2)), y=np.ones((4, 1)))
    cost = regression(build)
    assert build.last_forward_op == len(build.net) - 1 and build.need_rebuild_net
    build.backward_from(cost).check()
    build.add_optimization(0.1).check()
    build.run(inside).check()
    count, first = len(build.net), held(inside, cost.name)
    for _ in range(20):
        build.run(inside).check()
    assert len(build.net) == count and not build.need_rebuild_net
    assert held(inside, cost.name) < 0.1 * first


def test_forward_only_leaves_parameters_alone() -> None:
    build, inside = builder(), put(scope(), x=np.ones((4, 2)), y=np.ones((4, 1)))
    cost = regression(build)
    assert build.run(inside, need_backward=False).ok  # without a cost too
    before = held(inside, "w")
    build.backward_from(cost.name).check()
    build.run(inside).check()
    trained = held(inside, "w")
    assert (trained != before).any()
    build.run(inside, need_backward=False).check()
    np.testing.assert_array_equal(held(inside, "w"), trained)


def test_more_layers_after_training() -> None:
    build, inside = builder(), put(scope(), x=np.ones((4, 2)), y=np.ones((4, 1)))
    cost = regression(build)
    build.backward_from(cost).check()
    build.run(inside).check()
    forward = build.last_forward_op
    double = build.add_op("scale", cost, scale=2.0)
    assert build.need_rebuild_net and build.last_forward_op == forward + 1 == len(build.net) - 1
    build.BackwardFrom(double).check()
    before = held(inside, "w")
    build.Run(inside).check()
    assert held(inside, double.name) == 2 * held(inside, cost.name) and (held(inside, "w") != before).any()


def test_operators_without_a_layer_function() -> None:
    build, inside = builder(), put(scope(), x=[[1.0, -2.0]])
    assert not hasattr(fluid.layers, "assign_value")
    made = build.add_op("assign_value", shape=[2], dtype=5, fp32_values=[3.0, 4.0])
    build.run(inside, need_backward=False).check()
    np.testing.assert_array_equal(held(inside, made.name), [3, 4])


def test_what_does_not_go() -> None:
    with pytest.raises(OpTypeError, match="A NetBuilder builds a PlainNet"):
        NetBuilder(RecurrentNet())  # type: ignore[arg-type]
    build = builder()
    with pytest.raises(FluidError, match="fcc"):
        build.add_op("fcc", "x")
    assert NetBuilder().run(scope(), need_backward=False).ok
    assert "has no cost to minimize" in build.run(scope()).message
    assert 'There is no optimizer "amad"' in build.add_optimization(0.1, "amad").message
    assert "coast" in build.backward_from("coast").message
    cost = build.add_op("fc", "x", size=2)
    build.backward_from(cost).check()
    count = len(build.net)
    assert build.run(put(scope(), x=[[1.0, 1.0]])) and len(build.net) == count  # not one number
