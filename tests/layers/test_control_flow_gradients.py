"""Gradients through loops, branches and recurrent networks: against central differences, in both walkers."""

import numpy as np
import pytest

import fluidnb as fluid
from tests.layers.gradients import check_gradients

L = fluid.layers
RNG = np.random.default_rng(11)


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def data(name, shape, levels=0, dtype="float64"):
    return L.data(name, list(shape), append_batch_size=False, lod_level=levels, dtype=dtype)


def values(*shape):
    return RNG.standard_normal(shape)


def sequences(array, lengths):
    return fluid.create_lod_tensor(np.asarray(array), lengths, fluid.CPUPlace())


def weighted(*results):
    """A loss to which every element counts differently."""
    total = None
    for result in results:
        part = L.mean(L.elementwise_mul(result, L.sin(L.scale(result, 3.0, bias=1.0))))
        total = part if total is None else L.elementwise_add(total, part)
    return total


def number(value, dtype="int64"):
    return L.fill_constant([1], dtype, value)


# IfElse.


@pytest.mark.parametrize("form", ["fluid", "deferred"])
@pytest.mark.parametrize("mask", [[1, 0, 1, 1, 0], [0] * 5, [1] * 5], ids=["mixed", "none", "all"])
def test_if_else(form, mask):
    x, cond = data("x", [-1, 3]), data("cond", [-1, 1], dtype="bool")
    ie = L.IfElse(cond if form == "fluid" else None)

    def take(v):
        return ie.input(v) if form == "fluid" else v

    with ie.true_block():
        ie.output(L.fc(take(x), 2, act="tanh", param_attr="w", bias_attr="b"))
    with ie.false_block():
        ie.output(L.fc(take(x), 2, act="sigmoid", param_attr="w", bias_attr="c"))
    (out,) = ie() if form == "fluid" else ie(cond)
    grads = check_gradients(weighted(out), {"x": values(5, 3), "cond": np.array(mask, bool).reshape(5, 1)})
    assert (grads["b"] == 0).all() == (not any(mask)) and (grads["c"] == 0).all() == all(mask)


@pytest.mark.parametrize("holds", [True, False])
def test_if_else_by_one_bool(holds):
    x, cond = data("x", [-1, 3]), data("cond", [1], dtype="bool")
    ie = L.IfElse(cond)
    with ie.true_block():
        ie.output(L.tanh(x))
    with ie.false_block():
        ie.output(L.square(ie.input(x)))
    check_gradients(weighted(*ie()), {"x": values(4, 3), "cond": np.array([holds])})


def test_if_else_over_sequences():
    x, cond = data("x", [-1, 2], 1), data("cond", [-1, 1], dtype="bool")
    ie = L.IfElse(cond)
    with ie.true_block():
        ie.output(L.sequence_pool(L.tanh(ie.input(x)), "sum"), L.square(ie.input(x)))
    with ie.false_block():
        ie.output(L.sequence_pool(ie.input(x), "average"), L.sin(ie.input(x)))
    pooled, rows = ie()
    feed = {"x": sequences(values(6, 2), [[2, 1, 3]]), "cond": np.array([[True], [False], [True]])}
    check_gradients(weighted(pooled, rows), feed)


def test_if_else_inside_if_else():
    x, a, b = data("x", [-1, 2]), data("a", [-1, 1], dtype="bool"), data("b", [-1, 1], dtype="bool")
    outer = L.IfElse()
    with outer.true_block():
        inner = L.IfElse()
        with inner.true_block():
            inner.output(L.tanh(x))
        with inner.false_block():
            inner.output(L.square(x))
        outer.output(L.elementwise_mul(inner(b)[0], x))
    with outer.false_block():
        outer.output(L.sin(x))
    masks = {"a": np.array([[1], [0], [1], [1]], bool), "b": np.array([[1], [1], [0], [1]], bool)}
    check_gradients(weighted(*outer(a)), {"x": values(4, 2), **masks})


