"""Nets: what they append, their numbers, their mistakes."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import OpTypeError, OpValueError
from tests.tools.refused import refused

L, N = fluid.layers, fluid.nets
rng = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def types():
    return [op.type for op in fluid.default_main_program().global_block().ops]


def run(fetch, program=None, **feed):
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe.run(program, feed=feed, fetch_list=fetch)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_conv_pool_is_a_convolution_and_a_pooling():
    x = L.data("x", [3, 12, 12])
    weight = fluid.ParamAttr(name="w", initializer=fluid.initializer.Normal(0.0, 0.3, seed=4))
    arguments = {"conv_stride": 2, "conv_padding": 1, "param_attr": weight, "act": "tanh"}
    y = N.simple_img_conv_pool(x, 6, 3, pool_size=2, pool_stride=2, pool_type="avg", bias_attr=False, **arguments)
    conv = L.conv2d(x, 6, 3, stride=2, padding=1, param_attr=weight, bias_attr=False, act="tanh")
    z = L.pool2d(conv, 2, "avg", 2)
    assert types() == ["conv2d", "tanh", "pool2d"] * 2
    a, b = run([y, z], x=rng.normal(size=(2, 3, 12, 12)).astype("float32"))
    np.testing.assert_array_equal(a, b)
    assert a.shape == (2, 6, 3, 3) and a.std() > 0.01


def test_every_argument_of_conv_pool_arrives():
    y = N.simple_img_conv_pool(
        L.data("x", [4, 9, 9]), 8, [3, 2], pool_size=5, pool_stride=3, pool_padding=1, pool_type="avg",
        global_pooling=True, conv_stride=[1, 2], conv_padding=[2, 1], conv_dilation=[2, 1], conv_groups=2,
        use_cudnn=False,
    )  # fmt: skip
    conv, _, pool = y.block.ops
    want = {"strides": [1, 2], "paddings": [2, 1], "dilations": [2, 1], "groups": 2, "use_cudnn": False}
    assert {name: conv.attr(name) for name in want} == want
    want = {"ksize": [5, 5], "strides": [3, 3], "paddings": [1, 1], "pooling_type": "avg", "global_pooling": True}
    assert {name: pool.attr(name) for name in want} == want and pool.attr("use_cudnn") is False


def test_group_normalises_and_drops():
    y = N.img_conv_group(
        L.data("x", [3, 8, 8]), [4, 6], pool_size=2, pool_stride=2, conv_act="relu",
        conv_with_batchnorm=[True, False], conv_batchnorm_drop_rate=[0.4, 0.5], conv_padding=[1, 2],
        conv_filter_size=[3, 5],
    )  # fmt: skip
    assert types() == [
        "conv2d", "elementwise_add", "batch_norm", "relu", "dropout", "conv2d", "elementwise_add", "relu", "pool2d",
    ]  # fmt: skip
    assert y.shape == (-1, 6, 4, 4)
    test = fluid.default_main_program().clone(for_test=True)
    exe, feed = fluid.Executor(fluid.CPUPlace()), {"x": rng.normal(size=(2, 3, 8, 8)).astype("float32")}
    exe.run(fluid.default_startup_program())
    quiet, still = (exe.run(test, feed=feed, fetch_list=[y.name])[0] for _ in range(2))
    once, again = (exe.run(feed=feed, fetch_list=[y])[0] for _ in range(2))
    assert np.array_equal(quiet, still) and not np.array_equal(once, again) and (quiet >= 0).all() and quiet.any()


def test_group_of_one_value_for_all():
    N.img_conv_group(L.data("x", [3, 8, 8]), [4, 4, 4], pool_size=2, conv_with_batchnorm=True)
    assert types().count("batch_norm") == 3 and types().count("dropout") == 0


def test_a_net_trains():
    image, label = L.data("image", [1, 8, 8]), L.data("label", [1], dtype="int64")
    h = N.simple_img_conv_pool(image, 4, 3, pool_size=2, pool_stride=2, act="relu")
    h = N.img_conv_group(h, [6], pool_size=3, conv_act="relu", conv_with_batchnorm=True, conv_batchnorm_drop_rate=0.1)
    loss = L.mean(L.cross_entropy(L.fc(h, 2, act="softmax"), label))
    fluid.optimizer.Adam(0.01).minimize(loss)
    labels = rng.integers(0, 2, (32, 1))
    images = rng.normal(size=(32, 1, 8, 8)).astype("float32")
    images[labels[:, 0] == 1, :, 2:5, 2:5] += 2
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    losses = [exe.run(feed={"image": images, "label": labels}, fetch_list=[loss])[0].item() for _ in range(40)]
    assert losses[-1] < 0.3 * losses[0]


@pytest.mark.parametrize("dim", [-1, 1])
def test_gated_linear_unit(dim):
    out = N.glu(L.data("x", [4, 6], dtype="float64"), dim=dim)
    x = rng.normal(size=(3, 4, 6))
    a, b = np.split(x, 2, axis=dim)
    np.testing.assert_allclose(run([out], x=x)[0], a / (1 + np.exp(-b)), rtol=1e-12)
    assert types() == ["split", "sigmoid", "elementwise_mul"] and out.shape == (-1, *a.shape[1:])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_attention(dtype):
    q, k, v = (rng.normal(size=(2, n, w)).astype(dtype) for n, w in ((5, 8), (7, 8), (7, 3)))
    inputs = [L.data(name, [-1, -1, width], dtype=dtype) for name, width in (("q", 8), ("k", 8), ("v", 3))]
    out = N.scaled_dot_product_attention(*inputs)
    [got] = run([out], q=q, k=k, v=v)
    want = softmax(q @ k.transpose(0, 2, 1) / np.sqrt(8)) @ v
    np.testing.assert_allclose(got, want, rtol=1e-5 if dtype == "float32" else 1e-12, atol=1e-6)
    assert types() == ["scale", "matmul", "softmax", "matmul"]


def test_attention_with_heads():
    q, kv = (rng.normal(size=(2, n, 6)).astype("float32") for n in (4, 5))
    out = N.scaled_dot_product_attention(L.data("q", [4, 6]), *[L.data("kv", [5, 6])] * 2, num_heads=3)
    assert out.shape == (-1, 4, 6)
    names = [p.name for p in fluid.default_main_program().all_parameters()]
    got, *params = run([out, *names], q=q, kv=kv)
    (wq, bq), (wk, bk), (wv, bv) = zip(params[::2], params[1::2], strict=True)

    def heads(x):
        return x.reshape(2, -1, 3, 2).transpose(0, 2, 1, 3)

    a, b, c = heads(q @ wq + bq), heads(kv @ wk + bk), heads(kv @ wv + bv)
    found = softmax(a @ b.transpose(0, 1, 3, 2) / np.sqrt(2)) @ c
    np.testing.assert_allclose(got, found.transpose(0, 2, 1, 3).reshape(2, 4, 6), rtol=1e-4, atol=1e-6)


def test_attention_drops_weights_in_training_only():
    x = L.data("x", [4, 6])
    out = N.scaled_dot_product_attention(x, x, x, dropout_rate=0.5)
    test = fluid.default_main_program().clone(for_test=True)
    feed = rng.normal(size=(2, 4, 6)).astype("float32")
    once, again = (run([out.name], x=feed)[0] for _ in range(2))
    quiet, still = (run([out.name], test, x=feed)[0] for _ in range(2))
    assert not np.array_equal(once, again) and np.array_equal(quiet, still)


def data(*shape):
    return L.data("x", list(shape), append_batch_size=False)


attention = N.scaled_dot_product_attention


def three(width=5, length=3, name="k"):
    return L.data(name, [length, width])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: attention(data(2, 3), data(2, 3), data(2, 3)), "should all be 3-D tensors"),
        (lambda: attention(three(4, name="q"), three(), three()), "hidden size of queries and keys"),
        (lambda: attention(three(), three(), three(length=4, name="v")), "max sequence length"),
        (lambda: attention(*[three(4)] * 3, num_heads=3), r"attention heads \(3\)"),
        (lambda: attention(*[three(4)] * 3, num_heads=0), "whole number of at least 1"),
        (lambda: N.img_conv_group(L.data("i", [3, 8, 8]), [4, 4], 2, conv_padding=[1]), "conv_padding of img_conv_g"),
        (lambda: N.glu(L.data("x", [5])), "split"),
        (lambda: N.simple_img_conv_pool(L.data("i", [3, 8, 8]), 4, 3, 20, 2), "pool"),
    ],
)
def test_mistakes_append_nothing(call, message):
    with refused(OpValueError, message):
        call()
    assert not types() and not fluid.default_startup_program().global_block().ops


def test_what_is_no_variable():
    with pytest.raises(OpTypeError, match="keys of scaled_dot_product_attention must be a Variable"):
        N.scaled_dot_product_attention(data(2, 3, 4), np.ones((2, 3, 4)), None)
    with pytest.raises(OpTypeError, match="conv_num_filter of img_conv_group must be a list"):
        N.img_conv_group(L.data("i", [3, 8, 8]), 4, 2)
