"""The block design documents' snippets of RNNs and of names across blocks (S0.3, S0.4, S0.6 to S0.8, S2.3 to S2.8),
and the figures of the developer guide's DynamicRNN (S1.13)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import NotFound

#: What the documents' program computes, found with numpy beside it.
O1, O2, A = [0.9585129, 0.9986940, 0.9999442], [0, 0.3594423, 0.3745102], [3.14, 6.28, 9.42]


def c_loop() -> dict[str, list[float]]:
    """The documents' C++ loop as plain numpy, with U for the slip Y, and floats for its ints."""
    x, w, u = np.array([10, 20, 30], "float32"), np.float32(0.314), np.float32(0.375)
    mem = np.zeros(len(x) + 1, "float32")
    found: dict[str, list[float]] = {"a": [], "o1": [], "o2": []}
    for i in range(1, len(x) + 1):
        fc_out, hidden_out = w * x[i - 1], u * mem[i - 1]
        mem[i] = 1 / (1 + np.exp(-(fc_out + hidden_out)))
        found["a"].append(float(fc_out))
        found["o1"].append(float(mem[i]))
        found["o2"].append(float(hidden_out))
    return found


def old_api(pd: Any, x: Any) -> Any:
    """The first document's RNN over x; gives (o1, o2)."""
    m = pd.var(0)
    W, U = pd.var(0.314, param=True), pd.var(0.375, param=True)
    rnn = pd.create_rnn(inputs=[x])
    with rnn.stepnet() as net:
        x = net.set_inputs(0)
        h = net.add_memory(init=m, name="h")
        before = h.pre(n=1)
        fc_out = pd.matmul(W, x, name="fc_out")
        hidden_out = pd.matmul(U, before, name="hidden_out")
        sum = pd.add_two(fc_out, hidden_out, name="sum")
        act = pd.sigmoid(sum, name="act")
        h.update(act)  # update memory with act
        net.set_outputs(0, act, hidden_out)  # two outputs
    return rnn()


def test_s0_3_rnn_old_api() -> None:
    import paddle as pd

    o1, o2 = old_api(pd, pd.sequence([10.0, 20.0, 30.0]))
    values = pd.evaluate([o1, o2])
    np.testing.assert_allclose(values[0].ravel(), O1, atol=1e-6)
    np.testing.assert_allclose(values[1].ravel(), O2, atol=1e-6)
    program = fluid.default_main_program()
    step = program.block(1)
    types = [op.type for op in step.ops]
    assert [types.count(t) for t in ("matmul", "elementwise_add", "sigmoid")] == [2, 1, 1]
    names = [n for n in step.vars if n in ("h", "fc_out", "hidden_out", "sum", "act")]
    assert names == ["h", "fc_out", "hidden_out", "sum", "act"] and program.num_blocks == 2


def test_s0_3_with_tensors_that_say_no_shape() -> None:
    import paddle as pd

    x, m, W, U = pd.sequence([10, 20, 30]), pd.var(0), pd.tensor(), pd.tensor()
    rnn = pd.create_rnn(inputs=[x])
    with rnn.stepnet() as net:
        x = net.set_inputs(0)
        h = net.add_memory(init=m)
        act = pd.sigmoid(pd.add_two(pd.matmul(W, x), pd.matmul(U, h.pre(n=1))))
        h.update(act)
        net.set_outputs(0, act)
    out, w, u = pd.evaluate([rnn(), W.parameter, U.parameter])
    before = 0.0
    for value, now in zip(out.ravel(), (10, 20, 30), strict=True):
        before = 1 / (1 + np.exp(-(w[0] * now + u[0] * before)))
        assert value == pytest.approx(before, rel=1e-5)


def test_s0_4_s2_4_the_loop_in_plain_numpy() -> None:
    import paddle as pd

    loop = c_loop()
    np.testing.assert_allclose(loop["o1"], O1, atol=1e-6)
    np.testing.assert_allclose(loop["o2"], O2, atol=1e-6)
    np.testing.assert_allclose(loop["a"], A, rtol=1e-6)
    values = pd.evaluate(list(old_api(pd, pd.sequence([10.0, 20.0, 30.0]))))
    np.testing.assert_allclose([v.ravel() for v in values], [loop["o1"], loop["o2"]], atol=1e-6)


def test_s0_6_s0_7_s2_6_s2_7_listings() -> None:
    """The step net and the operator that runs it, over three steps whose number the program knows."""
    import paddle as pd

    x = pd.Variable(shape=[3, 1], name="x")
    o1, o2 = old_api(pd, x)
    values = pd.evaluate([o1, o2], feed={"x": np.array([[10], [20], [30]], "float32")})
    np.testing.assert_allclose([v.ravel() for v in values], [O1, O2], atol=1e-6)
    listing = fluid.debugger.index_view(fluid.default_main_program())
    step = listing[listing.index("block 1 {") :]
    assert step.splitlines()[1].startswith("  vars = { 0: x, 1: h, 2: fc_out, 3: hidden_out, 4: sum, 5: act")
    types = [line.split('"')[1] for line in step.splitlines() if line.startswith("    type = ")]
    assert types[:4] == ["matmul", "matmul", "elementwise_add", "sigmoid"]
    recurrent = listing[listing.index('type = "recurrent"') : listing.index("block 1 {")]
    assert "    inputs = {0}\n" in recurrent and "    outputs = {5, 3}\n" in recurrent
    assert '"states": {1}, "step_net": 1' in recurrent  # the first document calls the states memories