def test_the_numbers_of_the_design_document():
    """The gradient of sum(o1) is [0, 1, 1] for x and 10 for the weight."""
    x = L.assign(np.array([[10], [20], [30]], "float32"))
    z = L.assign(np.array([[10], [20], [30]], "float32"))
    cond = L.greater_than(x, L.fill_constant_batch_size_like(x, [-1, 1], "float32", 15.0))
    ie = L.IfElse()
    with ie.true_block():
        d = L.elementwise_add(x, number(1.0, "float32"))
        ie.output(d, L.softmax(d))
    with ie.false_block():
        d = L.fc(z, size=1, param_attr=fluid.ParamAttr("w", initializer=fluid.initializer.Constant(1.0)))
        ie.output(d, d + 1)
    o1, _ = ie(cond)
    (gx,) = fluid.backward.gradients([L.reduce_sum(o1)], [x])
    ((_, gw),) = [p for p in fluid.backward.append_backward(L.reduce_sum(o1)) if p[0].name == "w"]
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    got = exe.run(fetch_list=[gx, gw])
    assert got[0].ravel().tolist() == [0, 1, 1] and got[1].tolist() == [[10]]


# Switch.


@pytest.mark.parametrize("case", [0, 1, 2])
def test_switch_through_the_branch_that_is_taken(case):
    x, which = data("x", [2]), data("which", [1], dtype="int64")
    out = L.scale(x, 0.5)
    with L.Switch() as switch:
        with switch.case(L.equal(which, number(0))):
            L.assign(L.tanh(x), output=out)
        with switch.case(L.equal(which, number(1))):
            L.assign(L.square(x), output=out)
    check_gradients(weighted(out), {"x": values(2), "which": np.array([case])})


# While.


def test_while_over_an_array():
    x, w = data("x", [3]), L.create_parameter([3], "float64", attr="w")
    i, n = L.zeros([1], "int64"), number(4)
    array = L.array_write(x, i)
    below = L.less_than(i, n)
    with L.While(below).block():
        before = L.array_read(array, i)
        more = L.tanh(L.elementwise_mul(before, w))
        i = L.increment(i)
        L.array_write(more, i, array=array)
        L.less_than(i, n, cond=below)
    check_gradients(weighted(L.array_read(array, i)), {"x": values(3)})


def test_while_in_while():
    x, w = data("x", [2]), L.create_parameter([2], "float64", attr="w")
    i, n, m = L.zeros([1], "int64"), number(2), number(3)
    rows = L.array_write(x, i)
    outer = L.less_than(i, n)
    with L.While(outer).block():
        j = L.zeros([1], "int64")
        cells = L.array_write(L.array_read(rows, i), j)
        inner = L.less_than(j, m)
        with L.While(inner).block():
            more = L.sin(L.elementwise_mul(L.array_read(cells, j), w))
            j = L.increment(j)
            L.array_write(more, j, array=cells)
            L.less_than(j, m, cond=inner)
        i = L.increment(i)
        L.array_write(L.array_read(cells, j), i, array=rows)
        L.less_than(i, n, cond=outer)
    check_gradients(weighted(L.array_read(rows, i)), {"x": values(2)})


def test_if_else_in_while():
    x = data("x", [-1, 1])
    i, n = L.zeros([1], "int64"), number(3)
    array = L.array_write(x, i)
    limit = L.fill_constant_batch_size_like(x, [-1, 1], "float64", 0.3)
    below = L.less_than(i, n)
    with L.While(below).block():
        before = L.array_read(array, i)
        ie = L.IfElse(L.less_than(before, limit))
        with ie.true_block():
            ie.output(L.fc(ie.input(before), 1, param_attr="up", bias_attr="b", act="sigmoid"))
        with ie.false_block():
            ie.output(L.fc(ie.input(before), 1, param_attr="down", bias_attr="c"))
        (after,) = ie()
        i = L.increment(i)
        L.array_write(after, i, array=array)
        L.less_than(i, n, cond=below)
    check_gradients(weighted(L.array_read(array, i)), {"x": np.array([[0.1], [0.9], [-0.5], [0.29]])})


