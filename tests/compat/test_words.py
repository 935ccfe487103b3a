"""The words of the design documents: what each appends, and what it says when it is misused."""

from __future__ import annotations

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import compat
from fluidnb.compat import layer, pd
from fluidnb.errors import NotFound, OpTypeError, OpValueError
from fluidnb.values.dtypes import dtype_name

L = fluid.layers


def types() -> list[str]:
    """The operator types of the main program's global block."""
    return [op.type for op in fluid.default_main_program().global_block().ops]


def test_a_minibatch_looks_as_if_it_were_fed() -> None:
    x, mask, rows = pd.minibatch([10, 20, 30]), pd.minibatch([True, False]), pd.minibatch([[1, 2], [3, 4]], name="rows")
    assert [(v.shape, dtype_name(v.dtype)) for v in (x, mask, rows)] == [
        ((-1, 1), "float32"), ((-1, 1), "bool"), ((-1, 2), "float32"),
    ]  # fmt: skip
    values = compat.evaluate([x, mask, "rows"])
    assert [v.tolist() for v in values] == [[[10], [20], [30]], [[True], [False]], [[1, 2], [3, 4]]]
    assert L.fc(x, size=2).shape == (-1, 2)


@pytest.mark.parametrize("values", ["text", [], [1, "a"], None, [object()]])
def test_what_is_no_batch_is_refused(values: object) -> None:
    with pytest.raises(OpTypeError, match="minibatch takes numbers or bools"):
        pd.minibatch(values)
    assert types() == []


def test_sequences_carry_their_lod() -> None:
    one, rows = pd.sequence([10, 20, 30]), pd.sequence(np.ones((4, 2)), name="rows")
    several = pd.sequence([[1, 2], [3]])
    assert [(v.shape, v.lod_level) for v in (one, rows, several)] == [((-1, 1), 1), ((-1, 2), 1), ((-1, 1), 1)]
    executor = fluid.Executor(fluid.CPUPlace())
    values = executor.run(fetch_list=[one, "rows", several], return_numpy=False)
    assert [v.lod() for v in values] == [[[0, 3]], [[0, 4]], [[0, 2, 3]]]
    assert np.array(values[2]).tolist() == [[1], [2], [3]] and values[2].shape() == [3, 1]


@pytest.mark.parametrize(
    ("value", "dtype"), [(1, "int64"), (1.5, "float32"), (False, "bool"), (np.float64(2), "float32"), (2**40, "int64")]
)
def test_a_var_has_the_type_of_its_number(value: object, dtype: str) -> None:
    v = pd.var(value, name="v")
    assert (v.name, v.shape, dtype_name(v.dtype), v.stop_gradient) == ("v", (1,), dtype, True)
    assert compat.evaluate(v).tolist() == [value]


def test_a_var_that_is_a_parameter() -> None:
    w = pd.var(1, param=True, name="w")
    assert isinstance(w, fluid.Parameter) and dtype_name(w.dtype) == "float32" and w.trainable
    assert compat.evaluate(w).tolist() == [1]
    with pytest.raises(OpTypeError, match="value of var must be a number"):
        pd.var([1, 2])


@pytest.mark.parametrize("word", ["add", "add_two", "larger_than", "matmul"])
def test_integers_become_floats_beside_floats(word: str) -> None:
    x = pd.minibatch([10])
    for left, right in ((x, pd.var(3)), (pd.var(3), x), (x, 3), (3, x)):
        want = {"larger_than": left is x, "matmul": 30.0}.get(word, 13.0)
        assert compat.evaluate(getattr(pd, word)(left, right)).ravel().tolist() == [want]


def test_integers_stay_integers_among_themselves() -> None:
    total = pd.add(pd.var(1), 2)
    assert dtype_name(total.dtype) == "int64" and compat.evaluate(total).tolist() == [3]
    assert dtype_name(pd.add(pd.var(1), 0.5).dtype) == "float32"


def test_a_word_that_is_refused_leaves_nothing() -> None:
    x = pd.minibatch([1.0])
    before = fluid.default_main_program().desc.serialize_to_string()
    for call in (lambda: pd.add(x, "y"), lambda: pd.add(1, 2), lambda: pd.matmul(pd.tensor(), 2)):
        with pytest.raises(OpTypeError):
            call()
    assert fluid.default_main_program().desc.serialize_to_string() == before