def names_across_blocks(pd: Any, form: str) -> tuple[Any, Any]:
    """The documents' RNN that uses a parameter of a layer outside; gives (a, out)."""
    a = pd.Variable(shape=[20, 20])
    b = pd.fc(a, params=["fc.w", "fc.b"])
    assert b.shape == (20, 20)
    rnn = pd.create_rnn()
    if form == "S0.8":
        with rnn.stepnet() as net:
            x = net.set_inputs(a)
            fc_without_b = pd.get_variable("fc.w")
            net.set_outputs(fc_without_b)
    else:
        with rnn.stepnet():
            x = a.as_step_input()
            fc_without_b = pd.get_variable("fc.w")
            rnn.output(fc_without_b)
    assert fc_without_b is fluid.default_main_program().global_block().var("fc.w") and x.shape == (20,)
    return a, rnn()


@pytest.mark.parametrize("form", ["S0.8", "S2.8"])
def test_s0_8_s2_8_get_variable_across_blocks(form: str) -> None:
    import paddle as pd

    a, out = names_across_blocks(pd, form)
    program = fluid.default_main_program()
    parameters = {p.name: p.shape for block in program.blocks for p in block.all_parameters()}
    assert parameters == {"fc.w": (20, 20), "fc.b": (20,)}
    assert {p.name for p in program.global_block().all_parameters()} == set(parameters)
    steps, weight = pd.evaluate([out, "fc.w"], feed={a.name: np.ones((20, 20), "float32")})
    assert out.shape == steps.shape == (20, 20, 20)
    for step in steps:
        np.testing.assert_array_equal(step, weight)


def test_s0_8_an_unknown_name_says_where_it_was_searched() -> None:
    import paddle as pd

    with pytest.warns(UserWarning, match='write "pd.Variable"'):
        a = pd.Varaible(shape=[20, 20])
    rnn = pd.create_rnn()
    with pytest.raises(NotFound, match="Var fc.w is not found") as caught, rnn.stepnet() as net:
        net.set_inputs(a)
        pd.get_variable("fc.w")
    assert isinstance(caught.value, ValueError) and "a variable of blocks 1, 0" in str(caught.value)
    assert fluid.default_main_program().num_blocks == 1


def new_api(pd: Any, x: Any) -> Any:
    """The second document's RNN over x; gives (o1, o2)."""
    layer = pd.layer
    m = pd.var(0)
    W, U = pd.var(0.314, param=True), pd.var(0.375, param=True)
    rnn = pd.rnn()
    with rnn.step():
        h = rnn.memory(init=m)
        h_prev = rnn.previous_memory(h)
        a = layer.fc(W, x)
        b = layer.fc(U, h_prev)
        s = pd.add(a, b)
        act = pd.sigmoid(s)
        rnn.update_memory(h, act)
        rnn.output(a, b)
    return rnn()


def test_s2_3_rnn_new_api() -> None:
    import paddle as pd

    x = pd.sequence([10, 20, 30], name="x")
    with pytest.warns(UserWarning, match=r"Write x\.as_step_input\(\)"):
        o1, o2 = new_api(pd, x)
    values = pd.evaluate([o1, o2])
    np.testing.assert_allclose(values[0].ravel(), A, rtol=1e-6)
    np.testing.assert_allclose(values[1].ravel(), O2, atol=1e-6)
    assert o1.shape == o2.shape == (-1, 1) and o1.lod_level == o2.lod_level == 1


def test_s2_3_over_several_sequences() -> None:
    import paddle as pd

    x = pd.sequence([[10.0], [10.0, 20.0, 30.0], [20.0, 30.0]], name="x")
    with pytest.warns(UserWarning, match="as_step_input"):
        o1, o2 = new_api(pd, x)
    executor = fluid.Executor(fluid.CPUPlace())
    executor.run(fluid.default_startup_program())
    a, b = executor.run(fetch_list=[o1, o2], return_numpy=False)
    assert a.lod() == b.lod() == [[0, 1, 4, 6]]
    np.testing.assert_allclose(np.array(a).ravel(), [3.14, *A, *A[1:]], rtol=1e-6)
    np.testing.assert_allclose(np.array(b).ravel()[:4], [0, *O2], atol=1e-6)
    hidden = 1 / (1 + np.exp(-6.28))
    np.testing.assert_allclose(np.array(b).ravel()[4:], [0, 0.375 * hidden], atol=1e-6)


def test_s1_13_the_figures_of_dynamic_rnn() -> None:
    layers = fluid.layers
    x = layers.data("x", shape=[2], lod_level=1)
    table = layers.lod_rank_table(x)
    steps = layers.lod_tensor_to_array(x, table)
    rnn = layers.DynamicRNN()
    with rnn.block():
        rnn.output(rnn.step_input(x))
    rows = np.stack([np.arange(14), -np.arange(14)], axis=1).astype("float32")
    feed = {"x": fluid.create_lod_tensor(rows, [[5, 3, 2, 4]], fluid.CPUPlace())}
    executor = fluid.Executor(fluid.CPUPlace())
    ranks, array, out = executor.run(feed=feed, fetch_list=[table, steps, rnn()], return_numpy=False)
    assert list(ranks.items()) == [(0, 5), (3, 4), (1, 3), (2, 2)]
    assert [t.shape()[0] for t in array] == [4, 4, 3, 2, 1]
    assert np.array(array[0])[:, 0].tolist() == [0, 10, 5, 8]
    np.testing.assert_array_equal(np.array(out), rows)
    assert out.lod() == [[0, 5, 8, 10, 14]]