# StaticRNN.


def step_net(rnn, x, size, outputs):
    now, before = rnn.step_input(x), rnn.memory(shape=[-1, size], batch_ref=x, init_value=0.1)
    hidden = L.fc([now, before], size, act="tanh", param_attr=["w", "u"], bias_attr="b")
    rnn.update_memory(before, hidden)
    found = {"hidden": hidden, "before": before, "now": now, "double": L.scale(hidden, 2.0)}
    rnn.output(*(found[o] for o in outputs))


@pytest.mark.parametrize(
    "outputs", [["hidden"], ["double"], ["before"], ["hidden", "double", "now"], ["hidden", "hidden"]], ids=str
)
def test_static_rnn(outputs):
    x = data("x", [3, 2, 2])
    rnn = L.StaticRNN()
    with rnn.step():
        step_net(rnn, x, 3, outputs)
    results = rnn()
    check_gradients(weighted(*(results if isinstance(results, list) else [results])), {"x": values(3, 2, 2)})


def test_static_rnn_from_what_is_given_and_the_last_step():
    x, init = data("x", [3, 2]), data("init", [2])
    rnn = L.StaticRNN()
    with rnn.step():
        now, a, b = rnn.step_input(x), rnn.memory(init=init), rnn.memory(init=init)
        total = L.tanh(L.elementwise_add(L.elementwise_mul(now, a), L.scale(b, 0.5)))
        rnn.update_memory(a, total)
        rnn.update_memory(b, a)
        rnn.output(total)
    check_gradients(weighted(rnn(output_all_steps=False)), {"x": values(3, 2), "init": values(2)})


def test_static_rnn_in_static_rnn():
    x = data("x", [2, 3, 2])
    start, nothing = L.fill_constant([2], "float64", 0.5), L.zeros([3, 2], "float64")
    w = L.create_parameter([2], "float64", attr="w")
    rows = L.StaticRNN()
    with rows.step():
        row, above = rows.step_input(x), rows.memory(init=nothing)
        inner = L.StaticRNN()
        with inner.step():
            cell, left = inner.step_input(row), inner.memory(init=start)
            total = L.tanh(L.elementwise_add(cell, L.elementwise_mul(left, w)))
            inner.update_memory(left, total)
            inner.output(total)
        both = L.elementwise_add(inner(), L.sin(above))
        rows.update_memory(above, both)
        rows.output(both)
    check_gradients(weighted(rows()), {"x": values(2, 3, 2)})


def test_a_branch_in_static_rnn():
    x, limit = data("x", [4, 3, 1]), L.fill_constant([3, 1], "float64", 0.2)
    rnn = L.StaticRNN()
    with rnn.step():
        now, before = rnn.step_input(x), rnn.memory(shape=[-1, 1], batch_ref=x)
        ie = L.IfElse(L.less_than(now, limit))
        with ie.true_block():
            ie.output(L.tanh(L.elementwise_add(ie.input(now), ie.input(before))))
        with ie.false_block():
            ie.output(L.elementwise_mul(ie.input(now), ie.input(before)))
        rnn.update_memory(before, ie()[0])
        rnn.output(ie()[0])
    check_gradients(weighted(rnn()), {"x": values(4, 3, 1)})


# DynamicRNN.


