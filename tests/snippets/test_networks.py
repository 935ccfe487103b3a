"""The network design document's snippets (S4)."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.net import (
    Copy,
    Net,
    NetBuilder,
    NetDesc,
    OpContext,
    OptAttrs,
    PlainNet,
    Recurrent,
    RecurrentNet,
    Recursive,
    RecursiveNet,
    Scope,
    op_def,
    var_def,
)  # fmt: skip
from tests.net.nets import held, put, regression, step_net

CPUPlace = fluid.CPUPlace


def test_s4_1_class_net() -> None:
    assert inspect.isabstract(Net)
    assert Net.__abstractmethods__ == {"run", "add_op", "add_optimizer_ops", "add_backward_ops", "infer_shape"}
    run = inspect.signature(Net.run).parameters
    assert [run[name].default for name in ("scope", "context", "begin", "end")] == [None, None, -1, -1]


@pytest.mark.parametrize(("model_type", "kind"), [(0, PlainNet), (Recursive, RecursiveNet), (Recurrent, RecurrentNet)])
def test_s4_2_net_create(model_type: int, kind: type[Net]) -> None:
    assert type(Net.Create(NetDesc(model_type=model_type))) is kind
    assert Net.Create(NetDesc(model_type=3)) is None


def test_s4_3_usage() -> None:
    default_scope, default_context = put(Scope(), x=[[1.0, 2.0]], y=[[0.0]]), OpContext(CPUPlace())
    net = Net.CreateNet(regression())
    assert net
    assert not net.Run(default_scope, default_context)
    assert held(default_scope, "cost") == 9


def test_s4_4_class_plain_net() -> None:
    net = PlainNet(regression())
    one, other = put(Scope(), x=[[1.0, 2.0]], y=[[0.0]]), put(Scope(), x=[[3.0, 4.0]], y=[[1.0]])
    for scope in (one, other):
        assert net.InferShape(scope).ok and not net.Run(scope, begin=0, end=1)
    assert held(one, "d") == 3 and held(other, "d") == 6 and one.find_var("cost").get_tensor().array is None
    assert net.AddOp("scale", ["cost"], ["double"], {"scale": 2.0}) == 4
    assert net.AddBackwardOps("double").ok and net.AddOptimizerOps(OptAttrs("sgd", 0.1)).ok
    assert net.Run(one).ok and net.Run(other).ok
    assert (held(one, "double"), held(other, "double")) == (18, 72)


def test_s4_5_plain_net_usage() -> None:
    net_desc = NetDesc(
        vars=[
            var_def("x", [-1, 3]), var_def("b0", [-1, 3]), var_def("w", [3, 1], parameter=True),
            var_def("b", [1], parameter=True),
        ]
    )  # fmt: skip
    scope = Scope(CPUPlace())
    scope.CreateVariables(net_desc)
    scope.InitVariables(net_desc)
    put(scope, x=np.ones((4, 3)), b0=np.ones((4, 3)))
    before = held(scope, "w"), held(scope, "b")
    net = Net.CreateNet(net_desc)
    assert isinstance(net, PlainNet)
    net.AddOp("elementwise_add", ["x", "b0"], ["sum"])
    net.AddOp(op_def("mul", {"X": "sum", "Y": "w"}, {"Out": "product"}))
    net.AddOp(op_def("elementwise_add", {"X": "product", "Y": "b"}, {"Out": "fc"}))
    net.AddOp("mean", ["fc"], ["cost"])
    assert net.AddBackwardOps().ok and net.AddOptimizerOps().ok
    assert not net.Run(scope)
    np.testing.assert_allclose(held(scope, "w"), before[0] - 0.01 * 2, rtol=1e-5)
    np.testing.assert_allclose(held(scope, "b"), before[1] - 0.01, rtol=1e-5)


def digits() -> tuple[NetBuilder, fluid.Variable, Scope]:
    """The document's classifier, and a scope with random images and labels."""
    builder = NetBuilder(PlainNet(NetDesc(vars=[var_def("image", [-1, 20]), var_def("label", [-1, 1], "int64")])))
    builder.net.program.random_seed = builder.net.startup.random_seed = 7
    image, label = builder.net.var("image"), builder.net.var("label")
    fc_out = builder.AddOp("fc", input=image, size=100, activation="Sigmoid")
    prediction = builder.AddOp("fc", input=fc_out, size=10, activation="Sigmoid")
    loss = builder.AddOp("cross_entropy", input=prediction, label=label)
    avg_loss = builder.AddOp("mean", loss)
    draw = np.random.default_rng(0)
    return builder, avg_loss, put(Scope(), image=draw.normal(size=(32, 20)), label=draw.integers(0, 10, (32, 1)))


