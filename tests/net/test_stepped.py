"""RecurrentNet and RecursiveNet: a scope for each step or node, states from one to the next, backward in reverse."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fluidnb.errors import NotFound, OpValueError
from fluidnb.net import Net, NetDesc, OptAttrs, Recurrent, RecurrentNet, RecursiveNet, State, op_def, var_def
from tests.net.nets import held, put, scope, step_net, tree_net

O1, O2 = [0.9585129, 0.9986940, 0.9999442], [0, 0.3594423, 0.3745102]
PARENTS = [4, 4, 5, 5, 5, -1]
ROWS = np.random.default_rng(0).normal(size=(6, 2))


def sequence() -> Any:
    """10, 20, 30 and a state to start from."""
    return put(scope(), x=[[[10.0]], [[20.0]], [[30.0]]], boot=[[0.0]])


def tree() -> Any:
    """Six nodes: 5 is the root of 2, 3 and 4, and 4 has 0 and 1."""
    return put(scope(), x=ROWS, leaf=[[0.0, 0.0]], parents=PARENTS, w=[0.5, -1.5], u=[[0.3, 0.2], [-0.4, 0.7]])


def test_a_sequence_step_by_step() -> None:
    net, inside = RecurrentNet(step_net(Recurrent)), sequence()
    assert net.infer_shape(inside).ok and inside.find_var("act").get_tensor().shape() == [3, 1, 1]
    for _ in range(2):
        net.run(inside).check()
        assert len(net.scopes(inside)) == 3 == len(inside.kids)
    np.testing.assert_allclose(held(inside, "act").ravel(), O1, atol=1e-6)
    np.testing.assert_allclose(held(inside, "hidden_out").ravel(), O2, atol=1e-6)
    steps = net.scopes(inside)
    assert held(steps[2], "previous_state_act") == held(steps[1], "act")
    assert "W" not in steps[0].local_var_names() and "W" in inside.local_var_names()


def test_a_tree_with_children_first() -> None:
    net, inside = RecursiveNet(tree_net()), tree()
    net.run(inside).check()
    w, u, h = held(inside, "w"), held(inside, "u"), np.zeros((6, 2))
    for node in range(6):
        below = sum((h[i] for i, p in enumerate(PARENTS) if p == node), np.zeros(2))
        h[node] = np.tanh(ROWS[node] * w + below @ u)
    np.testing.assert_allclose(held(inside, "h"), h, atol=1e-6)
    assert len(net.scopes(inside)) == 6 and held(net.scopes(inside)[5], "children").shape == (3, 2)


def test_children_may_come_after_their_parents() -> None:
    net = RecursiveNet(tree_net())
    inside = put(tree(), parents=[-1, 0, 1, 2, 3, 4])
    net.run(inside).check()
    assert held(net.scopes(inside)[0], "children").shape == (1, 2)
    np.testing.assert_array_equal(held(net.scopes(inside)[0], "children")[0], held(net.scopes(inside)[1], "h"))


@pytest.mark.parametrize(
    ("parents", "text"),
    [
        ([1, 2, 0, -1, -1, -1], "nodes are their own ancestors"),
        ([-1, 0, 0], "expected: 6 numbers from -1 to 5"),
        ([-1, 0, 0, 0, 0, 6], "does not say each node's parent"),
    ],
)
def test_what_is_no_tree(parents: list[int], text: str) -> None:
    inside = put(tree(), parents=parents)
    error = RecursiveNet(tree_net()).run(inside)
    assert text in error.message and inside.kids == []


def test_forests_and_steps_that_read_the_scope_around() -> None:
    net = RecurrentNet(
        NetDesc(
            model_type=Recurrent,
            inlinks=["x"],
            outlinks=["y"],
            vars=[var_def("x", [1]), var_def("factor", [1])],
            ops=[op_def("elementwise_mul", {"X": "x", "Y": "factor"}, {"Out": "y"})],
        )  # fmt: skip
    )
    inside = put(scope(), x=[1.0, 2.0], factor=[3.0])
    net.run(inside).check()
    np.testing.assert_array_equal(held(inside, "y").ravel(), [3, 6])
    forest = put(tree(), parents=[-1] * 6)
    RecursiveNet(tree_net()).run(forest).check()
    np.testing.assert_allclose(held(forest, "h"), np.tanh(ROWS * [0.5, -1.5]), atol=1e-6)


def test_a_range_of_each_steps_operators() -> None:
    net, inside = RecurrentNet(step_net(Recurrent, boot="boot")), sequence()
    error = net.run(inside, begin=0, end=0)
    assert '"act" has no value' in error.message  # the second step reads the first one's state
    single = put(scope(), x=[[[10.0]]], boot=[[0.0]])
    net.run(single, None, 0, 1).check()
    assert held(single, "hidden_out") == 0 and single.find_var("act") is None
    assert "no operators 0 to 9" in net.run(inside, None, 0, 9).message


def test_descriptions_and_inputs_that_do_not_fit() -> None:
    with pytest.raises(NotFound, match='The step net has no variable "outt".'):
        RecurrentNet(NetDesc(outlinks=["outt"]))
    assert "must have the same number of rows" in RecurrentNet(NetDesc()).run(scope()).message
    assert 'The scope has no variable "boot"' in RecurrentNet(step_net()).run(put(scope(), x=[[[1.0]]])).message
    nowhere = step_net(Recurrent, boot="")
    assert 'The state "act" has no value to start from.' in RecurrentNet(nowhere).run(sequence()).message
    two = NetDesc(inlinks=["a", "b"], vars=[var_def("a", [1]), var_def("b", [1])])
    assert "a: 2, b: 3" in RecurrentNet(two).run(put(scope(), a=[1.0, 2.0], b=[1.0, 2.0, 3.0])).message


def numeric(run: Callable[[], float], array: np.ndarray) -> np.ndarray:
    """Central differences of what ``run`` gives with respect to an array that it reads."""
    out = np.zeros_like(array)
    for i in np.ndindex(array.shape):
        old = array[i]
        array[i] = old + 1e-4
        high = run()
        array[i] = old - 1e-4
        out[i] = (high - run()) / 2e-4
        array[i] = old
    return out


@pytest.mark.parametrize("weighted", [False, True])
def test_gradients_of_a_tree(weighted: bool) -> None:
    given = np.random.default_rng(1).normal(size=(6, 2)) if weighted else np.ones((6, 2))
    inside, net = tree(), RecursiveNet(tree_net())
    if weighted:
        put(inside, **{"h@GRAD": given})
    net.add_backward_ops("h").check()
    net.run(inside).check()
    x, leaf = ROWS.copy(), np.zeros((1, 2))
    w, u = held(inside, "w").astype(float), held(inside, "u").astype(float)

    def cost() -> float:
        h = np.zeros((6, 2))
        for node in range(6):
            children = [h[i] for i, p in enumerate(PARENTS) if p == node]
            h[node] = np.tanh(x[node] * w + (sum(children) if children else leaf[0]) @ u)
        return float((h * given).sum())

    for name, array in {"x": x, "w": w, "u": u, "leaf": leaf}.items():
        np.testing.assert_allclose(held(inside, f"{name}@GRAD"), numeric(cost, array), atol=2e-4, err_msg=name)


def test_gradients_of_a_sequence() -> None:
    net, inside = RecurrentNet(step_net(Recurrent)), put(sequence(), x=[[[0.1]], [[-0.2]], [[0.3]]], boot=[[0.7]])
    net.add_backward_ops("act").check()
    net.run(inside).check()
    x, w, u, boot = np.array([0.1, -0.2, 0.3]), np.array([0.314]), np.array([0.375]), np.array([0.7])

    def cost() -> float:
        h, total = boot[0], 0.0
        for row in x:
            h = 1 / (1 + np.exp(-(row * w[0] + h * u[0])))
            total += h
        return total

    for name, array in {"x": x, "W": w, "U": u, "boot": boot}.items():
        np.testing.assert_allclose(held(inside, f"{name}@GRAD").ravel(), numeric(cost, array), atol=1e-5, err_msg=name)


def test_training() -> None:
    inside, net = put(tree(), **{"h@GRAD": np.ones((6, 2))}), Net.create(tree_net())
    assert net is not None and "add_backward_ops() first" in net.add_optimizer_ops().message
    net.add_backward_ops().check()
    net.add_optimizer_ops(OptAttrs("adam", 0.05)).check()
    sums = []
    for _ in range(20):
        net.run(inside).check()
        sums.append(held(inside, "h").sum())
    assert sums == sorted(sums, reverse=True) and sums[-1] < sums[0] - 1
    before = held(inside, "w")
    net.run(inside, None, 0, 5).check()
    np.testing.assert_array_equal(held(inside, "w"), before)
    assert "already" in net.add_backward_ops().message and "already" in net.add_optimizer_ops().message
    with pytest.raises(OpValueError, match="takes no operators after backward"):
        net.add_op("tanh", ["h"], ["z"])
    assert '"here" is no outlink' in RecursiveNet(tree_net()).add_backward_ops("here").message


def test_weights_of_another_shape() -> None:
    net, inside = RecurrentNet(step_net(Recurrent)), put(sequence(), **{"act@GRAD": [1.0, 1.0]})
    net.add_backward_ops("act").check()
    assert '"act@GRAD" has another shape than "act".' in net.run(inside).message


def test_a_scope_and_its_steps_are_not_kept_alive() -> None:
    net, inside = RecurrentNet(step_net(Recurrent)), sequence()
    net.run(inside).check()
    gone = [weakref.ref(inside), *map(weakref.ref, net.scopes(inside))]
    del inside
    gc.collect()
    assert [r() for r in gone] == [None] * 4


def test_states_are_messages() -> None:
    desc = step_net(Recurrent)
    assert desc.states[0] == State(name="act", previous="previous_state_act", boot="boot")
