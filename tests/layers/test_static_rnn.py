"""StaticRNN: a step net along sequences of one length."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet, OpAssertionError, OpTypeError, OpValueError
from fluidnb.layers.control_flow import BlockGuardWithCompletion, StaticRNNMemoryLink
from tests.layers.walkers import both

L = fluid.layers
RNG = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def main():
    return fluid.default_main_program()


def sequence(name="x", shape=(3, 2, 4)):
    return L.data(name, list(shape), append_batch_size=False)


def design(*results):
    """The design documents' network; gives its results by name."""
    x = L.assign(np.array([[10], [20], [30]], "float32"))
    m = L.zeros([1], "float32")
    w = L.create_parameter([1], "float32", attr=fluid.ParamAttr("W", initializer=fluid.initializer.Constant(0.314)))
    u = L.create_parameter([1], "float32", attr=fluid.ParamAttr("U", initializer=fluid.initializer.Constant(0.375)))
    rnn = L.StaticRNN()
    with rnn.step():
        xt, h = rnn.step_input(x), rnn.memory(init=m)
        step = {"a": L.matmul(w, xt), "b": L.matmul(u, h)}
        step["act"] = L.sigmoid(L.elementwise_add(step["a"], step["b"]))
        rnn.update_memory(h, step["act"])
        rnn.output(*(step[r] for r in results))
    fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program())
    return rnn()


def test_the_numbers_of_the_design_documents():
    a, b, act = both(design("a", "b", "act"))
    np.testing.assert_allclose(act.ravel(), [0.9585129, 0.9986940, 0.9999442], atol=1e-6)
    np.testing.assert_allclose(b.ravel(), [0, 0.3594423, 0.3745102], atol=1e-6)
    np.testing.assert_allclose(a.ravel(), [3.14, 6.28, 9.42], rtol=1e-6)


def test_the_program_is_that_of_the_design_documents():
    act, b = design("act", "b")
    op = main().global_block().ops[-1]
    step = op.block_attr("sub_block")
    assert [o.type for o in step.ops][:4] == ["matmul", "matmul", "elementwise_add", "sigmoid"]
    assert op.output("outputs") == [act.name, b.name] == [step.ops[3].output("Out")[0], step.ops[1].output("Out")[0]]
    assert op.input("inputs") == ["assign_value_0.tmp_0"] and step.var("assign_value_0.tmp_0").shape == (1,)
    assert op.attr("ex_states") == ["static_rnn_0@mem_0"] and op.attr("has_states") is True
    assert op.input("initial_states") == ["fill_constant_0.tmp_0"] and op.input("parameters") == ["W", "U"]


@pytest.mark.parametrize("boot", ["init", "step", "sequence"])
def test_a_memory_of_vectors(boot):
    x = sequence()
    start = L.fill_constant([2, 5], "float32", 0.5)
    rnn = L.StaticRNN()
    with rnn.step():
        word = rnn.step_input(x)
        if boot == "init":
            before = rnn.memory(init=start)
        else:
            before = rnn.memory(shape=[-1, 5], batch_ref=word if boot == "step" else x, init_value=0.5)
        hidden = L.fc([word, before], 5, param_attr=["w", "u"], bias_attr=False, act="tanh")
        rnn.update_memory(before, hidden)
        rnn.output(hidden, before)
    fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program())
    scope, feed = fluid.global_scope(), RNG.standard_normal((3, 2, 4)).astype("float32")
    w, u = (np.array(scope.find_var(n).get_tensor()) for n in "wu")
    hidden, before = both(list(rnn()), x=feed)
    h, want = np.full((2, 5), 0.5, "float32"), []
    for step in feed:
        want.append(h)
        h = np.tanh(step @ w + h @ u)
    np.testing.assert_allclose(before, want, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(hidden[-1], h, rtol=1e-5, atol=1e-6)


def test_the_last_step_alone():
    x = sequence()
    rnn = L.StaticRNN()
    with rnn.step():
        rnn.output(L.scale(rnn.step_input(x), 2.0))
    last, all_steps = rnn(output_all_steps=False), rnn()
    feed = RNG.standard_normal((3, 2, 4)).astype("float32")
    got = both([last, all_steps], x=feed)
    assert last.shape == (2, 4)
    np.testing.assert_array_equal(got[0], 2 * feed[-1])
    np.testing.assert_array_equal(got[1], 2 * feed)


def test_outputs_that_the_step_does_not_compute():
    """A step input, a memory, a parameter, and one variable twice: each is a result of its own."""
    x, start = sequence(), L.fill_constant([2, 4], "float32", 3.0)
    w = L.create_parameter([4], "float32", attr=fluid.ParamAttr("w", initializer=fluid.initializer.Constant(7.0)))
    rnn = L.StaticRNN()
    with rnn.step():
        now, before = rnn.step_input(x), rnn.memory(init=start)
        more = L.scale(now, 2.0)
        rnn.update_memory(before, now)
        rnn.output(now, before, w, more, more)
    fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program())
    feed = RNG.standard_normal((3, 2, 4)).astype("float32")
    same, before, weight, one, two = both(list(rnn()), x=feed)
    np.testing.assert_array_equal(same, feed)
    np.testing.assert_array_equal(before, [np.full((2, 4), 3.0), *feed[:-1]])
    np.testing.assert_array_equal(weight, np.full((3, 4), 7.0))
    np.testing.assert_array_equal(one, 2 * feed)
    np.testing.assert_array_equal(two, 2 * feed)


