"""Layers of activations, parts, losses, logic and searches: what they write, what comes out, what they refuse."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import OpTypeError, OpValueError
from tests.tools.refused import refused

L = fluid.layers
X = np.array([[0.5, -1.5, 2.0], [4.0, 0.25, -3.0]], "float32")
Y = np.array([[1.0, -1.5, 1.0], [2.0, 0.5, -2.0]], "float32")
U = np.array([[0.5, -0.25, 0.125]], "float32")
N = np.arange(24, dtype="float32").reshape(2, 3, 4)
B, C = X > 0, Y > 0
IDS = np.array([[2], [0]])
LOGITS = X - X.max(1, keepdims=True)
SOFTMAX = np.exp(LOGITS) / np.exp(LOGITS).sum(1, keepdims=True)


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def data(name, array):
    return L.data(name, list(array.shape), append_batch_size=False, dtype=str(array.dtype))


def run(fetch, **feed):
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe.run(feed=feed, fetch_list=fetch)


def logistic(x):
    return 1 / (1 + np.exp(-x))


def types():
    return [op.type for op in fluid.default_main_program().global_block().ops]


FUNCTIONS = {
    "abs": (X, np.abs), "acos": (U, np.arccos), "asin": (U, np.arcsin), "atan": (X, np.arctan), "ceil": (X, np.ceil),
    "cos": (X, np.cos), "exp": (X, np.exp), "floor": (X, np.floor), "log": (abs(X), np.log),
    "logsigmoid": (X, lambda x: np.log(logistic(x))), "reciprocal": (X, lambda x: 1 / x),
    "round": (X + 0.1, np.round), "rsqrt": (abs(X), lambda x: 1 / np.sqrt(x)), "sin": (X, np.sin),
    "softplus": (X, lambda x: np.log1p(np.exp(x))), "softsign": (X, lambda x: x / (1 + abs(x))),
    "tanh_shrink": (X, lambda x: x - np.tanh(x)),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    given, function = FUNCTIONS[name]
    out = getattr(L, name)(data("x", given), name="h")
    (got,) = run([out], x=given)
    np.testing.assert_allclose(got, function(given), rtol=1e-5)
    assert types() == [name] and out.name == "h.tmp_0"
    assert getattr(L, name).__name__ == name and f"layers.{name}(" in getattr(L, name).__doc__


def elu(x, alpha):
    return np.where(x > 0, x, alpha * np.expm1(x))


ONE = [
    (lambda x: L.brelu(x, -1.0, 1.0), "brelu", {"t_min": -1.0}, X, X.clip(-1, 1)),
    (lambda x: L.relu6(x, 3.0), "relu6", {"threshold": 3.0}, X, X.clip(0, 3)),
    (lambda x: L.leaky_relu(x, 0.5), "leaky_relu", {"alpha": 0.5}, X, np.where(X > 0, X, X / 2)),
    (lambda x: L.soft_relu(x), "soft_relu", {"threshold": 40.0}, X, np.log1p(np.exp(X))),
    (lambda x: L.thresholded_relu(x), "thresholded_relu", {"threshold": 1.0}, X, np.where(X > 1, X, 0)),
    (lambda x: L.thresholded_relu(x, 3.0), "thresholded_relu", {"threshold": 3.0}, X, np.where(X > 3, X, 0)),
    (lambda x: L.elu(x, 0.5), "elu", {"alpha": 0.5}, X, elu(X, 0.5)),
    (lambda x: L.selu(x), "selu", {}, X, 1.0507009873554805 * elu(X, 1.6732632423543772)),
    (lambda x: L.selu(x, 2.0, 0.5), "selu", {"scale": 2.0, "alpha": 0.5}, X, 2 * elu(X, 0.5)),
    (lambda x: L.hard_shrink(x), "hard_shrink", {"threshold": 0.5}, X, np.where(abs(X) > 0.5, X, 0)),
    (lambda x: L.hard_shrink(x, 2.5), "hard_shrink", {"threshold": 2.5}, X, np.where(abs(X) > 2.5, X, 0)),
    (lambda x: L.softshrink(x), "softshrink", {}, X, np.sign(X) * np.maximum(abs(X) - 0.5, 0)),
    (lambda x: L.hard_sigmoid(x), "hard_sigmoid", {}, X, (0.2 * X + 0.5).clip(0, 1)),
    (lambda x: L.stanh(x, 0.5, 2.0), "stanh", {"scale_a": 0.5, "scale_b": 2.0}, X, 2 * np.tanh(X / 2)),
    (lambda x: L.swish(x, 2.0), "swish", {"beta": 2.0}, X, X * logistic(2 * X)),
    (lambda x: L.pow(x, 2.0), "pow", {"factor": 2.0}, X, X * X),
    (lambda x: L.maxout(x, 3), "maxout", {"groups": 3}, N[..., None], N.max(1)[:, None, :, None]),
    (lambda x: L.clip_by_norm(x, 1.0), "clip_by_norm", {"max_norm": 1.0}, X, X / np.linalg.norm(X)),
    (lambda x: L.cumsum(x), "cumsum", {"axis": -1}, X, X.cumsum(1)),
    (lambda x: L.cumsum(x, 0, True, True), "cumsum", {"exclusive": True}, X, X.sum(0) - X.cumsum(0)),
    (lambda x: L.l2_normalize(x, axis=1), "norm", {"axis": 1}, X, X / np.linalg.norm(X, axis=1, keepdims=True)),
    (lambda x: L.l2_normalize(x, axis=None), "norm", {"axis": 0}, X[0], X[0] / np.linalg.norm(X[0])),
    (lambda x: L.argmax(x, 1), "arg_max", {"axis": 1}, X, X.argmax(1)),
    (lambda x: L.argmin(x), "arg_min", {"axis": 0}, X, X.argmin(0)),
    (lambda x: L.argsort(x)[0], "argsort", {"axis": -1}, X, np.sort(X)),
    (lambda x: L.argsort(x, 0)[1], "argsort", {"axis": 0}, X, np.argsort(X, 0)),
    (lambda x: L.one_hot(x, 4), "one_hot", {"depth": 4}, IDS, np.eye(4, dtype="float32")[[2, 0]]),
    (lambda x: L.one_hot(x, L.fill_constant([1], "int32", 3)), "one_hot", {}, IDS, np.eye(3, dtype="float32")[[2, 0]]),
    (lambda x: L.where(x), "where", {}, B, np.argwhere(B)),
    (lambda x: L.reduce_max(x, 1), "reduce_max", {"dim": [1]}, N, N.max(1)),
    (lambda x: L.reduce_min(x), "reduce_min", {"reduce_all": True}, N, N.min().reshape(1)),
    (lambda x: L.reduce_prod(x, -1, True), "reduce_prod", {"keep_dim": True}, N, N.prod(-1, keepdims=True)),
    (lambda x: L.reduce_all(x, 1), "reduce_all", {}, B, B.all(1)),
    (lambda x: L.reduce_any(x, [0]), "reduce_any", {}, B, B.any(0)),
    (lambda x: L.logical_not(x), "logical_not", {}, B, ~B),
    (lambda x: L.is_empty(x), "is_empty", {}, X, np.array([False])),
    (lambda x: L.has_inf(x), "isinf", {}, X * np.float32("inf"), np.array([True])),
    (lambda x: L.has_nan(x), "isnan", {}, X, np.array([False])),
    (lambda x: L.isfinite(x), "isfinite", {}, X, np.array([True])),
    (lambda x: L.squeeze(x, [0]), "squeeze2", {"axes": [0]}, N[:1], N[0]),
    (lambda x: L.unsqueeze(x, [1, 0]), "unsqueeze2", {"axes": [1, 0]}, X, X[None, :, None]),
    (lambda x: L.flatten(x, 2), "flatten2", {"axis": 2}, N, N.reshape(6, 4)),
    (lambda x: L.shape(x), "shape", {}, N, np.array([2, 3, 4], "int32")),
    (lambda x: L.rank(x), "fill_constant", {}, N, np.array([3], "int32")),
    (lambda x: L.slice(x, [1, 2], [0, -2], [2, 9]), "slice", {"axes": [1, 2]}, N, N[:, :2, -2:]),
    (lambda x: L.crop(x, [1, 2], [1, 0]), "crop", {"offsets": [1, 0]}, X, X[1:, :2]),
    (lambda x: L.crop(x, [1, 2]), "crop", {"offsets": [0, 0]}, X, X[:1, :2]),
    (lambda x: L.stack(x), "stack", {"axis": 0}, X, X[None]),
    (lambda x: L.unstack(x, 1)[2], "unstack", {"num": 3}, X, X[:, 2]),
    (lambda x: L.split(x, 2, dim=0)[1], "split", {"num": 2, "axis": 0}, X, X[1:]),
    (lambda x: L.split(x, [1, -1])[1], "split", {"sections": [1, -1], "axis": -1}, X, X[:, 1:]),
    (lambda x: L.expand(x, [2, 1]), "expand", {"expand_times": [2, 1]}, X, np.tile(X, (2, 1))),
    (lambda x: L.expand(x, [L.fill_constant([1], "int32", 2), 3]), "expand", {}, X, np.tile(X, (2, 3))),
    (lambda x: L.pad(x, [0, 1, 0, 0], 7.0), "pad", {"pad_value": 7.0}, X, np.concatenate([X, 0 * X[:1] + 7])),
    (lambda x: L.pad2d(x, [1, 0, 0, 2]), "pad2d", {"mode": "constant"}, N[None],
     np.pad(N, [(0, 0), (1, 0), (0, 2)])[None]),
    (lambda x: L.pad2d(x, [1, 0, 0, 2], "edge", data_format="NHWC"), "pad2d", {"data_format": "NHWC"}, N[None],
     np.pad(N, [(1, 0), (0, 2), (0, 0)], "edge")[None]),
    (lambda x: L.pad2d(x, L.assign(np.array([0, 2, 0, 0], "int32")), pad_value=3.0), "pad2d", {"pad_value": 3.0},
     N[None], np.pad(N, [(0, 0), (0, 2), (0, 0)], constant_values=3.0)[None]),
    (lambda x: L.reverse(x, 1), "reverse", {"axis": [1]}, X, X[:, ::-1]),
    (lambda x: L.reverse(x, [0, 1]), "reverse", {"axis": [0, 1]}, X, X[::-1, ::-1]),
    (lambda x: L.zeros_like(x), "fill_zeros_like", {}, X, 0 * X),
    (lambda x: L.diag(x), "diag", {}, X[0], np.diag(X[0])),
    (lambda x: L.label_smooth(x, epsilon=0.25), "label_smooth", {"epsilon": 0.25}, SOFTMAX, 0.75 * SOFTMAX + 0.25 / 3),
]  # fmt: skip


@pytest.mark.parametrize(("layer", "type", "attrs", "given", "want"), ONE)
def test_of_one_variable(layer, type, attrs, given, want):
    x = data("x", given)
    out = layer(x)
    op = fluid.default_main_program().global_block().ops[-1]
    assert op.type == type
    for name, value in attrs.items():
        assert op.attr(name) == (pytest.approx(value) if isinstance(value, float) else value), name
    (got,) = run([out], x=given)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    assert got.dtype == want.dtype
    with pytest.raises(OpTypeError):
        layer(3)


def huber(r, delta):
    return np.where(abs(r) <= delta, r * r / 2, delta * (abs(r) - delta / 2))


def lengths(x):
    return np.linalg.norm(x, axis=1, keepdims=True)


P = SOFTMAX
PICKED = -np.log(np.take_along_axis(SOFTMAX, IDS, 1))
COLUMN, MARK = X[:, :1], np.array([[1.0], [0.0]], "float32")

TWO = [
    (lambda x, y: L.elementwise_min(x, y), "elementwise_min", X, Y, np.minimum(X, Y)),
    (lambda x, y: L.elementwise_pow(x, y), "elementwise_pow", abs(X), Y, abs(X) ** Y),
    (lambda x, y: L.elementwise_mod(x, y), "elementwise_mod", X, Y, np.mod(X, Y)),
    (lambda x, y: L.elementwise_floordiv(x, y), "elementwise_floordiv", X, Y, X // Y),
    (lambda x, y: L.greater_equal(x, y), "greater_equal", X, Y, X >= Y),
    (lambda x, y: L.not_equal(x, y), "not_equal", X, Y, X != Y),
    (lambda x, y: L.logical_and(x, y), "logical_and", B, C, B & C),
    (lambda x, y: L.logical_or(x, y), "logical_or", B, C, B | C),
    (lambda x, y: L.logical_xor(x, y), "logical_xor", B, C, B ^ C),
    (lambda x, y: L.gather(x, y), "gather", X, np.array([1, 1, 0]), X[[1, 1, 0]]),
    (lambda x, y: L.stack([x, y], 1), "stack", X, Y, np.stack([X, Y], 1)),
    (lambda x, y: L.crop(x, y), "crop", X, Y[:1, :2], X[:1, :2]),
    (lambda x, y: L.pad_constant_like(x, y, 1.0), "pad_constant_like", X, Y[:1], np.stack([Y[0], 0 * Y[0] + 1])),
    (lambda x, y: L.cos_sim(x, y), "cos_sim", X, Y, (X * Y).sum(1, keepdims=True) / lengths(X) / lengths(Y)),
    (lambda x, y: L.softmax_with_cross_entropy(x, y), "softmax_with_cross_entropy", X, IDS, PICKED),
    (lambda x, y: L.softmax_with_cross_entropy(x, y, return_softmax=True)[1], "softmax_with_cross_entropy", X, IDS, P),
    (lambda x, y: L.sigmoid_cross_entropy_with_logits(x, y), "sigmoid_cross_entropy_with_logits", X, P,
     np.log1p(np.exp(X)) - X * P),
    (lambda x, y: L.huber_loss(x, y, 1.0), "huber_loss", COLUMN, MARK, huber(COLUMN - MARK, 1)),
    (lambda x, y: L.smooth_l1(x, y), "smooth_l1_loss", X, Y, huber(X - Y, 1).sum(1, keepdims=True)),
    (lambda x, y: L.log_loss(x, y, 0.01), "log_loss", P[:, :1], MARK,
     -MARK * np.log(P[:, :1] + 0.01) - (1 - MARK) * np.log(1.01 - P[:, :1])),
    (lambda x, y: L.kldiv_loss(x, y, "sum"), "kldiv_loss", X, P, (P * (np.log(P) - X)).sum().reshape(1)),
    (lambda x, y: L.bpr_loss(x, y), "bpr_loss", X[:, :2], IDS * 0, np.log1p(np.exp(X[:, 1:2] - X[:, :1]))),
    (lambda x, y: L.rank_loss(y, x, L.scale(x, 0.5)), "rank_loss", COLUMN, MARK,
     np.log1p(np.exp(COLUMN / 2)) - MARK * COLUMN / 2),
    (lambda x, y: L.margin_rank_loss(y, x, L.scale(x, 0.5)), "margin_rank_loss", COLUMN, MARK * 2 - 1,
     np.maximum(0, 0.1 - (MARK * 2 - 1) * COLUMN / 2)),
    (lambda x, y: L.label_smooth(x, y, 0.5), "label_smooth", P, P[:1], (P + P[:1]) / 2),
]  # fmt: skip


@pytest.mark.parametrize(("layer", "type", "x", "y", "want"), TWO)
def test_of_two_variables(layer, type, x, y, want):
    out = layer(data("x", x), data("y", y))
    assert types()[-1] == type
    (got,) = run([out], x=x, y=y)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    with pytest.raises(OpTypeError):
        layer(x, y)


def test_scatter_and_multiplex():
    x, y = data("x", X), data("y", Y)
    ids, which = data("ids", np.array([1])), data("which", IDS.astype("int32"))
    outs = [L.scatter(x, ids, L.slice(y, [0], [0], [1])), L.multiplex([x, y, x], which)]
    got = run(outs, x=X, y=Y, ids=np.array([1]), which=IDS.astype("int32"))
    np.testing.assert_array_equal(got[0], np.stack([X[0], Y[0]]))
    np.testing.assert_array_equal(got[1], X)


def test_numbers():
    outs = [L.range(1, 9, 3, "int64"), L.linspace(0.0, 1.0, 3, "float32"), L.diag(np.array([1.0, 2.0], "float32"))]
    got = run(outs)
    assert got[0].tolist() == [1, 4, 7] and got[1].tolist() == [0, 0.5, 1] and got[2].tolist() == [[1, 0], [0, 2]]
    end = data("end", np.array([3], "int64"))
    (steps,) = run([L.range(0, end, 1, "int64")], end=np.array([5]))
    assert steps.tolist() == [0, 1, 2, 3, 4]


def test_random_numbers_for_a_batch():
    x = L.data("x", [3])
    uniform = L.uniform_random_batch_size_like(x, [-1, 400], min=2.0, max=3.0)
    normal = L.gaussian_random_batch_size_like(x, [-1, 400], mean=5.0, std=0.1)
    ids = L.sampling_id(L.data("p", [2]))
    got = run([uniform, normal, ids], x=X, p=np.array([[0.0, 1.0], [1.0, 0.0]], "float32"))
    assert got[0].shape == got[1].shape == (2, 400) and got[2].tolist() == [1, 0]
    assert 2 <= got[0].min() < got[0].max() < 3 and abs(got[1].mean() - 5) < 0.05


def test_dice_loss():
    x, label = L.data("x", [3]), L.data("label", [1], dtype="int64")
    (got,) = run([L.dice_loss(x, label)], x=P, label=IDS)
    shared = np.take_along_axis(P, IDS, 1)[:, 0]
    np.testing.assert_allclose(got, [(1 - 2 * shared / (P.sum(1) + 1 + 1e-5)).mean()], rtol=1e-5)


@pytest.mark.parametrize("mode", ["all", "channel", "element"])
def test_prelu(mode):
    x = L.data("x", [3, 4])
    out = L.prelu(x, mode, param_attr=fluid.ParamAttr(initializer=fluid.initializer.Constant(0.5)))
    assert out.param.shape == {"all": (1,), "channel": (1, 3, 1), "element": (1, 3, 4)}[mode]
    (got,) = run([out], x=N - 10)
    np.testing.assert_allclose(got, np.where(N > 10, N - 10, (N - 10) / 2))


def test_embedding():
    ids = L.data("ids", [1], dtype="int64", lod_level=1)
    table = np.arange(12, dtype="float32").reshape(4, 3)
    attr = fluid.ParamAttr(name="table", initializer=fluid.initializer.NumpyArrayInitializer(table))
    out = L.embedding(ids, [4, 3], padding_idx=-1, param_attr=attr)
    assert out.lod_level == 1 and out.op.attr("padding_idx") == 3
    fed = fluid.create_lod_tensor(np.array([[1], [3], [0]]), [[2, 1]], fluid.CPUPlace())
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    (got,) = exe.run(feed={"ids": fed}, fetch_list=[out], return_numpy=False)
    np.testing.assert_array_equal(got, [table[1], 0 * table[0], table[0]])
    assert got.recursive_sequence_lengths() == [[2, 1]]


def test_embeddings_share_a_table_by_name():
    for name in ("a", "b"):
        L.embedding(L.data(name, [1], dtype="int64"), [4, 3], param_attr="shared")
    assert [p.name for p in fluid.default_main_program().all_parameters()] == ["shared"]


def test_auc_over_batches():
    p, label = L.data("p", [2]), L.data("label", [1], dtype="int64")
    whole, last, counts = L.auc(p, label, num_thresholds=100)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    right = np.array([[0.9, 0.1], [0.2, 0.8]], "float32")
    results = [
        exe.run(feed={"p": x, "label": np.array([[0], [1]])}, fetch_list=[whole, last]) for x in (right, 1 - right)
    ]
    assert [tuple(float(v[0]) for v in r) for r in results] == [(1, 1), (0.5, 0)]
    assert all(v.persistable for v in counts)


@pytest.mark.parametrize("bias", [None, False])
def test_bilinear_tensor_product(bias):
    y = L.bilinear_tensor_product(data("x", X), data("y", Y), 4, act="tanh", bias_attr=bias)
    weight, *rest = fluid.default_main_program().all_parameters()
    assert weight.shape == (4, 3, 3) and [p.shape for p in rest] == ([] if bias is False else [(1, 4)])
    got, w = run([y, weight], x=X, y=Y)
    np.testing.assert_allclose(got, np.tanh(np.einsum("nd,sde,ne->ns", X, w, Y)), 1e-4, 1e-5)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda x: L.bilinear_tensor_product(x, L.data("y", [2, 3]), 4), "must be a matrix"),
        (lambda x: L.prelu(x, "every"), "mode should be one of"),
        (lambda x: L.prelu(L.data("y", [2, -1, 3]), "element"), "needs to know the sizes"),
        (lambda x: L.embedding(x, [0, 3]), "two positive numbers"),
        (lambda x: L.embedding(x, [4]), "two positive numbers"),
        (lambda x: L.embedding(x, [4, 3], padding_idx=4), "outside the table"),
        (lambda x: L.split(x, 0), "at least one part"),
        (lambda x: L.unstack(x, 0), "needs to know the size"),
        (lambda x: L.multiplex([x], x), "at least 2 elements"),
        (lambda x: L.crop(x), "shape should be"),
        (lambda x: L.label_smooth(x, epsilon=1.5), "between 0 and 1"),
        (lambda x: L.kldiv_loss(x, x, "median"), "is not in enum"),
        (lambda x: L.auc(x, x, curve="UP"), "is not in enum"),
        (lambda x: L.clip_by_norm(x, -1.0), "larger_than check fails"),
    ],
)
def test_what_is_refused_leaves_nothing(build, message):
    x = L.data("x", [3])
    before = fluid.default_main_program().desc.serialize_to_string()
    with refused(OpValueError, message):
        build(x)
    assert [op.type for op in fluid.default_main_program().global_block().ops] == []
    if "data" not in build.__code__.co_names:
        assert fluid.default_main_program().desc.serialize_to_string() == before
