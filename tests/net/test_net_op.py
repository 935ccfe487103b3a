"""NetOp: networks in networks, sealed before they run."""

from __future__ import annotations

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet, OpTypeError, OpValueError
from fluidnb.net import NetOp, op_def
from tests.net.nets import held, put, scope


def fc() -> NetOp:
    """sigmoid(X·W), sealed."""
    net = NetOp()
    net.append_op(op_def("mul", {"X": "X", "Y": "W"}, {"Out": "pre_activation"}))
    net.append_op(op_def("sigmoid", {"X": "pre_activation"}, {"Out": "fc.out"}))
    net.complete_add_op()
    return net


def nested() -> NetOp:
    """X + Y, and a network of one network."""
    middle, net = NetOp(), NetOp()
    middle.AppendOp(fc())
    middle.CompleteAddOp(True)
    net.append_op(middle)
    net.insert_op(0, op_def("elementwise_add", {"X": "X", "Y": "Y"}, {"Out": "Out"}))
    net.complete_add_op()
    return net


def test_the_whole_as_text() -> None:
    assert str(nested()).splitlines() == [
        "Op(plain_net), inputs:{all[W, X, Y]}, outputs:{all[Out, fc.out, pre_activation]}.",
        "    Op(elementwise_add), inputs:{X[X], Y[Y]}, outputs:{Out[Out]}.",
        "    Op(plain_net), inputs:{all[W, X]}, outputs:{all[fc.out, pre_activation]}.",
        "        Op(plain_net), inputs:{all[W, X]}, outputs:{all[fc.out, pre_activation]}.",
        "            Op(mul), inputs:{X[X], Y[W]}, outputs:{Out[pre_activation]}.",
        "            Op(sigmoid), inputs:{X[pre_activation]}, outputs:{Out[fc.out]}.",
    ]


def test_intermediate_outputs_are_hidden() -> None:
    net = fc()
    assert (net.input_vars(), net.output_vars()) == (["W", "X"], ["fc.out"])
    assert net.output_vars(has_intermediate=True) == ["fc.out", "pre_activation"]
    bare = NetOp()
    bare.append_op(op_def("relu", {"X": "x"}, {"Out": "y"}))
    bare.complete_add_op(calc=False)
    assert bare.sealed and bare.input_vars() == bare.output_vars() == []


def test_a_sealed_network_takes_no_more() -> None:
    net = fc()
    with pytest.raises(EnforceNotMet, match="Cannot AppendOp when this network is sealed"):
        net.append_op(op_def("relu", {"X": "x"}, {"Out": "y"}))
    with pytest.raises(EnforceNotMet, match="Cannot InsertOp when this network is sealed"):
        net.insert_op(0, op_def("relu", {"X": "x"}, {"Out": "y"}))
    assert len(net.ops) == 2


def test_what_it_refuses() -> None:
    net = NetOp()
    with pytest.raises(EnforceNotMet, match="Must clone a sealed NetOp, invoke Net::CompleteAddOp before clone"):
        net.append_op(NetOp())
    with pytest.raises(OpTypeError, match="A NetOp holds operators and networks."):
        net.append_op("relu")  # type: ignore[arg-type]
    with pytest.raises(OpValueError, match="has no place 1"):
        net.insert_op(1, fc())
    assert net.ops == [] and "runs once it is sealed" in net.run(scope()).message


def test_it_runs_in_any_scope() -> None:
    net = nested()
    x, y, w = np.ones((2, 3)), np.full((2, 3), 2.0), np.full((3, 1), 0.5)
    for each in (put(scope(), X=x, Y=y, W=w), put(fluid.Scope(), X=x, Y=y, W=w)):
        assert net.InferShape(each).ok and each.find_var("fc.out").get_tensor().shape() == [2, 1]
        assert not net.Run(each)
        np.testing.assert_array_equal(held(each, "Out"), 3)
        np.testing.assert_allclose(held(each, "fc.out"), 1 / (1 + np.exp(-1.5)), rtol=1e-6)
    assert 'The scope has no variable "W"' in net.run(put(scope(), X=x, Y=y)).message
    assert "mul" in net.run(put(scope(), X=x, Y=y, W=x)).message


def test_messages_are_copied() -> None:
    net, op = NetOp(), op_def("relu", {"X": "x"}, {"Out": "y"})
    net.append_op(op)
    op.type = "tanh"
    assert [o.type for o in net.flat()] == ["relu"] and repr(net) == "<NetOp: 1 operators>"
