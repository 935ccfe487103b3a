"""Initializers: the operators they append, and what these give."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.initializer import fans

I = fluid.initializer  # noqa: E741


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def value(initializer, shape, dtype="float32"):
    w = fluid.layers.create_parameter(shape, dtype, name="w", default_initializer=initializer)
    [out] = fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program(), fetch_list=[w.name])
    assert out.shape == tuple(shape) and out.dtype == np.dtype(dtype)
    return out


def test_constant():
    assert (value(I.Constant(2.5), [2, 3]) == 2.5).all()


def test_a_number_that_32_bits_cannot_hold_is_exact():
    assert value(I.Constant(0.1), [1], "float64")[0] == 0.1
    with fluid.fresh():
        assert value(I.Constant(2**53 + 1), [1], "int64")[0] == 2**53 + 1


def test_uniform():
    out = value(I.Uniform(-0.5, 0.25), [2000])
    assert -0.5 <= out.min() < -0.45 and 0.2 < out.max() <= 0.25


def test_normal():
    out = value(I.Normal(3.0, 0.5), [5000])
    assert out.mean() == pytest.approx(3.0, abs=0.05) and out.std() == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize(
    ("initializer", "std"),
    [
        (I.Xavier(), np.sqrt(2 / 300)),
        (I.Xavier(uniform=False), np.sqrt(2 / 300)),
        (I.Xavier(fan_in=10, fan_out=40), np.sqrt(2 / 50)),
        (I.MSRA(), np.sqrt(2 / 100)),
        (I.MSRA(uniform=False), np.sqrt(2 / 100)),
        (I.MSRA(fan_in=50), np.sqrt(2 / 50)),
    ],
)
def test_spread_follows_the_fans(initializer, std):
    assert value(initializer, [100, 200]).std() == pytest.approx(std, rel=0.05)


def test_fans():
    assert fans((8, 3, 5, 5)) == (75, 200)
    assert fans((7,)) == (7, 7) and fans(()) == (1, 1)


def test_array():
    array = np.arange(6, dtype="float32").reshape(2, 3)
    np.testing.assert_array_equal(value(I.NumpyArrayInitializer(array), [2, 3]), array)


def test_mistakes():
    with pytest.raises(OpValueError, match="swapped"):
        I.Uniform(1.0, -1.0)
    with pytest.raises(OpTypeError, match="must be an array"):
        I.NumpyArrayInitializer([1, 2])
    with pytest.raises(OpValueError, match="another shape"):
        fluid.layers.create_parameter([3], "float32", default_initializer=I.NumpyArrayInitializer(np.zeros(2)))
    with pytest.raises(OpValueError, match='Did you mean "seed"'):
        fluid.layers.set_defaults("seeds")


def test_the_design_documents_defaults_can_be_chosen():
    assert fluid.layers.set_defaults("seed") == "fluid"
    try:
        fluid.layers.fc(fluid.layers.data("x", [3]), 2)
    finally:
        fluid.layers.set_defaults("fluid")
    w, b = fluid.default_startup_program().global_block().ops
    assert (w.type, w.attr("min"), w.attr("max")) == ("uniform_random", -1.0, 1.0)
    assert (b.type, b.attr("value")) == ("fill_constant", 0.0)


def test_two_parameters_draw_different_numbers():
    a = fluid.layers.create_parameter([5], "float32", name="a")
    b = fluid.layers.create_parameter([5], "float32", name="b")
    x, y = fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program(), fetch_list=[a.name, b.name])
    assert not np.array_equal(x, y)
