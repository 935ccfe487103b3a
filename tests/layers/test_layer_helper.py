"""LayerHelper: Fluid's methods, and the spellings of the design document."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.initializer import Constant
from fluidnb.layer_helper import LayerHelper

layers = fluid.layers


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def fc_by_kwargs(input, size, param_attr=None, bias_attr=None, act=None, name=None):
    helper = LayerHelper("fc", **locals())
    products = []
    for x, attr in helper.iter_inputs_and_params():
        w = helper.create_parameter(attr, shape=[x.shape[1], size], dtype=x.dtype)
        tmp = helper.create_variable_for_type_inference(x.dtype)
        helper.append_op(type="mul", inputs={"X": x, "Y": w}, outputs={"Out": tmp})
        products.append(tmp)
    return helper.append_activation(helper.append_bias_op(helper.append_sum(products)))


def fc_by_locals(input, size, param_attr=None, bias_attr=None, act=None, name=None):
    helper = LayerHelper(locals())
    products = []
    for x, _ in helper.iter_multiple_input_and_param():
        w = helper.create_parameter(shape=[x.shape[1], size], dtype=x.dtype)
        tmp = helper.create_tmp_var()
        helper.append_op(type="mul", inputs={"X": x, "Y": w}, outputs={"Out": tmp})
        products.append(tmp)
    return helper.add_activation(helper.add_bias(helper.add_sum(products)))


@pytest.mark.parametrize("own", [fc_by_kwargs, fc_by_locals])
@pytest.mark.parametrize("inputs", [1, 2])
def test_a_users_own_fc_equals_ours(own, inputs):
    given = [layers.data(f"x{i}", [3]) for i in range(inputs)]
    attr = fluid.ParamAttr(initializer=fluid.initializer.Uniform(-1, 1, seed=5))
    bias = fluid.ParamAttr(initializer=Constant(0.5))
    mine = own(given, 4, param_attr=[attr] * inputs, bias_attr=bias, act="tanh")
    ours = layers.fc(given, 4, param_attr=[attr] * inputs, bias_attr=bias, act="tanh")
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    block = fluid.default_main_program().global_block()
    scope = fluid.global_scope()
    weights = [p for p in block.all_parameters() if len(p.shape) == 2]
    for i in range(inputs):  # the two layers draw different weights; give both the same
        first, second = (scope.find_var(weights[k].name).get_tensor() for k in (i, i + inputs))
        second.set(np.array(first), fluid.CPUPlace())
    feed = {f"x{i}": np.random.default_rng(i).normal(size=(5, 3)).astype("float32") for i in range(inputs)}
    a, b = exe.run(feed=feed, fetch_list=[mine, ours])
    np.testing.assert_allclose(a, b, rtol=1e-6)
    assert a.std() > 0.01


def test_the_name_of_locals_is_the_functions():
    out = fc_by_locals(layers.data("x", [3]), 2)
    assert out.name.startswith("fc_by_locals_0.tmp_")


def test_absent_options_are_left_out():
    helper = LayerHelper("nothing", bias_attr=False)
    x = layers.data("x", [3])
    assert helper.append_activation(x) is x
    assert helper.append_bias_op(x) is x
    assert helper.append_sum([x]) is x


def test_activation_as_a_dict_with_attributes():
    y = LayerHelper("h", act={"type": "softmax", "axis": 1}).append_activation(layers.data("x", [3, 4]))
    assert y.op.type == "softmax" and y.op.attr("axis") == 1


def test_inputs_are_checked():
    x, y = layers.data("x", [3]), layers.data("y", [3], dtype="float64")
    assert LayerHelper("h", input=x).input() is x
    with pytest.raises(OpValueError, match="only takes one input"):
        LayerHelper("h", input=[x, y]).input()
    with pytest.raises(OpValueError, match="Data Type mismatch"):
        LayerHelper("h", input=[x, y]).input_dtype()
    with pytest.raises(OpTypeError, match="label of h must be a Variable"):
        LayerHelper("h", label=None).input("label")


def test_parameters_by_name():
    helper = LayerHelper("h")
    w = helper.create_parameter("w", [2, 3], "float32")
    assert helper.get_parameter("w") is w
    with pytest.raises(OpValueError, match="no Parameter name v found"):
        helper.get_parameter("v")
    layers.data("x", [3])
    with pytest.raises(OpValueError, match="no Parameter name x found"):
        helper.get_parameter("x")


def test_a_parameter_needs_a_known_shape():
    helper = LayerHelper("h")
    for shape in (None, [], [3, -1], [0]):
        with pytest.raises(OpValueError):
            helper.create_parameter("w", shape, "float32")
    assert not fluid.default_main_program().all_parameters()


def test_a_refused_initializer_leaves_no_parameter():
    three, helper = fluid.initializer.NumpyArrayInitializer(np.zeros(3, "float32")), LayerHelper("h")
    a = helper.create_global_variable(name="a", shape=[2], dtype="float32", persistable=True)
    startup = fluid.default_startup_program().global_block()
    with pytest.raises(OpValueError, match="another shape than the parameter"):
        helper.create_parameter(fluid.ParamAttr(name="w", initializer=three), [2], "float32")
    with pytest.raises(OpValueError, match="another shape than the parameter"):
        helper.set_variable_initializer(a, three)
    assert not fluid.default_main_program().all_parameters() and not startup.vars
    helper.create_parameter(fluid.ParamAttr(name="w"), [2], "float32")
    assert len(startup.ops) == 1


def test_parameters_land_in_the_global_block_also_from_inside():
    with fluid.framework.BlockGuard(fluid.default_main_program()):
        w = LayerHelper("h").create_parameter(None, [2], "float32")
    assert w.block.idx == 0


def test_global_variables():
    helper = LayerHelper("h")
    a, new = helper.create_or_get_global_variable("counter", dtype="int64", shape=[1], persistable=True)
    b, again = helper.create_or_get_global_variable("counter", dtype="int64", shape=[1], persistable=True)
    assert a is b and (new, again) == (True, False) and a.persistable
    helper.set_variable_initializer(a, Constant(3))
    op = fluid.default_startup_program().global_block().ops[-1]
    assert op.output("Out") == ["counter"] and op.attr("value") == 3.0
    assert helper.create_global_variable(dtype="float32", shape=[1]).name == "h_0.tmp_0"


def test_is_instance():
    helper = LayerHelper("h", size=3)
    helper.is_instance("size", int)
    with pytest.raises(OpTypeError, match="size parameter of method h must be str"):
        helper.is_instance("size", str)


def test_programs_can_be_given():
    main, startup = fluid.Program(), fluid.Program()
    LayerHelper("h", main_program=main, startup_program=startup).create_parameter("w", [2], "float32")
    assert main.global_block().has_var("w") and startup.global_block().has_var("w")
    assert not fluid.default_main_program().global_block().has_var("w")
