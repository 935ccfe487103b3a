"""ParamAttr: what users may write where a parameter is described."""

import warnings

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.param_attr import ParamAttr


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def test_short_forms():
    assert ParamAttr.to_attr("w").name == "w"
    assert ParamAttr.to_attr(False) is None
    assert ParamAttr.to_attr(None).name is None and ParamAttr.to_attr(True).trainable
    c = fluid.initializer.Constant(1.0)
    assert ParamAttr.to_attr(c).initializer is c
    d = fluid.regularizer.L2Decay(0.1)
    assert ParamAttr.to_attr(d).regularizer is d
    with pytest.raises(OpTypeError, match="does not describe a parameter"):
        ParamAttr.to_attr(3)


def test_one_attr_for_two_layers_names_neither():
    attr = ParamAttr(learning_rate=0.5)
    x = fluid.layers.data("x", [3])
    a, b = fluid.layers.fc(x, 2, param_attr=attr), fluid.layers.fc(x, 2, param_attr=attr)
    assert attr.name is None and a.param is not b.param
    assert a.param.optimize_attr == {"learning_rate": 0.5}


def test_clip_is_another_name_for_gradient_clip():
    clip = fluid.clip.GradientClipByValue(1.0)
    assert ParamAttr(clip=clip).gradient_clip is clip
    with pytest.raises(OpValueError, match="another name"):
        ParamAttr(clip=clip, gradient_clip=clip)


def test_mistakes():
    with pytest.raises(OpTypeError, match="initializer"):
        ParamAttr(initializer=0.5)
    with pytest.raises(OpTypeError, match="name of ParamAttr must be a text"):
        ParamAttr(name=3)


def test_the_developer_guides_own_initialisation():
    """It passes (-1.0, 1.0) to a clip that takes max first: that is put right, with a warning."""
    with pytest.warns(UserWarning, match="swapped"):
        clip = fluid.clip.GradientClipByValue(-1.0, 1.0)
    param_attr = ParamAttr(
        name="fc_weight",
        learning_rate=1.0,
        regularizer=fluid.regularizer.L1Decay(1.0),
        trainable=True,
        clip=clip,
        initializer=fluid.initializer.UniformInitializer(low=-1.0, high=1.0, seed=0),
    )
    y = fluid.layers.fc(fluid.layers.data("x", [13]), size=1, param_attr=param_attr)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ops, _ = fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(y))
    assert [op.type for op in ops] == ["clip", "sign", "scale", "sum", "sgd", "sgd"]
    assert (ops[0].attr("min"), ops[0].attr("max")) == (-1.0, 1.0)
    assert [op.input("Param") for op in ops[-2:]] == [["fc_0.b_0"], ["fc_weight"]]
    exe = fluid.Executor(fluid.CPUPlace())
    [w] = exe.run(fluid.default_startup_program(), fetch_list=["fc_weight"])
    assert w.shape == (13, 1) and (abs(w) <= 1).all() and w.std() > 0.1


def test_its_text_appends_no_operator():
    rate = fluid.layers.fill_constant([1], "float32", 0.5)
    attr = fluid.ParamAttr(name="w", learning_rate=rate)
    count = len(rate.block.ops)
    assert repr(attr).startswith("ParamAttr(name='w', learning_rate=") and len(rate.block.ops) == count
    attr.learning_rate = np.array([1.0, 2.0])
    assert "array([1., 2.])" in repr(attr)
    assert repr(fluid.ParamAttr(learning_rate=1)) == "ParamAttr()"