def test_two_memories_with_the_same_new_value():
    x = sequence(shape=(4, 1))
    one, two = L.fill_constant([1], "float32", 1.0), L.fill_constant([1], "float32", 2.0)
    rnn = L.StaticRNN()
    with rnn.step():
        now, a, b = rnn.step_input(x), rnn.memory(init=one), rnn.memory(init=two)
        total = L.sums([now, a, b])
        rnn.update_memory(a, total)
        rnn.update_memory(b, total)
        rnn.output(total)
    op = main().global_block().ops[-1]
    assert len(set(op.attr("states")) | {op.output("outputs")[0]}) == 3
    assert both([rnn()], x=np.ones((4, 1), "float32"))[0].ravel().tolist() == [4, 9, 19, 39]


def test_memories_swap():
    """Each memory becomes what the other was: both read the values from before."""
    x = sequence(shape=(3, 1))
    one, two = L.fill_constant([1], "float32", 1.0), L.fill_constant([1], "float32", 2.0)
    rnn = L.StaticRNN()
    with rnn.step():
        rnn.step_input(x)
        a, b = rnn.memory(init=one), rnn.memory(init=two)
        rnn.update_memory(a, b)
        rnn.update_memory(b, a)
        rnn.output(a, b)
    a, b = both(list(rnn()), x=np.zeros((3, 1), "float32"))
    assert a.ravel().tolist() == [1, 2, 1] and b.ravel().tolist() == [2, 1, 2]


def test_sequences_whose_length_only_the_run_tells():
    x, y = sequence("x", (-1, 2)), sequence("y", (-1, 2))
    rnn = L.StaticRNN()
    with rnn.step():
        rnn.output(L.elementwise_add(rnn.step_input(x), rnn.step_input(y)))
    assert rnn().shape == (-1, 2)
    for n in (1, 4, 2):
        a, b = np.ones((n, 2), "float32"), np.full((n, 2), 2.0, "float32")
        np.testing.assert_array_equal(both([rnn()], x=a, y=b)[0], a + b)
    with pytest.raises(EnforceNotMet, match="must have the same length"):
        both([rnn()], x=np.ones((3, 2), "float32"), y=np.ones((2, 2), "float32"))


def test_batches_of_changing_size():
    x = sequence(shape=(3, -1, 2))
    x.stop_gradient = False
    rnn = L.StaticRNN()
    with rnn.step():
        now, before = rnn.step_input(x), rnn.memory(shape=[-1, 2], batch_ref=x)
        total = L.elementwise_add(now, before)
        rnn.update_memory(before, total)
        rnn.output(total)
    fluid.backward.append_backward(L.reduce_sum(rnn()))
    for n in (2, 3, 1, 2):
        feed = RNG.integers(0, 9, (3, n, 2)).astype("float32")
        total, gradient = both([rnn(), "x@GRAD"], x=feed)
        np.testing.assert_array_equal(total, feed.cumsum(0))
        np.testing.assert_array_equal(gradient, np.broadcast_to([[[3]], [[2]], [[1]]], feed.shape))


def test_a_network_inside_a_network():
    """Running sums along both axes."""
    x, zero = sequence(shape=(3, 4, 2)), L.zeros([2], "float32")
    rows, nothing = L.StaticRNN(), L.zeros([4, 2], "float32")
    with rows.step():
        row, above = rows.step_input(x), rows.memory(init=nothing)
        inner = L.StaticRNN()
        with inner.step():
            cell, left = inner.step_input(row), inner.memory(init=zero)
            total = L.elementwise_add(cell, left)
            inner.update_memory(left, total)
            inner.output(total)
        both_axes = L.elementwise_add(inner(), above)
        rows.update_memory(above, both_axes)
        rows.output(both_axes)
    feed = RNG.integers(0, 9, (3, 4, 2)).astype("float32")
    np.testing.assert_array_equal(both([rows()], x=feed)[0], feed.cumsum(0).cumsum(1))


def test_a_loop_and_a_branch_inside_a_step():
    x = sequence(shape=(3, 1))
    rnn = L.StaticRNN()
    with rnn.step():
        value = L.assign(rnn.step_input(x))
        i, n = L.zeros([1], "int64"), L.fill_constant([1], "int64", 3)
        below = L.less_than(i, n)
        with L.While(below).block():
            L.assign(L.scale(value, 2.0), output=value)
            L.less_than(L.increment(i), n, cond=below)
        with L.Switch() as switch:
            with switch.case(L.less_than(value, L.zeros([1], "float32"))):
                L.assign(L.scale(value, -1.0), output=value)
        rnn.output(value)
    assert both([rnn()], x=np.array([[1], [-2], [3]], "float32"))[0].ravel().tolist() == [8, 16, 24]