@pytest.mark.parametrize("lengths", [[3, 1, 2], [2], [2, 0, 3]], ids=str)
def test_dynamic_rnn(lengths):
    x, init, facts = data("x", [-1, 2], 1), data("init", [-1, 3]), data("facts", [-1, 3])
    rnn = L.DynamicRNN()
    with rnn.block():
        now, before = rnn.step_input(x), rnn.memory(init, need_reorder=True)
        also = rnn.memory(shape=[3], value=0.5, dtype="float64")
        hidden = L.fc([now, before], 3, act="tanh", param_attr=["w", "u"], bias_attr="b")
        seen = L.elementwise_mul(hidden, L.elementwise_add(rnn.static_input(facts), also))
        rnn.update_memory(before, hidden)
        rnn.update_memory(also, seen)
        rnn.output(hidden, seen)
    hidden, seen = rnn()
    n = len(lengths)
    feed = {"x": sequences(values(sum(lengths), 2), [lengths]), "init": values(n, 3), "facts": values(n, 3)}
    check_gradients(weighted(L.sequence_pool(hidden, "sum"), seen), feed)


def test_dynamic_rnn_with_an_output_that_is_not_last_and_a_memory_times_itself():
    x = data("x", [-1, 2], 1)
    rnn = L.DynamicRNN()
    with rnn.block():
        now, before = rnn.step_input(x), rnn.memory(shape=[2], value=0.7, dtype="float64")
        rnn.output(L.elementwise_mul(before, before))
        rnn.update_memory(before, L.tanh(L.elementwise_mul(L.elementwise_mul(before, before), now)))
    check_gradients(weighted(rnn()), {"x": sequences(values(5, 2), [[3, 2]])})


def test_dynamic_rnn_in_dynamic_rnn():
    x = data("x", [-1, 1], 2)
    outer = L.DynamicRNN()
    with outer.block():
        sentence, above = outer.step_input(x), outer.memory(shape=[1], value=0.2, dtype="float64")
        inner = L.DynamicRNN()
        with inner.block():
            word, left = inner.step_input(sentence), inner.memory(shape=[1], value=0.3, dtype="float64")
            more = L.tanh(L.fc([word, left], 1, param_attr=["w", "u"], bias_attr=False))
            inner.update_memory(left, more)
            inner.output(more)
        total = L.elementwise_mul(L.sequence_last_step(inner()), L.scale(above, 1.0, bias=1.0))
        outer.update_memory(above, total)
        outer.output(total)
    check_gradients(weighted(outer()), {"x": sequences(values(6, 1), [[2, 1], [1, 2, 3]])})


def attend(memory, projected, state):
    """What a decoder looks at: the rows of an encoder's sequence, weighted by how well they fit its state."""
    wish = L.sequence_expand(x=L.fc(state, 2, bias_attr=False, param_attr="wish"), y=projected)
    scores = L.fc(L.tanh(L.concat([projected, wish], axis=1)), 1, bias_attr=False, param_attr="score")
    weights = L.reshape(L.sequence_softmax(scores), [-1])
    return L.sequence_pool(L.elementwise_mul(x=memory, y=weights, axis=0), "sum")


def test_encoder_and_decoder_with_attention():
    """Step inputs, a static input that is a sequence, a memory from outside: all that a DynamicRNN has."""
    source, target = data("source", [-1, 2], 1), data("target", [-1, 2], 1)
    encoder = L.DynamicRNN()
    with encoder.block():
        word, before = encoder.step_input(source), encoder.memory(shape=[2], dtype="float64")
        state = L.fc([word, before], 2, act="tanh", param_attr=["e.w", "e.u"], bias_attr="e.b")
        encoder.update_memory(before, state)
        encoder.output(state)
    states = encoder()
    keys, last = L.fc(states, 2, param_attr="p", bias_attr=False), L.sequence_last_step(states)
    decoder = L.DynamicRNN()
    with decoder.block():
        word = decoder.step_input(target)
        before = decoder.memory(init=last, need_reorder=True)
        context = attend(decoder.static_input(states), decoder.static_input(keys), before)
        state = L.fc([word, before, context], 2, act="tanh", param_attr=["d.w", "d.u", "d.c"], bias_attr="d.b")
        decoder.update_memory(before, state)
        decoder.output(state)
    feed = {"source": sequences(values(6, 2), [[2, 1, 3]]), "target": sequences(values(6, 2), [[1, 3, 2]])}
    grads = check_gradients(weighted(decoder()), feed)
    assert len(grads) == 2 + 10 and all(np.abs(g).max() > 0 for g in grads.values())