def test_s4_6_net_builder_usage() -> None:
    builder, avg_loss, scope = digits()
    assert builder.BackwardFrom(avg_loss).ok and builder.AddOptimization(1e-4, "adam").ok
    losses, counts = [], set()
    for _ in range(50):
        assert not builder.Run(scope)
        losses.append(float(held(scope, avg_loss.name)[0]))
        counts.add(len(builder.net))
    assert losses[-1] < losses[0] and losses == sorted(losses, reverse=True) and len(counts) == 1


def test_s4_7_class_net_builder() -> None:
    builder, avg_loss, scope = digits()
    forward = len(builder.net)
    builder.BackwardFrom(avg_loss).check()
    builder.AddOptimization(1e-4, "adam").check()
    assert builder.need_rebuild_net
    builder.Run(scope).check()
    assert not builder.need_rebuild_net and len(builder.net) > forward and builder.last_forward_op == forward - 1
    parameters = [p.name for p in builder.net.program.global_block().all_parameters()]
    before = {name: held(scope, name) for name in parameters}
    assert len(before) == 4 and not builder.Run(scope, OpContext(), need_backward=False)
    for name, array in before.items():
        np.testing.assert_array_equal(held(scope, name), array)


def test_s4_8_manual_rnn_over_scopes() -> None:
    rnn_step_net_def, num_states = step_net(), 3
    default_scope = put(Scope(), x=[10.0, 20.0, 30.0], previous_state_act=[[0.0]])
    default_scope.InitVariables(rnn_step_net_def)
    rnn_step_net = PlainNet(rnn_step_net_def)
    rnn_states = [Scope() for _ in range(num_states + 1)]  # the last one is used to store the rnn's outputs
    for i, state in enumerate(rnn_states):
        state.CreateVars(rnn_step_net_def)
        Copy(default_scope, state, ["W", "U", "previous_state_act"])
        if i < num_states:  # the inlink: each state gets its row
            put(state, x=held(default_scope, "x")[i].reshape(1, 1))
    for i in range(num_states):
        assert not rnn_step_net.Run(rnn_states[i])
        Copy(rnn_states[i], rnn_states[i + 1], {"act": "previous_state_act"})
    Copy(rnn_states[num_states], default_scope, {"previous_state_act": "act"})
    o1 = [held(state, "act").item() for state in rnn_states[:num_states]]
    o2 = [held(state, "hidden_out").item() for state in rnn_states[:num_states]]
    np.testing.assert_allclose(o1, [0.9585129, 0.9986940, 0.9999442], atol=1e-6)
    np.testing.assert_allclose(o2, [0, 0.3594423, 0.3745102], atol=1e-6)
    assert len(rnn_states) == 4 and held(default_scope, "act").item() == o1[-1]
    net = RecurrentNet(step_net(Recurrent, boot="previous_state_act"))
    inside = put(Scope(), x=[[[10.0]], [[20.0]], [[30.0]]], previous_state_act=[[0.0]])
    net.Run(inside).check()
    np.testing.assert_array_equal(held(inside, "act").ravel(), np.array(o1, "float32"))