def test_inside_a_loop():
    """Each pass of the loop sums along the sequence once more."""
    x = sequence(shape=(3, 2))
    state, zero = L.assign(x), L.zeros([2], "float32")
    i, n = L.zeros([1], "int64"), L.fill_constant([1], "int64", 2)
    below = L.less_than(i, n)
    with L.While(below).block():
        rnn = L.StaticRNN()
        with rnn.step():
            now, before = rnn.step_input(state), rnn.memory(init=zero)
            total = L.elementwise_add(now, before)
            rnn.update_memory(before, total)
            rnn.output(total)
        L.assign(rnn(), output=state)
        L.less_than(L.increment(i), n, cond=below)
    feed = RNG.integers(0, 9, (3, 2)).astype("float32")
    np.testing.assert_array_equal(both([state], x=feed)[0], feed.cumsum(0).cumsum(0))


def test_a_body_that_raises_leaves_nothing():
    x = sequence()
    rnn = L.StaticRNN()
    programs = (main(), fluid.default_startup_program())
    before = [p.desc.serialize_to_string() for p in programs]

    def fill(end):
        with rnn.step():
            now = rnn.step_input(x)
            h = rnn.memory(shape=[-1, 4], batch_ref=now)
            rnn.output(L.fc(now, 4, param_attr="w"))
            end(h, now)

    for end, error in (
        (lambda h, now: 1 / 0, ZeroDivisionError),
        (lambda h, now: None, OpAssertionError),
        (lambda h, now: rnn.update_memory(h, L.fc(now, 5)), OpValueError),
    ):
        with pytest.raises(error):
            fill(end)
        assert [p.desc.serialize_to_string() for p in programs] == before and main().current_block_idx == 0
    with pytest.raises(OpValueError, match="no step input"), rnn.step():
        L.ones([1], "float32")
    assert [p.desc.serialize_to_string() for p in programs] == before
    fill(rnn.update_memory)
    assert rnn().shape == (3, 2, 4)


def test_mistakes():
    x, rnn = sequence(), L.StaticRNN()
    for name in ("step_input", "memory", "step_output", "output"):
        with pytest.raises(OpValueError, match=f"You must invoke {name} in rnn block"):
            getattr(rnn, name)(x)
    with pytest.raises(OpValueError, match="You must invoke update_memory in rnn block"):
        rnn.update_memory(x, x)
    with pytest.raises(OpValueError, match="RNN output can only be retrieved after rnn block"):
        rnn()
    with rnn.step():
        with pytest.raises(OpTypeError, match="x of StaticRNN.step_input must be a Variable"):
            rnn.step_input(3)
        now = rnn.step_input(x)
        assert rnn.step_input(x) is now
        with pytest.raises(OpValueError, match="Static RNN only take fix seq_len input"):
            rnn.step_input(sequence("y", (4, 2)))
        with pytest.raises(OpValueError, match="if init is None, memory at least need shape and batch_ref"):
            rnn.memory(shape=[-1, 4])
        with pytest.raises(OpValueError, match="takes what is made outside of the block"):
            rnn.memory(init=L.relu(now))
        with pytest.raises(OpTypeError, match="o of StaticRNN.step_output must be a Variable"):
            rnn.step_output("now")
        with pytest.raises(OpTypeError, match="var of StaticRNN.update_memory must be a Variable"):
            rnn.update_memory(now, 3)
        with pytest.raises(OpValueError, match="Please invoke memory before update_memory"):
            rnn.update_memory(now, now)
        with pytest.raises(OpValueError, match="RNN output can only be retrieved after rnn block"):
            rnn()
    with pytest.raises(OpValueError, match="RNN has no output"):
        rnn()
    with pytest.raises(OpValueError, match="only be invoked once"):
        rnn.step()


def test_fluids_names_of_the_guard_and_the_link():
    x, rnn = sequence(), L.StaticRNN()
    with pytest.raises(OpTypeError, match="BlockGuardWithCompletion takes a StaticRNN"):
        BlockGuardWithCompletion(x)
    with BlockGuardWithCompletion(rnn) as body:
        now = rnn.step_input(x)
        before = rnn.memory(batch_ref=now, shape=[-1, 4])
        assert rnn.memories[before.name] == StaticRNNMemoryLink(rnn.memories[before.name].init, before)
        rnn.update_memory(before, L.relu(before))
        rnn.output(now)
        assert rnn.status == rnn.IN_RNN_BLOCK and main().current_block().idx == body.idx
    assert rnn.status == rnn.AFTER_RNN_BLOCK and rnn.seq_len == 3 and rnn.memories[before.name].mem.block is body
