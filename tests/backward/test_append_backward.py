"""append_backward: names, order, roles, sums where readers meet, and what gets no gradient."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.backward import append_backward
from fluidnb.proto.framework_pb2 import AttrType

L = fluid.layers


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def block():
    return fluid.default_main_program().global_block()


def types(start=0):
    return [op.type for op in block().ops][start:]


def linear():
    y = L.fc(L.data("x", [13]), 1)
    return L.mean(L.square_error_cost(y, L.data("y", [1])))


def test_the_order_of_the_developer_guide():
    pairs = append_backward(linear())
    assert types(5) == [
        "fill_constant", "mean_grad", "square_grad", "elementwise_sub_grad", "elementwise_add_grad", "mul_grad",
    ]  # fmt: skip
    assert [(p.name, g.name) for p, g in pairs] == [("fc_0.w_0", "fc_0.w_0@GRAD"), ("fc_0.b_0", "fc_0.b_0@GRAD")]


def test_what_the_design_document_expects_of_a_sum():
    x = L.data(name="x", shape=(2, 3, 4), dtype="float32")
    loss = L.reduce_sum(L.fc(x, 128))
    [(w, dw), (b, db)] = append_backward(loss=loss)
    assert (w.shape, b.shape) == ((24, 128), (128,)) == (dw.shape, db.shape)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    got = exe.run(feed={"x": np.ones((5, 2, 3, 4), "float32")}, fetch_list=[dw, db])
    assert (got[0] == 5).all() and (got[1] == 5).all()


def test_the_gradient_of_the_loss_is_filled_with_one():
    loss = linear()
    append_backward(loss)
    fill = block().ops[5]
    assert fill.output("Out") == [loss.name + "@GRAD"] and fill.attr("value") == 1.0
    assert fill.attr("shape") == [1] and fill.attr_type("shape") == AttrType.LONGS
    assert (loss.op.attr("op_role"), fill.attr("op_role"), block().ops[6].attr("op_role")) == (256, 257, 1)


def test_gradients_look_like_their_variables():
    x = L.data("x", [4], lod_level=1, stop_gradient=False)
    append_backward(L.mean(L.relu(x)))
    dx = x.grad
    assert (dx.shape, dx.dtype, dx.lod_level, dx.type) == (x.shape, x.dtype, 1, x.type)
    assert not dx.persistable and not dx.stop_gradient and not dx.is_data


def test_operators_that_complete_a_parameters_gradient_say_so():
    append_backward(linear())
    said = {op.type: op.attr("op_role_var") for op in block().ops if op.has_attr("op_role_var")}
    assert said == {
        "elementwise_add_grad": ["fc_0.b_0", "fc_0.b_0@GRAD"], "mul_grad": ["fc_0.w_0", "fc_0.w_0@GRAD"]
    }  # fmt: skip


def test_contributions_of_several_readers_are_summed():
    x = L.data("x", [4], stop_gradient=False)
    h = L.relu(x)
    append_backward(L.mean(L.sums([L.tanh(h), L.square(h), L.sigmoid(h)])))
    parts = [f"{h.name}@GRAD@RENAME@block0@{k}" for k in range(3)]
    writers = {n: op.type for op in block().ops for n in op.output_arg_names}
    assert [writers[p] for p in parts] == ["sigmoid_grad", "square_grad", "tanh_grad"]
    names = types()
    total = block().ops[names.index("sum", names.index("fill_constant"))]
    assert (total.input("X"), total.output("Out")) == (parts, [h.name + "@GRAD"])
    assert total.attr("op_role") == 1 and names[names.index("relu_grad") - 1] == "sum"


def test_a_variable_that_is_both_operands_gets_both_contributions():
    x = L.data("x", [3], stop_gradient=False, append_batch_size=False)
    append_backward(L.reduce_sum(L.elementwise_mul(x, x)))
    grad = next(op for op in block().ops if op.type == "elementwise_mul_grad")
    assert grad.output("X@GRAD") == ["x@GRAD@RENAME@block0@0"]
    assert grad.output("Y@GRAD") == ["x@GRAD@RENAME@block0@1"]
    [dx] = fluid.Executor(fluid.CPUPlace()).run(feed={"x": np.array([1, 2, 3], "float32")}, fetch_list=["x@GRAD"])
    np.testing.assert_allclose(dx, [2, 4, 6])


def test_a_shared_parameter_gets_the_sum():
    x = L.data("x", [3])
    a = L.fc(x, 3, param_attr="w", bias_attr=False)
    b = L.fc(a, 3, param_attr="w", bias_attr=False)
    [(w, dw)] = append_backward(L.reduce_sum(b))
    assert types()[-1] == "sum" and dw.name == "w@GRAD"
    assert block().ops[-1].attr("op_role_var") == ["w", "w@GRAD"]
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    data = np.random.default_rng(0).normal(size=(5, 3)).astype("float32")
    got, value = exe.run(feed={"x": data}, fetch_list=[dw, w])
    ones = np.ones((5, 3))
    np.testing.assert_allclose(got, data.T @ (ones @ value.T) + (data @ value).T @ ones, rtol=1e-4)


def test_unwanted_gradients_are_empty_and_unneeded_operators_are_not_made():
    x = L.scale(L.data("x", [3]), 2.0)
    x.stop_gradient = True
    append_backward(L.mean(L.fc(x, 2)))
    assert block().ops[-1].output("X@GRAD") == ["@EMPTY@"]
    assert "scale" not in types(5)
    assert not block().has_var(x.name + "@GRAD")


def test_stop_gradient_and_no_grad_set_end_the_way():
    def build(**given):
        h = L.fc(L.data("x", [3]), 2, param_attr="v", bias_attr=False)
        y = L.fc(h, 1, param_attr="w", bias_attr=False)
        if given.get("stop"):
            h.stop_gradient = True
        no_grad = {"name": {h.name}, "variable": [h], None: None}[given.get("no_grad")]
        return [p.name for p, _ in append_backward(L.mean(y), no_grad_set=no_grad)]

    assert build() == ["v", "w"]
    for given in ({"stop": True}, {"no_grad": "name"}, {"no_grad": "variable"}):
        with fluid.fresh():
            assert build(**given) == ["w"]


@pytest.mark.parametrize("freeze", ["trainable", "stop_gradient"])
def test_frozen_parameters_have_no_gradient(freeze):
    x = L.data("x", [3])
    h = L.fc(x, 2, param_attr=fluid.ParamAttr(trainable=freeze != "trainable"), bias_attr=False)
    if freeze == "stop_gradient":
        h.param.stop_gradient = True
    pairs = append_backward(L.mean(L.fc(h, 1, bias_attr=False)))
    assert [p.name for p, _ in pairs] == ["fc_1.w_0"] and not block().has_var("fc_0.w_0@GRAD")


def test_parameter_list_chooses_what_is_returned():
    loss = linear()
    w = block().var("fc_0.w_0")
    assert [p.name for p, _ in append_backward(loss, parameter_list=[w])] == ["fc_0.w_0"]


def test_a_listed_parameter_without_a_part_in_the_loss_is_noticed():
    L.create_parameter([2], "float32", name="other")
    loss = linear()
    with pytest.warns(UserWarning, match="does not depend on other"):
        pairs = append_backward(loss, parameter_list=["other", "fc_0.b_0"])
    assert [p.name for p, _ in pairs] == ["fc_0.b_0"]


def test_a_second_backward_has_names_of_its_own():
    x = L.data("x", [3])
    h = L.fc(x, 2, bias_attr=False)
    first, second = L.mean(h), L.mean(L.square(h))
    [(w, a)] = append_backward(first)
    [(_, b)] = append_backward(second)
    assert a.name == "fc_0.w_0@GRAD" and b.name != a.name
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    data = np.random.default_rng(0).normal(size=(4, 3)).astype("float32")
    da, db, value = exe.run(feed={"x": data}, fetch_list=[a, b, w])
    np.testing.assert_allclose(da, data.T @ np.full((4, 2), 1 / 8), rtol=1e-5)
    np.testing.assert_allclose(db, data.T @ (2 * data @ value / 8), rtol=1e-4)


def test_callbacks_see_every_gradient_operator():
    seen = []

    def callback(block, context):
        op = block.ops[-1]
        seen.append((op.type, [context[n] for n in op.output_arg_names if n in context]))

    loss = linear()
    append_backward(loss, callbacks=[callback])
    assert seen[0] == ("fill_constant", [loss.name])
    assert seen[-1] == ("mul_grad", ["fc_0.w_0"])
    assert [t for t, _ in seen] == types(5)


def test_a_variable_written_in_place():
    x = L.data("x", [3], stop_gradient=False, append_batch_size=False)
    h = L.scale(x, 3.0)
    L.sums([h, x], out=h)  # h = 3x + x
    append_backward(L.reduce_sum(h))
    [dx] = fluid.Executor(fluid.CPUPlace()).run(feed={"x": np.ones(3, "float32")}, fetch_list=["x@GRAD"])
    np.testing.assert_allclose(dx, [4, 4, 4])


def test_an_output_that_nobody_uses_counts_as_zero():
    from fluidnb.op import default_grad, grad_op, op, remove_op

    @op("test_two_ways", inputs={"X": "any"}, outputs={"A": "2 X", "B": "3 X"}, infer=_two, grad=default_grad())
    def two(b):
        b(np.multiply, b["X"], b.const(2, b["X"].dtype), out=b["A"])
        b(np.multiply, b["X"], b.const(3, b["X"].dtype), out=b["B"])

    @grad_op("test_two_ways_grad")
    def two_grad(b):
        t = b.like(b["X"])
        b(np.multiply, b["B@GRAD"], b.const(3, t.dtype), out=t)
        b(np.multiply, b["A@GRAD"], b.const(2, t.dtype), out=b["X@GRAD"])
        b(np.add, b["X@GRAD"], t, out=b["X@GRAD"])

    try:
        x = L.data("x", [3], stop_gradient=False, append_batch_size=False)
        a, b = (block().create_var(name=n, dtype="float32") for n in "ab")
        block().append_op("test_two_ways", {"X": x}, {"A": a, "B": b})
        append_backward(L.reduce_sum(a))
        assert "fill_zeros_like" in types()
        [dx] = fluid.Executor(fluid.CPUPlace()).run(feed={"x": np.ones(3, "float32")}, fetch_list=["x@GRAD"])
        np.testing.assert_allclose(dx, [2, 2, 2])
    finally:
        remove_op("test_two_ways")
        remove_op("test_two_ways_grad")


def _two(c):
    for slot in ("A", "B"):
        c.set(slot, c["X"].shape, c["X"].dtype)


def test_layers_know_their_gradients():
    hidden = L.fc(L.data("x", [3]), 2)
    loss = L.mean(hidden)
    with pytest.raises(ValueError, match="minimize or append_backward first"):
        hidden.param.grad  # noqa: B018
    append_backward(loss)
    assert hidden.param.grad.name == "fc_0.w_0@GRAD" and hidden.grad.name == hidden.name + "@GRAD"
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    w, dw = exe.run(feed={"x": np.ones((4, 3), "float32")}, fetch_list=[hidden.param, hidden.param.grad])
    assert w.shape == dw.shape == (3, 2)
    np.testing.assert_allclose(dw, np.full((3, 2), 0.5))


def test_values_agree_with_finite_differences():
    x, label = L.data("x", [4], dtype="float64"), L.data("label", [1], dtype="int64")
    h = L.fc(x, 5, act="tanh")
    g = L.elementwise_mul(h, L.sigmoid(h))
    p = L.fc([g, x], 3, act="softmax")
    loss = L.mean(L.cross_entropy(p, label))
    pairs = append_backward(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    rng = np.random.default_rng(3)
    feed = {"x": rng.normal(size=(6, 4)), "label": rng.integers(0, 3, (6, 1))}
    grads = exe.run(feed=feed, fetch_list=[g for _, g in pairs])
    assert len(pairs) == 5
    for (param, _), grad in zip(pairs, grads, strict=True):
        tensor = fluid.global_scope().find_var(param.name).get_tensor()
        value = np.array(tensor)
        for index in list(np.ndindex(*value.shape))[:4]:
            sides = []
            for step in (1e-6, -1e-6):
                moved = value.copy()
                moved[index] += step
                tensor.set(moved, fluid.CPUPlace())
                sides.append(exe.run(feed=feed, fetch_list=[loss])[0].item())
            tensor.set(value, fluid.CPUPlace())
            assert grad[index] == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-5, abs=1e-9)


def test_every_write_to_an_array_gets_its_gradient():
    x = L.data("x", [2, 3], append_batch_size=False, stop_gradient=False)
    i, j = L.zeros([1], "int64"), L.ones([1], "int64")
    array = L.array_write(L.square(x), i)
    early = L.array_read(array, i)
    L.array_write(L.scale(x, 5.0), j, array=array)
    late = [L.array_read(array, i), L.array_read(array, j)]
    append_backward(L.reduce_sum(L.sums([early, *late])))
    feed = {"x": np.array([[1, 2, 3], [4, 5, 6]], "float32")}
    [dx] = fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=["x@GRAD"])
    np.testing.assert_allclose(dx, 2 * 2 * feed["x"] + 5)


def test_a_printed_variable_hands_its_gradient_on(capfd):
    x = L.data("x", [3], stop_gradient=False, append_batch_size=False)
    y = L.Print(L.square(x), message="seen")
    append_backward(L.reduce_sum(y))
    [dx] = fluid.Executor(fluid.CPUPlace()).run(feed={"x": np.ones(3, "float32")}, fetch_list=["x@GRAD"])
    np.testing.assert_allclose(dx, [2, 2, 2])
    shown = capfd.readouterr()
    assert (shown.out + shown.err).count("seen") == 2
