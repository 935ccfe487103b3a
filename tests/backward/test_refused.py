"""Refusals of backward: clear errors, with program and names as they were."""

import gc

import pytest

import fluidnb as fluid
from fluidnb.backward import append_backward
from fluidnb.errors import NotBuiltYet, OpTypeError, OpValueError
from fluidnb.program import Block, unique_name

L = fluid.layers


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def refused(kind, loss, **arguments):
    """The message of the error; nothing may have changed."""
    program = fluid.default_main_program()
    before, names = program.desc.serialize_to_string(), dict(unique_name.generator.ids)
    ops = list(program.global_block().ops)
    with pytest.raises(kind) as caught:
        append_backward(loss, **arguments)
    assert program.desc.serialize_to_string() == before
    assert unique_name.generator.ids == names
    assert all(a is b for a, b in zip(ops, program.global_block().ops, strict=True))
    return str(caught.value)


def hidden():
    return L.fc(L.data("x", [3]), 2)


def test_what_is_no_variable():
    assert "loss of append_backward must be a Variable" in refused(OpTypeError, "loss")


def test_a_loss_of_many_numbers():
    said = refused(OpValueError, hidden())
    assert "must be one number" in said and "fc_0.tmp_1  float32[-1, 2]" in said and "layers.mean()" in said


def test_a_loss_that_is_no_float():
    assert "floating" in refused(OpValueError, L.ones([1], "int64"))


def test_a_loss_that_nothing_computes():
    said = refused(OpValueError, L.data("y", [1], append_batch_size=False))
    assert "No operator computes y" in said


def test_an_operator_without_gradient_on_the_way():
    x, label = L.data("x", [3]), L.data("label", [1], dtype="int64")
    said = refused(OpValueError, _differentiable_accuracy(L.fc(x, 4), label))
    assert "accuracy has no gradient" in said and "op 3 (accuracy) in block 0" in said and "stop_gradient" in said


def _differentiable_accuracy(score, label):
    acc = L.accuracy(score, label)
    acc.stop_gradient = False
    return acc


@pytest.mark.parametrize("callbacks", [None, [lambda block, context: block.ops[0].set_attr("note", 1)]])
def test_a_failure_among_the_gradients(monkeypatch, callbacks):
    loss, add, added = L.mean(L.fc(hidden(), 2)), Block.put_desc, []

    def fails_at_the_fourth(self, desc, *args, **kwargs):
        added.append(desc.optype)
        if len(added) == 4:
            raise OpValueError("The fourth is refused.")
        return add(self, desc, *args, **kwargs)

    monkeypatch.setattr(Block, "put_desc", fails_at_the_fourth)
    assert "The fourth is refused." in refused(OpValueError, loss, callbacks=callbacks)
    assert added[2:] == ["elementwise_add_grad", "mul_grad"] and gc.isenabled()


def test_a_comparison_ends_the_way_without_a_word():
    h = hidden()
    mask = L.cast(L.greater_than(h, L.square(h)), "float32")
    pairs = append_backward(L.mean(L.elementwise_mul(h, mask)))
    assert [p.name for p, _ in pairs] == ["fc_0.w_0", "fc_0.b_0"]
    assert "cast" not in [op.type for op in fluid.default_main_program().global_block().ops if op.attr("op_role") == 1]


def test_an_operator_without_gradient_inside_a_loop():
    x, label, total = L.data("x", [3]), L.data("label", [1], dtype="int64"), L.zeros([1], "float32")
    total.stop_gradient = False
    score = L.fc(x, 4)
    i, n = L.zeros([1], "int64"), L.ones([1], "int64")
    cond = L.less_than(i, n)
    with L.While(cond).block():
        L.sums([total, _differentiable_accuracy(score, label)], out=total)
        L.increment(i)
        L.less_than(i, n, cond=cond)
    said = refused(OpValueError, L.scale(total, 2.0))
    assert "accuracy has no gradient" in said and "(accuracy) in block 1" in said and "stop_gradient" in said


def test_a_loop_beside_the_way_is_no_matter():
    h = L.mean(hidden())
    i, n = L.zeros([1], "int64"), L.ones([1], "int64")
    cond = L.less_than(i, n)
    with L.While(cond).block():
        L.increment(i)
        L.less_than(i, n, cond=cond)
    assert len(append_backward(h)) == 2


def test_a_loss_inside_a_block():
    h = hidden()
    with fluid.framework.BlockGuard(fluid.default_main_program()):
        assert "in block 1" in refused(NotBuiltYet, L.mean(h))


def test_lists_of_something_else():
    loss = L.mean(hidden())
    assert "parameter_list of append_backward must be" in refused(OpTypeError, loss, parameter_list=[3])
    assert "no_grad_set of append_backward must be" in refused(OpTypeError, loss, no_grad_set=[None])
    assert "callbacks of append_backward must be a list" in refused(OpTypeError, loss, callbacks=print)


def test_a_callback_that_raises():
    def callback(block, context):
        if block.ops[-1].type == "mul_grad":
            raise ValueError("no.")

    assert refused(ValueError, L.mean(hidden()), callbacks=[callback]) == "no."


def test_a_value_that_is_overwritten_before_its_gradient_needs_it():
    h = hidden()
    y = L.square(h)
    L.assign(y, output=h)
    said = refused(OpValueError, L.mean(y))
    assert "The gradient of square needs fc_0.tmp_1 as square saw it, but assign overwrites it" in said
    assert "op 2 (square) in block 0" in said and "op 3 (assign) in block 0" in said


def test_a_value_of_which_only_the_shape_matters_may_be_overwritten():
    h = hidden()
    y = L.elementwise_add(h, h)
    L.assign(y, output=h)
    assert len(append_backward(L.mean(y))) == 2


def test_an_operator_that_overwrites_its_own_input():
    h = hidden()
    fluid.default_main_program().global_block().append_op("square", {"X": h}, {"Out": h})
    assert "but square overwrites it" in refused(OpValueError, L.mean(h))


def test_an_operator_whose_gradient_reads_its_output_may_overwrite_its_input():
    h = hidden()
    fluid.default_main_program().global_block().append_op("tanh", {"X": h}, {"Out": h})
    assert len(append_backward(L.mean(h))) == 2


def test_a_parameter_that_was_updated_in_between_is_noticed():
    h = hidden()
    first, second = L.mean(h), L.mean(L.fc(h, 1, bias_attr=False))
    sgd = fluid.optimizer.SGD(0.1)
    sgd.minimize(first)
    append_backward(second)  # reads fc_1.w_0, which nothing has updated
    with fluid.fresh():
        h = hidden()
        out = L.fc(h, 1, bias_attr=False)
        first, second = L.mean(out), L.mean(L.square(out))
        fluid.optimizer.SGD(0.1).minimize(first)
        with pytest.warns(UserWarning, match="reads fc_1.w_0 after"):
            append_backward(second)
