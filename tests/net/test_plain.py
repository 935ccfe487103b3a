"""PlainNet: messages in, operators in order, any scope, backward and optimizer."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import FluidError, NotFound, OpTypeError, OpValueError
from fluidnb.net import (
    Net,
    NetDesc,
    OpContext,
    OptAttrs,
    PlainNet,
    Recurrent,
    RecurrentNet,
    RecursiveNet,
    op_def,
    var_def,
)  # fmt: skip
from tests.net.nets import CPU, held, put, regression, scope, step_net, tree_net

X, Y = [[1.0, 2.0], [3.0, 4.0]], [[0.0], [1.0]]
#: 3 and 7 predicted, 9 and 36 lost
COST = 22.5


def test_the_factory_gives_each_kind_and_none_for_an_unknown_one() -> None:
    assert type(Net.create()) is PlainNet and type(Net.create_net(regression())) is PlainNet
    assert type(Net.create(tree_net())) is RecursiveNet and type(Net.CreateNet(step_net(Recurrent))) is RecurrentNet
    assert Net.create(NetDesc(model_type=17)) is None
    assert Net.create() and len(PlainNet()) == 0  # one without operators is a network too
    with pytest.raises(OpTypeError, match="A network is built from a NetDesc"):
        Net.create("NN")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="abstract"):
        Net()  # type: ignore[abstract]


def test_a_description_travels_as_bytes() -> None:
    data = regression().SerializeToString()
    inside = put(scope(), x=X, y=Y)
    net = Net.create(data)
    assert net is not None and not net.run(inside)
    assert held(inside, "cost") == COST
    assert NetDesc.FromString(data) == regression()
    with pytest.raises(OpValueError, match="Fail to parse net_desc"):
        Net.create(b"\xff")


def test_one_net_in_two_scopes() -> None:
    net, one, other = PlainNet(regression()), put(scope(), x=X, y=Y), put(fluid.Scope(), x=[[1.0, 1.0]], y=[[0.0]])
    assert net.run(one).ok and net.run(other, OpContext(CPU)).ok
    assert (held(one, "cost"), held(other, "cost")) == (COST, 4)


def test_without_a_scope_it_runs_in_the_global_one() -> None:
    put(fluid.global_scope(), x=X, y=Y)
    assert PlainNet(regression()).run().ok and held(fluid.global_scope(), "cost") == COST


def test_a_range_of_operators_with_its_end() -> None:
    net, inside = PlainNet(regression()), put(scope(), x=X, y=Y)
    assert net.run(inside, begin=0, end=1).ok
    np.testing.assert_array_equal(held(inside, "d"), [[3], [6]])
    assert inside.find_var("s").get_tensor().array is None
    assert net.run(inside, begin=2).ok and held(inside, "cost") == COST
    put(inside, s=[[2.0]])
    assert net.run(inside, begin=3, end=3).ok and held(inside, "cost") == 2


@pytest.mark.parametrize(("begin", "end"), [(0, 4), (4, -1), (3, 2), (9, 9)])
def test_a_range_that_is_not_there(begin: int, end: int) -> None:
    inside = put(scope(), x=X, y=Y)
    error = PlainNet(regression()).run(inside, None, begin, end)
    assert error and f"The network has no operators {begin} to {end}." in error.message
    assert inside.local_var_names() == ["x", "y"]
    with pytest.raises(OpValueError):
        error.check()


def test_operators_are_added_by_type_and_by_message() -> None:
    net = PlainNet(NetDesc(vars=[var_def("x", [-1, 2]), var_def("y", [-1, 2])]))
    assert net.add_op("elementwise_add", ["x", "y"], ["z"], {"axis": -1}) == 0
    assert net.add_op(op_def("scale", {"X": "z"}, {"Out": "two"}, {"scale": 2.0})) == 1
    assert net.AddOp("sum", ["x", "y", "two"], "all") == 2
    assert (net.var("all").shape, len(net), repr(net)) == ((-1, 2), 3, "<PlainNet: 3 operators, 3 of them forward>")
    inside = put(scope(), x=[[1.0, 2.0]], y=[[3.0, 4.0]])
    assert net.Run(inside).ok
    np.testing.assert_array_equal(held(inside, "all"), [[12, 18]])


def test_a_refused_operator_changes_nothing() -> None:
    net = PlainNet(regression())
    before = net.program.desc.serialize_to_string()
    with pytest.raises(FluidError, match="scael"):
        net.add_op("scael", ["x"], ["z"])
    with pytest.raises(OpValueError, match="square has 1 inputs, but 2 are given."):
        net.add_op("square", ["x", "y"], ["z"])
    with pytest.raises(NotFound, match="reads nothing in slot X"):
        net.add_op("square", ["nothing"], ["z"])
    with pytest.raises(OpTypeError, match="add_op takes an OpDef"):
        net.add_op(3)  # type: ignore[arg-type]
    assert net.program.desc.serialize_to_string() == before


def test_a_run_that_fails_says_so_and_does_not_raise() -> None:
    error = PlainNet(regression()).run(put(scope(), x=np.ones((2, 3)), y=Y))
    assert error and not error.ok and "op 0 (mul) in block 0" in str(error) and "Error: " in repr(error)
    missing = PlainNet(regression()).run(put(scope(), x=X))
    assert "y" in missing.message and "op 1 (elementwise_sub) in block 0" in missing.message


def test_shapes_are_inferred_in_the_scope() -> None:
    net, inside = PlainNet(regression()), put(scope(), x=X, y=Y)
    assert net.InferShape(inside).ok
    assert inside.find_var("p").get_tensor().shape() == [2, 1] and inside.find_var("p").get_tensor().array is None
    assert "op 0 (mul)" in net.infer_shape(put(scope(), x=np.ones((2, 3)))).message


def test_scopes_make_and_fill_the_variables() -> None:
    desc, inside = regression(), scope()
    inside.CreateVariables(desc)
    assert inside.local_var_names() == ["w", "x", "y"] and inside.var("w").value is None
    inside.InitVariables(desc.SerializeToString())
    np.testing.assert_array_equal(held(inside, "w"), [[1], [1]])
    put(inside, w=[[5.0], [5.0]], x=X, y=Y)
    assert PlainNet(desc).run(inside).ok
    np.testing.assert_array_equal(held(inside, "w"), [[5], [5]])  # what is there is not made anew
    assert inside.new_scope().place == CPU


def test_weights_without_an_initializer_get_fluids() -> None:
    desc, inside = NetDesc(vars=[var_def("w", [50, 40], parameter=True), var_def("b", [40], parameter=True)]), scope()
    inside.init_variables(desc)
    limit = (6 / 90) ** 0.5
    assert 0.9 * limit < np.abs(held(inside, "w")).max() <= limit and not held(inside, "b").any()


def test_backward_and_optimizer() -> None:
    net, inside = PlainNet(regression()), put(scope(), x=X, y=Y)
    assert net.add_backward_ops().ok and net.add_optimizer_ops(OptAttrs("sgd", 0.1)).ok
    assert net.last_forward_op == 3 and len(net) > 5
    assert net.run(inside).ok
    gradient = np.array([[1.0, 3.0], [2.0, 4.0]]) @ [[3.0], [6.0]]  # 2/n · xᵀ·(xw - y)
    np.testing.assert_allclose(held(inside, "w"), 1 - 0.1 * gradient, rtol=1e-6)
    before = held(inside, "w")
    assert net.run(inside, None, 0, net.last_forward_op).ok
    np.testing.assert_array_equal(held(inside, "w"), before)


def test_state_of_the_optimizer_is_made_in_each_scope() -> None:
    net = PlainNet(regression())
    net.add_backward_ops("cost").check()
    net.add_optimizer_ops(OptAttrs("momentum", 0.01, momentum=0.9)).check()
    scopes = [put(scope(), x=X, y=Y) for _ in range(2)]
    for _ in range(3):
        net.run(scopes[0]).check()
    net.run(scopes[1]).check()
    assert held(scopes[0], "cost") < held(scopes[1], "cost") == COST


def test_backward_and_optimizer_that_cannot_be() -> None:
    assert "What is to be differentiated is not clear." in PlainNet().add_backward_ops().message
    net = PlainNet(regression())
    assert "add_backward_ops() first" in net.add_optimizer_ops().message
    assert "var coast not in this block." in net.add_backward_ops("coast").message
    assert net.add_backward_ops().ok
    assert "has its backward operators already" in net.AddBackwardOps().message
    with pytest.raises(NotFound, match='There is no optimizer "ftrll"') as caught:
        OptAttrs("ftrll")
    assert caught.value.hint == 'Did you mean "ftrl"?'


def test_loops_keep_their_scopes_until_the_next_mini_batch() -> None:
    net = PlainNet()
    with fluid.program_guard(net.program, net.startup):
        i = fluid.layers.fill_constant([1], "int64", 0)
        n = fluid.layers.fill_constant([1], "int64", 3)
        cond = fluid.layers.less_than(i, n)
        loop = fluid.layers.While(cond)
        with loop.block():
            fluid.layers.increment(i, in_place=True)
            fluid.layers.less_than(i, n, cond=cond)
    inside = scope()
    mine = inside.new_scope()
    for _ in range(2):
        assert net.run(inside).ok and held(inside, i.name) == 3
        assert len(inside.kids) == 4 and mine in inside.kids


def test_a_scope_is_not_kept_alive() -> None:
    net, inside = PlainNet(regression()), put(scope(), x=X, y=Y)
    net.run(inside).check()
    gone = weakref.ref(inside)
    del inside
    gc.collect()
    assert gone() is None
