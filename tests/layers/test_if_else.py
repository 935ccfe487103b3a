"""IfElse: rows go two ways and come back in order, in all its spellings."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import OpTypeError, OpValueError
from tests.layers.walkers import both, sequences

L = fluid.layers
RNG = np.random.default_rng(3)
MASKS = [[1, 0, 0, 1, 1], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1], [0, 1, 0, 0, 0]]


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def main():
    return fluid.default_main_program()


def types(block=0):
    return [op.type for op in main().block(block).ops]


def fluid_form(x, cond):
    ie = L.IfElse(cond)
    with ie.true_block():
        ie.output(L.scale(ie.input(x), -1.0), L.tanh(ie.input(x)))
    with ie.false_block():
        ie.output(L.scale(ie.input(x), 10.0), L.square(ie.input(x)))
    return ie()


def deferred_form(x, cond):
    ie = L.IfElse()
    with ie.true_block():
        ie.output(L.scale(x, -1.0), L.tanh(x))
    with ie.false_block():
        ie.output(L.scale(x, 10.0), L.square(x))
    return ie(cond)


def counted_form(x, cond):
    ie = L.IfElse(inputs=[x], output_num=2)
    with ie.true_block():
        ie.set_output(True, 1, L.tanh(ie.inputs(True, 0)))
        ie.set_output(True, 0, L.scale(ie.inputs(True, 0), -1.0))
    with ie.false_block():
        ie.set_output(False, 0, L.scale(ie.inputs(False, 0), 10.0))
        ie.set_output(False, 1, L.square(ie.inputs(False, 0)))
    return ie(cond)


FORMS = pytest.mark.parametrize("form", [fluid_form, deferred_form, counted_form])


@FORMS
@pytest.mark.parametrize("column", [True, False], ids=["column", "vector"])
def test_rows_go_two_ways_and_come_back(form, column):
    x = L.data("x", [3])
    cond = L.data("cond", [1] if column else [-1], dtype="bool", append_batch_size=column)
    o1, o2 = form(x, cond)
    assert o1.shape[1:] == (3,)
    for mask in MASKS:
        mask = np.array(mask, bool).reshape(-1, 1)
        feed = RNG.standard_normal((5, 3)).astype("float32")
        first, second = both([o1, o2], x=feed, cond=mask if column else mask.ravel())
        np.testing.assert_array_equal(first, np.where(mask, -feed, feed * 10))
        np.testing.assert_allclose(second, np.where(mask, np.tanh(feed), feed**2), rtol=1e-6)


@FORMS
def test_a_batch_of_fixed_size(form):
    x = L.data("x", [4, 3], append_batch_size=False)
    cond = L.data("cond", [4, 1], dtype="bool", append_batch_size=False)
    feed, mask = RNG.standard_normal((4, 3)).astype("float32"), np.array([[1], [0], [1], [1]], bool)
    np.testing.assert_array_equal(both(form(x, cond), x=feed, cond=mask)[0], np.where(mask, -feed, feed * 10))


@FORMS
@pytest.mark.parametrize("holds", [True, False])
def test_one_bool_decides_for_the_whole_batch(form, holds):
    x, cond = L.data("x", [3]), L.data("cond", [1], dtype="bool", append_batch_size=False)
    o1, _ = form(x, cond)
    feed = RNG.standard_normal((4, 3)).astype("float32")
    np.testing.assert_array_equal(both([o1], x=feed, cond=[holds])[0], -feed if holds else feed * 10)
    assert "merge_lod_tensor" not in types()


@FORMS
def test_one_bool_and_one_number(form):
    x, cond = L.fill_constant([1], "float32", 10.0), L.fill_constant([1], "bool", 0)
    np.testing.assert_array_equal(both([form(x, cond)[0]])[0], [100.0])


def test_the_parts_can_be_fetched():
    x, cond = L.data("x", [1]), L.data("cond", [1], dtype="bool")
    ie = L.IfElse(inputs=[x], output_num=1)
    with ie.true_block():
        true = ie.inputs(True, 0)
        ie.set_output(True, 0, true)
    with ie.false_block():
        false = ie.inputs(False, 0)
        ie.set_output(False, 0, false)
    out = ie(cond)
    feed, mask = np.arange(3, dtype="float32").reshape(3, 1), np.array([[True], [False], [True]])
    t, f, o = both([true, false, out], x=feed, cond=mask)
    assert t.tolist() == [[0], [2]] and f.tolist() == [[1]] and o.tolist() == feed.tolist()


@pytest.mark.parametrize("holds", [True, False])
def test_the_parts_of_a_whole_batch(holds):
    x, cond = L.data("x", [2]), L.data("cond", [1], dtype="bool", append_batch_size=False)
    ie = L.IfElse(cond)
    with ie.true_block():
        true = ie.input(x)
        ie.output(true)
    with ie.false_block():
        false = ie.input(x)
        ie.output(false)
    (out,) = ie()
    feed = np.ones((3, 2), "float32")
    t, f, o = both([true, false, out], x=feed, cond=[holds])
    assert (len(t), len(f), len(o)) == ((3, 0, 3) if holds else (0, 3, 3))


def s2():
    """The design document's example, in Fluid's own words."""
    x = L.assign(np.array([[10], [20], [30]], "float32"))
    y = L.fill_constant([1], "float32", 1.0)
    z = L.assign(np.array([[10], [20], [30]], "float32"))
    x.stop_gradient = z.stop_gradient = False
    cond = L.greater_than(x, L.fill_constant_batch_size_like(x, [-1, 1], "float32", 15.0))
    ie = L.IfElse()
    with ie.true_block():
        d = L.elementwise_add(x, y)
        ie.output(d, L.softmax(d))
    with ie.false_block():
        d = L.fc(z, size=1, param_attr=fluid.ParamAttr("w", initializer=fluid.initializer.Constant(1.0)))
        ie.output(d, d + 1)
    return x, cond, *ie(cond)


def test_the_design_document():
    _, cond, o1, o2 = s2()
    fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program())
    c, a, b = both([cond, o1, o2])
    assert c.ravel().tolist() == [False, True, True]
    assert a.tolist() == [[10], [21], [31]] and b.tolist() == [[11], [1], [1]]


def test_what_has_rows_is_split_and_nothing_else():
    s2()
    splits = [op for op in main().global_block().ops if op.type == "split_lod_tensor"]
    assert [op.input("X")[0] for op in splits] == ["assign_value_0.tmp_0", "assign_value_1.tmp_0"]
    assert types().count("merge_lod_tensor") == types().count("conditional_block") == 2
    true, false = (op for op in main().global_block().ops if op.type == "conditional_block")
    assert true.input("Input") == [splits[0].output("OutTrue")[0], "fill_constant_0.tmp_0"]
    assert false.input("Input")[1:] == ["w", "fc_0.b_0"] and main().num_blocks == 3


def test_a_side_runs_on_its_rows_and_not_without():
    x, cond = L.data("x", [2]), L.data("cond", [1], dtype="bool")
    runs = L.create_global_var([1], 0.0, "float32", persistable=True)
    ie = L.IfElse(cond)
    with ie.true_block():
        L.increment(runs)
        ie.output(L.elementwise_sub(ie.input(x), L.reduce_max(ie.input(x), dim=0)))  # no maximum of nothing
    with ie.false_block():
        ie.output(ie.input(x))
    (out,) = ie()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feed = np.array([[1, 5], [2, 3], [4, 4]], "float32")
    for mask, want, count in (
        ([0, 0, 0], feed, 0), ([1, 0, 1], [[-3, 0], [2, 3], [0, -1]], 1), ([0, 0, 0], feed, 1)
    ):  # fmt: skip
        got, n = exe.run(feed={"x": feed, "cond": np.array(mask, bool).reshape(3, 1)}, fetch_list=[out, runs])
        assert got.tolist() == np.asarray(want).tolist() and n[0] == count


def test_sequences_go_whole():
    x, cond = L.data("x", [1], lod_level=1), L.data("cond", [1], dtype="bool")
    ie = L.IfElse(cond)
    with ie.true_block():
        ie.output(L.scale(ie.input(x), -1.0), L.sequence_pool(ie.input(x), "sum"))
    with ie.false_block():
        ie.output(ie.input(x), L.sequence_pool(ie.input(x), "max"))
    steps, pooled = ie()
    feed = sequences(np.arange(1, 7).reshape(6, 1), [[2, 1, 3]])
    for mask, want, pools in (
        ([1, 0, 1], [-1, -2, 3, -4, -5, -6], [3, 3, 15]), ([0, 0, 0], [1, 2, 3, 4, 5, 6], [2, 3, 6])
    ):  # fmt: skip
        out, pool = both([steps, pooled], return_numpy=False, x=feed, cond=np.array(mask, bool).reshape(3, 1))
        assert np.array(out).ravel().tolist() == want and out.lod() == [[0, 2, 3, 6]]
        assert np.array(pool).ravel().tolist() == pools


def test_one_side_alone_gives_its_rows():
    x, cond = L.data("x", [1]), L.data("cond", [1], dtype="bool")
    ie = L.IfElse(cond)
    with ie.false_block():
        ie.output(L.scale(ie.input(x), 2.0))
    (out,) = ie()
    feed, mask = np.array([[1], [2], [3]], "float32"), np.array([[False], [True], [False]])
    assert both([out], x=feed, cond=mask)[0].tolist() == [[2], [6]]


def test_the_call_can_be_made_again():
    x, cond = L.data("x", [1]), L.data("cond", [1], dtype="bool")
    ie = L.IfElse(cond)
    for side in (ie.true_block, ie.false_block):
        with side():
            ie.output(L.relu(ie.input(x)))
    first, count = ie(), len(types())
    assert ie() == first and len(types()) == count


def nested(x, a, b):
    outer = L.IfElse(a)
    with outer.true_block():
        inner, part = L.IfElse(outer.input(b)), outer.input(x)
        with inner.true_block():
            inner.output(L.scale(inner.input(part), 100.0))
        with inner.false_block():
            inner.output(L.scale(inner.input(part), 10.0))
        outer.output(*inner())
    with outer.false_block():
        outer.output(outer.input(x))
    return outer()[0]


def nested_deferred(x, a, b):
    outer = L.IfElse()
    with outer.true_block():
        inner = L.IfElse()
        with inner.true_block():
            inner.output(L.scale(x, 100.0))
        with inner.false_block():
            inner.output(L.scale(x, 10.0))
        outer.output(*inner(b))
    with outer.false_block():
        outer.output(L.assign(x))
    return outer(a)[0]


@pytest.mark.parametrize("build", [nested, nested_deferred])
def test_one_inside_another(build):
    x, a, b = L.data("x", [1]), L.data("a", [1], dtype="bool"), L.data("b", [1], dtype="bool")
    out = build(x, a, b)
    feed = np.arange(1, 5, dtype="float32").reshape(4, 1)
    masks = {"a": np.array([[1], [0], [1], [1]], bool), "b": np.array([[1], [1], [0], [1]], bool)}
    assert both([out], x=feed, **masks)[0].ravel().tolist() == [100, 2, 30, 400]


def test_a_loop_and_a_recurrent_network_inside_a_side():
    x, cond = L.data("x", [2]), L.data("cond", [1], dtype="bool")
    nothing = L.zeros([2], "float32")
    ie = L.IfElse()
    with ie.true_block():
        i, n, total = L.zeros([1], "int64"), L.fill_constant([1], "int64", 3), L.assign(x)
        below = L.less_than(i, n)
        with L.While(below).block():
            L.assign(L.elementwise_add(total, x), output=total)  # x two blocks further in
            L.less_than(L.increment(i), n, cond=below)
        ie.output(total)
    with ie.false_block():
        rnn = L.StaticRNN()
        with rnn.step():  # along the rows themselves
            row, before = rnn.step_input(x), rnn.memory(init=nothing)
            more = L.elementwise_add(row, before)
            rnn.update_memory(before, more)
            rnn.output(more)
        ie.output(rnn())
    (out,) = ie(cond)
    feed, mask = np.arange(8, dtype="float32").reshape(4, 2), np.array([[1], [0], [0], [1]], bool)
    assert both([out], x=feed, cond=mask)[0].tolist() == [[0, 4], [2, 3], [6, 8], [24, 28]]


def test_inside_a_loop():
    x = L.data("x", [1])
    i, n, total = L.zeros([1], "int64"), L.fill_constant([1], "int64", 3), L.assign(x)
    limit = L.fill_constant_batch_size_like(x, [-1, 1], "float32", 10.0)
    below = L.less_than(i, n)
    with L.While(below).block():
        ie = L.IfElse(L.less_than(total, limit))
        with ie.true_block():
            ie.output(L.scale(ie.input(total), 3.0))
        with ie.false_block():
            ie.output(L.scale(ie.input(total), 1.0, bias=-1.0))
        L.assign(ie()[0], output=total)
        L.less_than(L.increment(i), n, cond=below)
    assert both([total], x=np.array([[1], [4], [20]], "float32"))[0].ravel().tolist() == [27, 10, 17]


def test_sides_that_do_not_fit_together():
    x, cond = L.data("x", [3]), L.data("cond", [1], dtype="bool")
    ie = L.IfElse(cond)
    with ie.true_block():
        ie.output(ie.input(x))
    with ie.false_block():
        ie.output(L.fc(ie.input(x), 2))
    before = main().desc.serialize_to_string()
    with pytest.raises(OpValueError, match="give rows that do not fit together"):
        ie()
    assert main().desc.serialize_to_string() == before
    one = L.IfElse(L.zeros([1], "bool"))
    with one.true_block():
        one.output(L.assign(x))
    with pytest.raises(OpValueError, match="give rows that do not fit together"):
        with one.false_block():
            one.output(L.fc(x, 2))
    with one.false_block():
        one.output(L.scale(x, 2.0))
    assert one()[0].shape == (-1, 3)


@pytest.mark.parametrize("given", [True, False])
def test_a_body_that_raises_leaves_nothing(given):
    x, cond = L.data("x", [3]), L.data("cond", [1], dtype="bool")
    ie = L.IfElse(cond if given else None)
    both_programs = (main(), fluid.default_startup_program())
    before = [p.desc.serialize_to_string() for p in both_programs]
    with pytest.raises(ZeroDivisionError):
        with ie.true_block():
            ie.output(L.fc(ie.input(x), 3))
            raise ZeroDivisionError
    with pytest.raises(OpValueError, match="Must set output inside block"):
        with ie.true_block():
            ie.input(x)
    assert [p.desc.serialize_to_string() for p in both_programs] == before
    assert main().current_block_idx == 0
    with ie.true_block():
        ie.output(L.relu(ie.input(x)))
    assert ie(None if given else cond)[0].shape == (-1, 3)


def test_a_call_that_fails_leaves_nothing():
    x, wrong = L.data("x", [3]), L.data("wrong", [2], dtype="bool")
    cond = L.data("cond", [1], dtype="bool")
    ie = L.IfElse()
    with ie.true_block():
        ie.output(L.relu(x))
    before = main().desc.serialize_to_string()
    for bad, error in ((None, OpTypeError), (3, OpTypeError), (x, OpTypeError), (wrong, OpValueError)):
        with pytest.raises(error, match="^cond "):
            ie(bad)
    with fluid.framework.BlockGuard(main()), pytest.raises(OpValueError, match="must be called in the block"):
        ie(cond)
    main().desc.remove_blocks(2)
    assert main().desc.serialize_to_string() == before
    assert ie(cond)[0].shape == (-1, 3)


def test_sides_that_do_not_fit_are_found_before_anything_changes():
    x, cond = L.data("x", [3]), L.data("cond", [1], dtype="bool")
    ie = L.IfElse()
    with ie.true_block():
        ie.output(L.relu(x))
    with ie.false_block():
        ie.output(L.reduce_sum(x))
    before = main().desc.serialize_to_string()
    for _ in range(2):
        with pytest.raises(OpValueError, match="give rows that do not fit together"):
            ie(cond)
        assert main().desc.serialize_to_string() == before


def test_a_side_that_writes_what_it_has_only_in_part():
    x, cond = L.data("x", [3]), L.data("cond", [1], dtype="bool")
    ie = L.IfElse()
    with ie.true_block():
        L.assign(L.relu(x), output=x)
        ie.output(x)
    before = main().desc.serialize_to_string()
    with pytest.raises(OpValueError, match="The true_block writes x, of which it has only some rows"):
        ie(cond)
    assert main().desc.serialize_to_string() == before
