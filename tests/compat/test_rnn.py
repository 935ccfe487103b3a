"""The RNN of the design documents: its kinds, what it works out by itself, and what it says when it is misused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.compat import pd
from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.program import unique_name as names

L = fluid.layers


def floats(*values: float) -> Any:
    """Numbers as one column of float32."""
    return np.array(values, "float32").reshape(-1, 1)


def timed(*values: float) -> tuple[Any, dict[str, Any]]:
    """A variable with time as its first axis, and a feed for it."""
    x = pd.Variable([len(values), 1], name="x")
    return x, {"x": floats(*values)}


def bytes_now() -> bytes:
    """The main program as bytes."""
    return bytes(fluid.default_main_program().desc.serialize_to_string())


def same_names() -> Any:
    """The counters of names as they are."""
    return dict(names.generator.ids)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("lod", [False, True])
def test_a_memory_of_several_steps(n: int, lod: bool) -> None:
    x, feed = (pd.sequence([1, 2, 3, 4, 5]), {}) if lod else timed(1, 2, 3, 4, 5)
    rnn, start = pd.create_rnn(inputs=[x]), pd.var(-1.0)
    with rnn.stepnet() as net:
        h = net.add_memory(init=start)
        past = h.pre(n=n)
        h.update(net.set_inputs(0))
        net.set_outputs(0, past)
    assert pd.evaluate(rnn(), feed).ravel().tolist() == ([-1.0] * n + [1, 2, 3, 4, 5])[:5]


def test_a_sequence_that_the_step_uses_becomes_a_step_input() -> None:
    x, y = pd.sequence([[1, 2], [3]], name="x"), pd.sequence([[10, 20], [30]], name="y")
    rnn = pd.rnn()
    with pytest.warns(UserWarning) as said, rnn.step():
        total = L.relu(pd.add(x, y))
        rnn.output(total, y)
    assert sorted(str(w.message).split()[6] for w in said) == ["x,", "y,"]
    sums, ys = pd.evaluate(list(rnn()))
    assert sums.ravel().tolist() == [11, 22, 33] and ys.ravel().tolist() == [10, 20, 30]
    assert [op.type for op in total.block.ops][:4] == ["read_from_array"] * 2 + ["elementwise_add", "relu"]
    assert total.lod_level == 0


def test_a_memory_may_become_a_sequence_used_as_it_is() -> None:
    x = pd.sequence([1, 2, 3], name="x")
    rnn, start = pd.rnn(), pd.var(0.0)
    with pytest.warns(UserWarning, match="x.as_step_input"), rnn.step():
        h = rnn.memory(init=start, name="h")
        rnn.output(h.pre())
        h.update(x)
    assert pd.evaluate(rnn()).ravel().tolist() == [0, 1, 2]
    assert "h" in fluid.default_main_program().block(1).vars


def test_nested_blocks_see_the_step_too() -> None:
    x = pd.sequence([1, -2, 3], name="x")
    rnn = pd.rnn()
    with pytest.warns(UserWarning, match="x.as_step_input"), rnn.step():
        out = pd.add(x, 0.0)
        negative = pd.operator.larger_than(L.fill_constant([1], "float32", 0.0), L.reduce_sum(x))
        switch = fluid.switch()
        with switch.block(), switch.case(negative):
            L.assign(pd.layer.scale(x, 10.0), output=out)
        rnn.output(out)
    assert pd.evaluate(rnn()).ravel().tolist() == [1, -20, 3]


def test_a_row_for_each_sequence_goes_with_its_sequence() -> None:
    x, start = pd.sequence([[1], [1, 1, 1], [1, 1]]), pd.minibatch([100, 200, 300])
    rnn = pd.create_rnn(inputs=[x])
    with rnn.stepnet() as net:
        h = net.add_memory(init=start)
        total = pd.add(h.pre(), net.set_inputs(0))
        h.update(total)
        net.set_outputs(total)
    assert pd.evaluate(rnn()).ravel().tolist() == [101, 201, 202, 203, 301, 302]


@pytest.mark.parametrize("shape", [[2], [1, 2]])
def test_one_row_for_all_sequences(shape: list[int]) -> None:
    x, start = pd.sequence(np.ones((3, 2))), L.assign(np.array([10, 20], "float32").reshape(shape))
    rnn = pd.create_rnn(inputs=[x])
    with rnn.stepnet() as net:
        h = net.add_memory(init=start)
        total = pd.add(h.pre(), net.set_inputs(0))
        h.update(total)
        net.set_outputs(total)
    assert pd.evaluate(rnn()).tolist() == [[11, 21], [12, 22], [13, 23]]


def test_step_inputs_are_taken_once() -> None:
    x, feed = timed(1, 2)
    rnn = pd.create_rnn()
    with rnn.step():
        assert rnn.step_input(x) is rnn.set_inputs(x) is pd.as_step_input(x)
        rnn.output(rnn.step_input(x))
    assert pd.evaluate(rnn(), feed).ravel().tolist() == [1, 2]


def test_as_step_input_means_the_innermost_network() -> None:
    outer_x, inner_x = pd.Variable([2, 3, 1], name="outer"), L.ones([3, 1], "float32")
    outer = pd.create_rnn()
    with outer.step():
        row = pd.as_step_input(outer_x)
        inner = pd.create_rnn()
        with inner.step():
            inner.output(pd.add(pd.as_step_input(row), pd.as_step_input(inner_x)))
        outer.output(inner())
    feed = {"outer": np.arange(6, dtype="float32").reshape(2, 3, 1)}
    np.testing.assert_array_equal(pd.evaluate(outer(), feed), feed["outer"] + 1)


def test_the_kind_of_network_follows_its_input() -> None:
    x, _ = timed(1, 2)
    for given, block in ((x, "recurrent"), (pd.sequence([1, 2]), "while")):
        for rnn in (pd.rnn(), pd.create_rnn(inputs=[given]), pd.create_rnn_op(1)):
            with rnn.step():
                rnn.output(rnn.step_input(given))
            rnn()
            assert block in [op.type for op in fluid.default_main_program().global_block().ops][-4:]


def refused(match: str, body: Any, **kwargs: Any) -> Any:
    """A step block whose body is refused; nothing of it stays."""
    before, counters = bytes_now(), same_names()
    rnn = pd.create_rnn(**kwargs)
    with pytest.raises((OpValueError, OpTypeError), match=match) as caught, rnn.step() as net:
        body(net)
    counted = same_names()
    assert bytes_now() == before and {k: v for k, v in counted.items() if counters.get(k, 0) != v} in (
        {}, {"static_rnn": counted.get("static_rnn")}, {"dynamic_rnn": counted.get("dynamic_rnn")},
    )  # fmt: skip
    with pytest.raises(OpValueError, match="has results after its step block"):
        rnn()
    return caught.value


def test_what_a_step_lacks_is_said() -> None:
    x, s = timed(1, 2)[0], pd.sequence([1, 2], name="s")
    start = pd.var(0.0)
    refused("A step of the RNN gives other results", lambda net: net.step_input(x))
    refused("has no input 1", lambda net: net.set_inputs(1), inputs=[x])
    refused("has no input 0", lambda net: net.set_inputs(0))
    refused("an output of an RNN must be a Variable", lambda net: net.output("y"))
    refused("init of memory must be a Variable", lambda net: net.memory(init=0))
    refused("starts with is made outside", lambda net: net.memory(init=pd.var(0.0)))
    refused("no memory of the RNN", lambda net: net.update_memory(x, x))

    def forgotten(net: Any) -> None:
        net.output(net.step_input(s), net.memory(init=start).pre())

    refused("A memory should be updated in every step", forgotten)
    refused("remembers the steps before", lambda net: net.memory(init=start).pre(n=0))


def test_other_kinds_of_input_are_refused() -> None:
    x, s, start = timed(1, 2)[0], pd.sequence([1, 2], name="s"), pd.var(0.0)
    error = refused("what has no LoD, and s differs", lambda net: (net.step_input(x), net.step_input(s)))
    assert "say the step inputs first" in error.hint
    refused("sequences with a LoD, and x differs", lambda net: (net.step_input(s), net.step_input(x)))
    refused("sequences with a LoD, and x differs", lambda net: (net.memory(init=start).pre(), net.step_input(x)))
    refused("sequences with a LoD, and x differs", lambda net: (pd.add(start, 1.0), net.step_input(x)))


def test_calls_outside_of_the_step_block_are_refused() -> None:
    x, feed = timed(1, 2)
    rnn, start = pd.create_rnn_op(output_num=1), pd.var(0.0)
    for call in (lambda: rnn.step_input(x), lambda: rnn.output(x), lambda: rnn.memory(init=x)):
        with pytest.raises(OpValueError, match="belongs inside the step block"):
            call()
    with pytest.raises(OpValueError, match="has results after"):
        rnn()
    with rnn.step():
        h = rnn.memory(init=start)
        now = rnn.step_input(x)
        h.update(pd.add(h.pre(), now))
        rnn.output(h.pre())
        with pytest.raises(OpValueError, match="has results after"):
            rnn()
    with pytest.raises(OpValueError, match="has one step block"), rnn.step():
        pass
    with pytest.raises(OpValueError, match="belongs inside the step block of an RNN"):
        pd.as_step_input(x)
    with pytest.raises(OpTypeError, match="inputs of create_rnn must be a Variable"):
        pd.create_rnn(inputs=[1])
    assert pd.evaluate(rnn(), feed).ravel().tolist() == [0, 1]


def test_outputs_are_counted_where_their_number_is_said() -> None:
    x, _ = timed(1, 2)
    rnn = pd.create_rnn_op(output_num=2)
    with pytest.raises(OpValueError, match="gives other results") as caught, rnn.step():
        rnn.output(rnn.step_input(x))
    assert "expected: 2 by rnn.output(…)" in str(caught.value) and "received: 1 outputs" in str(caught.value)


@pytest.mark.parametrize("lod", [False, True])
@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.filterwarnings("ignore:The step of the RNN uses x")
def test_gradients_pass_through_steps_and_memories(lod: bool, n: int) -> None:
    x = pd.sequence([[1.0], [1, 2, 3], [2, 3]], name="x") if lod else pd.Variable([3, 1], name="x")
    feed = {} if lod else {"x": floats(1, 2, 3)}
    w, u, start = pd.var(0.314, param=True), pd.var(0.375, param=True), pd.var(0.5, param=True)
    rnn = pd.rnn() if lod else pd.create_rnn(inputs=[x])
    with rnn.step():
        h = rnn.memory(init=start)
        before = h.pre(n)
        act = pd.sigmoid(pd.add(pd.layer.fc(w, x if lod else rnn.set_inputs(0)), pd.layer.fc(u, before)))
        h.update(act)
        rnn.output(act)
    loss = L.reduce_sum(rnn())
    gradients = fluid.gradients(loss, [w, u, start])
    found = pd.evaluate([loss, *gradients], feed)
    for parameter, gradient in zip((w, u, start), found[1:], strict=True):
        held = fluid.global_scope().find_var(parameter.name).get_tensor()
        value, sums = np.array(held), []
        for step in (1e-2, -1e-2):
            held.set(value + np.float32(step), fluid.CPUPlace())
            sums.append(pd.evaluate(loss, feed).item())
        held.set(value, fluid.CPUPlace())
        assert gradient.item() == pytest.approx((sums[0] - sums[1]) / 2e-2, rel=1e-3)
