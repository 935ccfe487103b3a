"""Layers of one operator: which operator, slots and attributes they write, and what comes out."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import FluidError, OpTypeError, OpValueError
from tests.tools.refused import refused

L = fluid.layers
X = np.array([[0.5, -1.5, 2.0], [4.0, 0.25, -3.0]], "float32")
Y = np.array([[1.0, -1.5, 1.0], [2.0, 0.5, -2.0]], "float32")
N = np.arange(24, dtype="float32").reshape(2, 3, 4)


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def data(name, array):
    return L.data(name, list(array.shape), append_batch_size=False, dtype=array.dtype)


def run(fetch, **feed):
    return fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=fetch)


ONE = [
    (lambda x: L.relu(x), "relu", {}, X, np.maximum(X, 0)),
    (lambda x: L.sigmoid(x), "sigmoid", {}, X, 1 / (1 + np.exp(-X))),
    (lambda x: L.tanh(x), "tanh", {}, X, np.tanh(X)),
    (lambda x: L.sqrt(x), "sqrt", {}, abs(X), np.sqrt(abs(X))),
    (lambda x: L.square(x), "square", {}, X, X * X),
    (lambda x: L.sign(x), "sign", {}, X, np.sign(X)),
    (lambda x: L.softmax(x), "softmax", {"axis": -1}, X, np.exp(X) / np.exp(X).sum(1, keepdims=True)),
    (lambda x: L.softmax(x, axis=0), "softmax", {"axis": 0}, X, np.exp(X) / np.exp(X).sum(0)),
    (lambda x: L.scale(x, 2.0, 1.0), "scale", {"scale": 2.0, "bias": 1.0}, X, 2 * X + 1),
    (lambda x: L.scale(x, 2.0, 1.0, False), "scale", {"bias_after_scale": False}, X, 2 * (X + 1)),
    (lambda x: L.scale(x, -1.0, act="relu"), "relu", {}, X, np.maximum(-X, 0)),
    (lambda x: L.clip(x, -1.0, 1.0), "clip", {"min": -1.0, "max": 1.0}, X, X.clip(-1, 1)),
    (lambda x: L.mean(x=x), "mean", {}, X, X.mean(keepdims=True)[0]),
    (lambda x: L.reduce_sum(x), "reduce_sum", {"reduce_all": True}, N, N.sum().reshape(1)),
    (lambda x: L.reduce_sum(x, 1), "reduce_sum", {"dim": [1], "reduce_all": False}, N, N.sum(1)),
    (lambda x: L.reduce_sum(x, [0, 2], True), "reduce_sum", {"dim": [0, 2]}, N, N.sum((0, 2), keepdims=True)),
    (lambda x: L.reduce_mean(x, -1), "reduce_mean", {"dim": [-1]}, N, N.mean(-1)),
    (lambda x: L.reshape(x, [0, -1]), "reshape", {"shape": [0, -1]}, N, N.reshape(2, 12)),
    (lambda x: L.reshape(x, [4, 6], inplace=True, act="relu"), "relu", {}, N, N.reshape(4, 6)),
    (lambda x: L.transpose(x, [2, 0, 1]), "transpose", {"axis": [2, 0, 1]}, N, N.transpose(2, 0, 1)),
    (lambda x: L.cast(x, "int64"), "cast", {"in_dtype": 5, "out_dtype": 3}, X, X.astype("int64")),
    (lambda x: L.assign(x), "assign", {}, X, X),
    (lambda x: L.increment(x, 2.0, in_place=False), "increment", {"step": 2.0}, X[0, :1], X[0, :1] + 2),
    (lambda x: L.fill_constant_batch_size_like(x, [-1, 2], "int64", 7), "fill_constant_batch_size_like",
     {"dtype": 3}, X, np.full((2, 2), 7)),
    (lambda x: L.dropout(x, 0.5, is_test=True), "dropout", {"is_test": True}, X, X / 2),
]  # fmt: skip


@pytest.mark.parametrize(("layer", "type", "attrs", "given", "want"), ONE)
def test_of_one_variable(layer, type, attrs, given, want):
    out = layer(data("x", given))
    assert out.op.type == type
    assert {k: out.op.attr(k) for k in attrs} == attrs
    [got] = run([out], x=given)
    np.testing.assert_allclose(got, want, rtol=1e-6)
    assert got.dtype == want.dtype and tuple(out.shape) == want.shape


TWO = [
    (L.elementwise_add, "elementwise_add", np.add),
    (L.elementwise_sub, "elementwise_sub", np.subtract),
    (L.elementwise_mul, "elementwise_mul", np.multiply),
    (L.elementwise_div, "elementwise_div", np.divide),
    (L.elementwise_max, "elementwise_max", np.maximum),
    (L.less_than, "less_than", np.less),
    (L.less_equal, "less_equal", np.less_equal),
    (L.greater_than, "greater_than", np.greater),
    (L.equal, "equal", np.equal),
]


@pytest.mark.parametrize(("layer", "type", "function"), TWO)
def test_of_two_variables(layer, type, function):
    out = layer(data("x", X), data("y", Y))
    assert (out.op.type, out.op.input("X"), out.op.input("Y")) == (type, ["x"], ["y"])
    [got] = run([out], x=X, y=Y)
    np.testing.assert_array_equal(got, function(X, Y))
    assert out.stop_gradient == (got.dtype == bool)


def test_the_second_operand_may_be_a_slice_of_the_first():
    x, row, column = data("x", N), data("row", N[0, 0]), data("column", N[:, :1, 0])
    a, b = L.elementwise_add(x, row, act="relu"), L.elementwise_mul(x, column, axis=0)
    got = run([a, b], x=N, row=N[0, 0], column=N[:, :1, 0])
    np.testing.assert_allclose(got[0], N + N[0, 0])
    np.testing.assert_allclose(got[1], N * N[:, :1, :1])


def test_name_names_the_result():
    x, y = data("x", X), data("y", Y)
    assert L.elementwise_add(x, y, name="s").name == "s"
    assert L.mean(x, name="m").name == "m"
    assert L.relu(x, name="r").name == "r.tmp_0"


def test_comparisons_write_into_a_condition():
    x, y = data("x", X), data("y", Y)
    cond = L.less_than(x, y)
    assert L.less_than(y, x, cond=cond) is cond
    [got] = run([cond], x=X, y=Y)
    np.testing.assert_array_equal(got, Y < X)


def test_products():
    x, y = data("x", X), data("y", Y)
    a = L.matmul(x, y, transpose_y=True, alpha=0.5)
    b = L.mul(data("n", N), data("w", N.reshape(12, 2)), x_num_col_dims=1)
    assert (a.op.attr("transpose_X"), a.op.attr("transpose_Y"), a.op.attr("alpha")) == (False, True, 0.5)
    got = run([a, b], x=X, y=Y, n=N, w=N.reshape(12, 2))
    np.testing.assert_allclose(got[0], 0.5 * X @ Y.T, rtol=1e-6)
    np.testing.assert_allclose(got[1], N.reshape(2, 12) @ N.reshape(12, 2), rtol=1e-6)


def test_sums_and_concat_take_lists():
    x, y = data("x", X), data("y", Y)
    into = L.create_tensor("float32", name="into")
    fetch = [L.sums([x, y]), L.sum([x, y, y]), L.concat([x, y], axis=1), L.concat((x, y)), L.sums([x, x], out=into)]
    assert fetch[-1] is into
    got = run(fetch, x=X, y=Y)
    for a, b in zip(got, [X + Y, X + 2 * Y, np.hstack([X, Y]), np.vstack([X, Y]), 2 * X], strict=True):
        np.testing.assert_allclose(a, b)


def test_losses():
    p, label = data("p", np.full((2, 4), 0.25, "float32")), data("label", np.array([[1], [-100]]))
    soft = data("soft", np.full((2, 4), 0.25, "float32"))
    fetch = [L.cross_entropy(p, label), L.cross_entropy(p, soft, soft_label=True), L.square_error_cost(p, soft)]
    assert fetch[0].shape == (2, 1)
    got = run(
        fetch, p=np.full((2, 4), 0.25, "float32"), label=np.array([[1], [-100]]), soft=np.eye(4, dtype="float32")[:2]
    )
    np.testing.assert_allclose(got[0], [[np.log(4)], [0]], rtol=1e-6)
    np.testing.assert_allclose(got[1], [[np.log(4)], [np.log(4)]], rtol=1e-6)
    np.testing.assert_allclose(got[2], (0.25 - np.eye(4)[:2]) ** 2, rtol=1e-6)


def test_topk_and_accuracy():
    x, label = data("x", X), data("label", np.array([[1], [0]]))
    values, indices = L.topk(x, k=2)
    right, total = L.create_tensor("int32", name="right"), L.create_tensor("int32", name="total")
    acc = L.accuracy(input=x, label=label, correct=right, total=total)
    best2 = L.accuracy(x, label, k=2)
    assert indices.stop_gradient and acc.stop_gradient and acc.shape == (1,)
    got = run([values, indices, acc, right, total, best2], x=X, label=np.array([[1], [0]]))
    np.testing.assert_array_equal(got[0], [[2.0, 0.5], [4.0, 0.25]])
    np.testing.assert_array_equal(got[1], [[2, 0], [0, 1]])
    assert [float(g.reshape(())) for g in got[2:]] == [0.5, 1, 2, 0.5]


def test_constants():
    fetch = [L.fill_constant([2, 3], "int64", 4), L.ones([2], "float32"), L.zeros([1], "bool"), L.assign(X)]
    assert all(v.stop_gradient for v in fetch[:3])
    got = run(fetch)
    np.testing.assert_array_equal(got[0], np.full((2, 3), 4))
    np.testing.assert_array_equal(got[1], [1, 1])
    np.testing.assert_array_equal(got[2], [False])
    np.testing.assert_array_equal(got[3], X)
    assert [g.dtype for g in got] == ["int64", "float32", "bool", "float32"]


def test_fill_constant_keeps_large_and_fine_numbers():
    got = run([L.fill_constant([1], "int64", 2**40 + 1), L.fill_constant([1], "float64", 0.1)])
    assert got[0][0] == 2**40 + 1 and got[1][0] == 0.1


def test_arrays_of_every_dtype_are_assigned():
    arrays = [
        np.array([True, False]),
        np.array([1, 2], "int32"),
        np.array([2**40]),
        np.array([0.1]),
        np.array([0.1], "f"),
    ]
    for given, got in zip(arrays, run([L.assign(a) for a in arrays]), strict=True):
        np.testing.assert_array_equal(got, given)
        assert got.dtype == given.dtype
    with pytest.raises(OpValueError, match="dtype float16"):
        L.assign(np.zeros(2, "float16"))
    with pytest.raises(OpValueError, match="too big"):
        L.assign(np.zeros(1024 * 1024 + 1, "float32"))


def test_random_numbers():
    u, g = L.uniform_random([1000], min=2.0, max=3.0), L.gaussian_random([1000], mean=5.0, std=0.1)
    same = L.uniform_random([4], seed=3)
    a, b, c = run([u, g, same])
    assert 2 <= a.min() < 2.1 and 2.9 < a.max() <= 3 and abs(b.mean() - 5) < 0.05
    np.testing.assert_array_equal(run([same])[0], c)
    assert not np.array_equal(run([u])[0], a)


def test_dropout_in_training():
    x = L.data("x", [500], stop_gradient=False)
    down, up = L.dropout(x, 0.3), L.dropout(x, 0.3, dropout_implementation="upscale_in_train")
    feed = np.ones((4, 500), "float32")
    a, b = run([down, up], x=feed)
    assert set(np.unique(a)) == {0.0, 1.0} and abs(a.mean() - 0.7) < 0.05
    assert sorted(set(np.unique(b))) == pytest.approx([0.0, 1 / 0.7])
    mask = fluid.default_main_program().global_block().var(down.op.output("Mask")[0])
    assert mask.stop_gradient


def test_parameters_and_variables_of_ones_own():
    w = L.create_parameter([2, 3], "float32", name="w", attr=fluid.ParamAttr(learning_rate=0.5))
    v = L.create_parameter([3], "float32", attr=fluid.ParamAttr(name="v"), is_bias=True)
    step = L.create_global_var([1], 3.0, "float32", persistable=True, name="step")
    assert (w.name, v.name, w.optimize_attr["learning_rate"]) == ("w", "v", 0.5)
    names = [p.name for p in fluid.default_main_program().all_parameters()]
    assert step.persistable and names == ["w", "v"]
    got = fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program(), fetch_list=["v", "step"])
    np.testing.assert_array_equal(got[0], [0, 0, 0])
    np.testing.assert_array_equal(got[1], [3])


def test_data_layers():
    assert L.data("a", [3]).shape == (-1, 3)
    assert L.data("b", [None, 3]).shape == (-1, 3)
    assert L.data("c", [3, -1]).shape == (3, -1)
    assert L.data("d", [3], append_batch_size=False).shape == (3,)
    e = L.data("e", [1], dtype="int64", lod_level=1)
    assert (e.dtype.name, e.lod_level, e.stop_gradient, e.is_data) == ("INT64", 1, True, True)
    assert not L.data("f", [1], stop_gradient=False).stop_gradient


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda x: L.relu(3), OpTypeError, "x of relu must be a Variable"),
        (lambda x: L.elementwise_add(x, 1.0), OpTypeError, "y of elementwise_add must be a Variable"),
        (lambda x: L.concat([x, "y"]), OpTypeError, "input of concat must be a Variable"),
        (lambda x: L.clip(x, 1.0, -1.0), FluidError, "max should be greater than min"),
        (lambda x: L.dropout(x, 1.5), FluidError, "dropout"),
        (lambda x: L.dropout(x, 0.5, dropout_implementation="none"), FluidError, "dropout_implementation"),
        (lambda x: L.reshape(x, [-1, -1]), FluidError, "reshape|-1"),
        (lambda x: L.transpose(x, [0, 0]), FluidError, "transpose|perm|axis"),
        (lambda x: L.mul(x, x), FluidError, "width must be equal"),
        (lambda x: L.cross_entropy(x, None), OpTypeError, "label of cross_entropy must be a Variable"),
        (lambda x: L.accuracy(x, 0), OpTypeError, "label of accuracy must be a Variable"),
        (lambda x: L.cast(x, "float33"), OpValueError, "float33"),
        (lambda x: L.fill_constant([2], "float32", x), TypeError, "value of fill_constant must be a number"),
        (lambda x: L.create_parameter([-1, 2], "float32"), OpValueError, "batch-size"),
    ],
)
def test_mistakes_leave_the_program_as_it_was(call, kind, words):
    x = data("x", X)
    before = fluid.default_main_program().desc.serialize_to_string()
    with refused(kind, words):
        call(x)
    assert fluid.default_main_program().desc.serialize_to_string() == before


def test_a_copied_batch_size_leaves_the_rest_known():
    """The unknown size of the batch is copied, so that -1 is what is left of the others."""
    x = L.data("x", [3, 4, 6])
    assert L.reshape(x, [0, -1, 8]).shape == (-1, 9, 8)
    assert L.reshape(x, [0, 0, -1]).shape == (-1, 3, 24)
    assert L.reshape(x, [-1, 3, 8]).shape == (-1, 3, 8)
    with pytest.raises(ValueError, match="sizes do not divide"):
        L.reshape(x, [0, -1, 7])