def running_sum(x, weight):
    """tanh(word + weight · what was), as sequences."""
    rnn = L.DynamicRNN()
    with rnn.block():
        word, before = rnn.step_input(x), rnn.memory(shape=[2], value=0.1, dtype="float64")
        more = L.tanh(L.elementwise_add(word, L.fc(before, 2, param_attr=weight, bias_attr=False)))
        rnn.update_memory(before, more)
        rnn.output(more)
    return rnn()


@pytest.mark.parametrize("form", ["fluid", "deferred"])
@pytest.mark.parametrize("mask", [[1, 0, 1], [0, 0, 0]], ids=["mixed", "none"])
def test_dynamic_rnn_inside_the_sides_of_if_else(form, mask):
    x, cond = data("x", [-1, 2], 1), data("cond", [-1, 1], dtype="bool")
    ie = L.IfElse(cond if form == "fluid" else None)
    with ie.true_block():
        ie.output(running_sum(ie.input(x) if form == "fluid" else x, "w"))
    with ie.false_block():
        ie.output(running_sum(ie.input(x) if form == "fluid" else x, "u"))
    (out,) = ie() if form == "fluid" else ie(cond)
    feed = {"x": sequences(values(6, 2), [[2, 1, 3]]), "cond": np.array(mask, bool).reshape(3, 1)}
    check_gradients(weighted(L.sequence_pool(out, "sum")), feed)


def test_if_else_and_switch_inside_dynamic_rnn():
    x, scale = data("x", [-1, 2], 1), data("scale", [1])
    rnn = L.DynamicRNN()
    with rnn.block():
        word, before = rnn.step_input(x), rnn.memory(shape=[2], value=0.1, dtype="float64")
        total = L.elementwise_add(word, before)
        limit = L.fill_constant_batch_size_like(total, [-1, 1], "float64", 0.0)
        ie = L.IfElse(L.less_than(L.reduce_sum(total, dim=1, keep_dim=True), limit))
        with ie.true_block():
            ie.output(L.fc(ie.input(total), 2, param_attr="w", bias_attr=False, act="tanh"))
        with ie.false_block():
            ie.output(L.square(ie.input(total)))
        (more,) = ie()
        factor = L.assign(scale)
        with L.Switch() as switch:
            with switch.case(L.less_than(rnn.step_idx, number(1))):
                L.assign(L.scale(scale, 2.0), output=factor)
        rnn.update_memory(before, L.elementwise_mul(more, factor))
        rnn.output(more)
    feed = {"x": sequences(values(6, 2), [[2, 1, 3]]), "scale": np.array([0.7])}
    check_gradients(weighted(rnn()), feed)


def test_static_rnn_inside_dynamic_rnn():
    """Each step runs along the columns of its rows."""
    x = data("x", [-1, 3], 1)
    rnn = L.DynamicRNN()
    with rnn.block():
        word, above = rnn.step_input(x), rnn.memory(shape=[1], value=0.2, dtype="float64")
        columns = L.StaticRNN()
        turned = L.reshape(L.transpose(word, [1, 0]), [3, -1, 1])
        with columns.step():
            cell, left = columns.step_input(turned), columns.memory(init=above)
            more = L.tanh(L.elementwise_add(cell, L.fc(left, 1, param_attr="w", bias_attr=False)))
            columns.update_memory(left, more)
            columns.output(more)
        last = columns(output_all_steps=False)
        rnn.update_memory(above, last)
        rnn.output(last)
    check_gradients(weighted(rnn()), {"x": sequences(values(5, 3), [[2, 3]])})
