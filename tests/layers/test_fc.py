"""fc: one product for each input, their sum, a bias, an activation."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import OpTypeError, OpValueError
from tests.tools.refused import refused

layers = fluid.layers


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def types():
    return [op.type for op in fluid.default_main_program().global_block().ops]


def run(fetch, feed):
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe.run(feed=feed, fetch_list=fetch)


def test_forward_definition_of_the_developer_guide():
    x = layers.data(name="x", shape=[13], dtype="float32")
    y_predict = layers.fc(input=x, size=1, act=None)
    y = layers.data(name="y", shape=[1], dtype="float32")
    cost = layers.square_error_cost(input=y_predict, label=y)
    avg_cost = layers.mean(x=cost)
    assert types() == ["mul", "elementwise_add", "elementwise_sub", "square", "mean"]
    block = fluid.default_main_program().global_block()
    shapes = {n: block.var(n).shape for n in ("x", "fc_0.w_0", "fc_0.b_0", "y", avg_cost.name)}
    assert shapes == {"x": (-1, 13), "fc_0.w_0": (13, 1), "fc_0.b_0": (1,), "y": (-1, 1), "mean_0.tmp_0": (1,)}
    first, second = fluid.default_startup_program().global_block().ops
    assert first.type == "uniform_random" and first.attr("max") == pytest.approx(0.6546537)
    assert second.type == "fill_constant" and second.attr("value") == 0.0


def test_one_input_gives_product_bias_and_activation():
    x = layers.data("x", [3])
    h = layers.fc(x, 2, act="relu")
    data = np.array([[1, -2, 3], [0, 1, 0]], "float32")
    out, w, b = run([h, h.params[0], h.params[1]], {"x": data})
    np.testing.assert_allclose(out, np.maximum(data @ w + b, 0), rtol=1e-6)
    assert h.param.name == "fc_0.w_0"


def test_several_inputs_have_a_weight_each_and_are_summed():
    x, y = layers.data("x", [3]), layers.data("y", [2])
    h = layers.fc([x, y], 4, bias_attr=False)
    assert types() == ["mul", "mul", "sum"]
    assert [(p.name, p.shape) for p in h.params] == [("fc_0.w_0", (3, 4)), ("fc_0.w_1", (2, 4))]
    a, b = np.ones((5, 3), "float32"), np.full((5, 2), 2, "float32")
    out, v, w = run([h, *h.params], {"x": a, "y": b})
    np.testing.assert_allclose(out, a @ v + b @ w, rtol=1e-6)


def test_a_fixed_batch_and_an_unknown_one_may_be_summed():
    h = layers.fc([layers.data("x", [3]), layers.data("y", [5, 2], append_batch_size=False)], 4)
    assert h.shape in ((-1, 4), (5, 4))


def test_leading_axes_stay_rows():
    x = layers.data("x", [2, 3, 4], append_batch_size=False)
    assert layers.fc(x, 5, num_flatten_dims=2).shape == (2, 3, 5)
    assert layers.fc(x, 5).shape == (2, 5)
    weights = [p.shape for p in fluid.default_main_program().all_parameters()]
    assert weights == [(4, 5), (5,), (12, 5), (5,)]


def test_the_name_starts_the_names_of_parameters():
    h = layers.fc(layers.data("x", [3]), 2, name="hidden")
    assert [p.name for p in h.params] == ["hidden.w_0", "hidden.b_0"]


def test_parameters_of_one_name_are_one_parameter_with_one_initializer():
    x = layers.data("x", [3])
    a = layers.fc(x, 3, param_attr="shared", bias_attr=False)
    b = layers.fc(a, 3, param_attr=fluid.ParamAttr(name="shared"), bias_attr=False)
    assert a.param is b.param
    assert len(fluid.default_startup_program().global_block().ops) == 1


def test_a_shared_parameter_of_another_shape_is_refused():
    x = layers.data("x", [3])
    layers.fc(x, 3, param_attr="shared", bias_attr=False)
    before = fluid.default_main_program().desc.serialize_to_string()
    with pytest.raises(OpValueError, match="shared has been created before"):
        layers.fc(x, 4, param_attr="shared", bias_attr=False)
    assert fluid.default_main_program().desc.serialize_to_string() == before


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"input": 3}, OpTypeError, "input of fc must be a Variable"),
        ({"size": 0}, OpValueError, "at least one output feature"),
        ({"num_flatten_dims": 2}, OpValueError, "cannot keep 2 axes"),
        ({"act": "reluu"}, OpValueError, 'Did you mean "relu"'),
        ({"act": 7}, OpTypeError, "act names an activation"),
        ({"act": "mul"}, OpValueError, "mul is not an activation"),
        ({"param_attr": [None, None]}, OpValueError, "parameter number mismatch"),
        ({"param_attr": False}, OpValueError, "cannot do without this parameter"),
        ({"bias_attr": 1.5}, OpTypeError, "bias_attr of fc must be a ParamAttr"),
    ],
)
def test_mistakes_leave_both_programs_as_they_were(arguments, kind, words):
    x = layers.data("x", [13])
    programs = fluid.default_main_program(), fluid.default_startup_program()
    before = [p.desc.serialize_to_string() for p in programs]
    with refused(kind, words):
        layers.fc(**{"input": x, "size": 4, **arguments})
    assert [p.desc.serialize_to_string() for p in programs] == before
    assert layers.fc(x, 4).param.name == "fc_0.w_0"


def test_an_unknown_size_cannot_be_flattened():
    with pytest.raises(OpValueError, match="needs to know every size of x"):
        layers.fc(layers.data("x", [-1, -1]), 4)