def test_tensors_get_their_shape_from_their_neighbour() -> None:
    w, b, m = pd.tensor(), pd.tensor(name="b"), pd.tensor()
    x = pd.minibatch([[1, 2, 3]])
    y = pd.add(layer.fc(w, pd.minibatch([2])), 0.0)
    z = pd.add(layer.fc(m, x), b)
    assert (w.parameter.shape, b.parameter.shape, m.parameter.shape) == ((1,), (3,), (3, 3))
    assert b.parameter.name == "b" and y.shape == (-1, 1) and z.shape == (-1, 3)
    again = layer.fc(m, z)
    assert again.op.input("Y") == [m.parameter.name]
    weight, shift = (fluid.default_main_program().global_block().var(v.parameter.name) for v in (m, b))
    got = compat.evaluate([z, weight, shift])
    np.testing.assert_allclose(got[0], [[1, 2, 3]] @ got[1] + got[2], rtol=1e-5)
    assert pd.tensor([2, 3]).shape == (2, 3)


def test_fc_says_sizes_and_names_by_itself() -> None:
    a = pd.Variable(shape=[20, 20], name="a")
    b = pd.fc(a, params=["fc.w", "fc.b"])
    top = fluid.default_main_program().global_block()
    assert (top.var("fc.w").shape, top.var("fc.b").shape, b.shape) == ((20, 20), (20,), (20, 20))
    assert pd.fc([a, b], size=3, params=["shared"], act="relu").shape == (20, 3)
    assert layer.fc(pd.minibatch([1.0])).shape == (-1, 1)
    with pytest.raises(OpValueError, match="names the weight and the bias"):
        pd.fc(a, params=["w", "b", "c"])
    with pytest.raises(OpValueError, match="names the weight and the bias"):
        pd.fc(a, params=["w", "b"], bias_attr=False)
    with pytest.raises(OpTypeError, match="params of fc must be a list of texts"):
        pd.fc(a, params="fc.w")


def test_fc_of_two_variables_is_their_product() -> None:
    x, w = pd.minibatch([[1.0, 2.0]]), L.assign(np.array([[1, 10], [2, 20]], "float32"))
    assert compat.evaluate([layer.fc(w, x), layer.fc(pd.var(3.0), x)])[0].tolist() == [[5, 50]]
    assert types()[1:] == ["assign_value", "mul", "fill_constant", "elementwise_mul"]


def test_integers_and_single_numbers_reach_layers_of_floats() -> None:
    x = pd.var(10)
    assert compat.evaluate([pd.operator.softmax(x), pd.sigmoid(pd.var(0), name="half")])[1].tolist() == [0.5]
    one = layer.fc(x, param_attr=fluid.initializer.Constant(3.0))
    assert one.shape == (1,) and compat.evaluate(one).tolist() == [30]
    assert layer.fc(pd.var(1), size=4).shape == (1, 4)


def test_get_variable_looks_outwards() -> None:
    w = L.create_parameter([2], "float32", name="fc.w")
    with fluid.framework.BlockGuard(fluid.default_main_program()) as inner:
        assert pd.get_variable("fc.w") is fluid.get_variable("fc.w") is w
        local = inner.create_var(name="fc.w", shape=[3], dtype="float32")
        assert pd.get_variable("fc.w") is local
        with pytest.raises(NotFound, match="fc.v is not found") as caught:
            pd.get_variable("fc.v")
        assert isinstance(caught.value, ValueError) and "blocks 1, 0" in str(caught.value)


def test_the_slip_of_the_pen_is_taken_and_named() -> None:
    with pytest.warns(UserWarning, match='write "pd.Variable"'):
        a = pd.Varaible(shape=[20, 20])
    assert a.shape == (20, 20)
    with pytest.raises(AttributeError, match='paddle has no minibtch here. Did you mean "minibatch"'):
        pd.minibtch  # noqa: B018


def test_layer_and_operator_have_every_layer() -> None:
    assert layer.conv2d is pd.operator.conv2d is L.conv2d and layer.add_scalar is pd.operator.add is pd.add_two
    assert {"fc", "add_scalar", "conv2d"} <= set(dir(pd.layer))
    with pytest.raises(AttributeError, match="softmaxx"):
        layer.softmaxx  # noqa: B018


def test_fluid_has_the_guides_words() -> None:
    assert dtype_name(fluid.Var(10).dtype) == "int64"
    assert compat.evaluate([fluid.larger(pd.minibatch([1, 2]), 1), fluid.less_equal(fluid.Var(2), 1)])[1].tolist() == [
        False
    ]
    assert "print" in dir(fluid) and "print" not in fluid.__all__


def test_messages_and_variables_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    fluid.print("here")
    shown = fluid.print(pd.var(2.0, name="two"))
    assert shown.op.type == "print"
    fluid.Executor(fluid.CPUPlace()).run()
    out = capsys.readouterr().out
    assert out.startswith("here\n") and "Variable: two" in out
