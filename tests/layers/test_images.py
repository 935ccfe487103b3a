"""Layers over images: convolution, pooling, normalisation."""

import math

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import OpTypeError, OpValueError
from tests.ops.images import conv, normal, pool, transposed

layers = fluid.layers


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def ops(program=None):
    return (program or fluid.default_main_program()).global_block().ops


def run(fetch, feed, startup=True):
    exe = fluid.Executor(fluid.CPUPlace())
    if startup:
        exe.run(fluid.default_startup_program())
    return exe.run(feed=feed, fetch_list=fetch)


def images(*shape):
    return np.random.default_rng(shape).uniform(-1, 1, shape).astype("float32")


def parameters():
    return fluid.default_main_program().global_block().all_parameters()


def test_conv2d_is_a_convolution_a_bias_and_an_activation():
    x = layers.data("x", [3, 6, 5])
    y = layers.conv2d(x, 4, filter_size=(3, 2), stride=[1, 2], padding=1, dilation=(1, 2), act="relu")
    assert [op.type for op in ops()] == ["conv2d", "elementwise_add", "relu"]
    w, b = parameters()
    assert (w.name, w.shape, b.name, b.shape) == ("conv2d_0.w_0", (4, 3, 3, 2), "conv2d_0.b_0", (4,))
    data = images(2, 3, 6, 5)
    out, w, b = run([y, w, b], {"x": data})
    expected = conv(data, w, [1, 2], [1, 1], [1, 2]) + b.reshape(4, 1, 1)
    assert y.shape[1:] == out.shape[1:] == expected.shape[1:]
    np.testing.assert_allclose(out, np.maximum(expected, 0), rtol=1e-4, atol=1e-5)


def test_filters_are_drawn_from_the_normal_distribution_of_the_channels_they_see():
    layers.conv2d(layers.data("x", [6, 8, 8]), 32, filter_size=(3, 5), groups=2)
    draw, zero = ops(fluid.default_startup_program())
    assert draw.type == "gaussian_random" and draw.attr("mean") == 0.0
    assert draw.attr("std") == pytest.approx(math.sqrt(2 / (3 * 5 * 6)))
    assert draw.attr("shape") == [32, 3, 3, 5]
    assert zero.type == "fill_constant" and zero.attr("value") == 0.0


def test_a_filter_for_each_channel_is_depthwise_without_a_library():
    x = layers.data("x", [3, 8, 8])
    layers.conv2d(x, 6, 3, groups=3)
    layers.conv2d(x, 6, 3, groups=3, use_cudnn=False, bias_attr=False)
    layers.conv2d_transpose(x, 3, filter_size=3, groups=3, use_cudnn=False, bias_attr=False)
    types = [op.type for op in ops()]
    assert types == ["conv2d", "elementwise_add", "depthwise_conv2d", "depthwise_conv2d_transpose"]


def test_conv3d_and_its_transpose():
    x = layers.data("x", [2, 3, 4, 5])
    y = layers.conv3d(x, 3, 2, bias_attr=False, name="deep")
    z = layers.conv3d_transpose(x, 2, filter_size=2, stride=2, bias_attr=False)
    assert [p.name for p in parameters()] == ["deep.w_0", "conv3d_transpose_0.w_0"]
    data = images(2, 2, 3, 4, 5)
    out, up, w, v = run([y, z, *parameters()], {"x": data})
    np.testing.assert_allclose(out, conv(data, w), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(up, transposed(data, v, [2, 2, 2]), rtol=1e-4, atol=1e-5)


def test_the_filter_of_a_transpose_follows_from_the_size_of_its_output():
    x = layers.data("x", [3, 4, 4])
    y = layers.conv2d_transpose(x, 2, output_size=(9, 10), stride=2, padding=1)
    assert y.shape == (-1, 2, 9, 10) and parameters()[0].shape == (3, 2, 5, 6)
    z = layers.conv2d_transpose(x, 2, output_size=10, filter_size=3, stride=2)
    assert z.shape == (-1, 2, 10, 10)
    data = images(2, 3, 4, 4)
    out, w = run([z, parameters()[2]], {"x": data})
    np.testing.assert_allclose(out, transposed(data, w, [2, 2], extra=[1, 1]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["max", "avg"])
def test_pool2d(kind):
    x = layers.data("x", [3, 7, 6])
    how = {"pool_type": kind, "pool_stride": 2, "pool_padding": (1, 0)}
    y = layers.pool2d(x, 3, **how)
    z = layers.pool2d(x, (3, 2), ceil_mode=True, exclusive=False, **how)
    whole = layers.pool2d(x, pool_type=kind, global_pooling=True)
    data = images(2, 3, 7, 6)
    one, two, three = run([y, z, whole], {"x": data}, startup=False)
    assert y.shape[2:] == one.shape[2:] and whole.shape == (-1, 3, 1, 1)
    np.testing.assert_allclose(one, pool(data, kind, [3, 3], [2, 2], [1, 0]), rtol=1e-5)
    np.testing.assert_allclose(two, pool(data, kind, [3, 2], [2, 2], [1, 0], True, False), rtol=1e-5)
    reduced = data.max((2, 3)) if kind == "max" else data.mean((2, 3))
    np.testing.assert_allclose(three[:, :, 0, 0], reduced, rtol=1e-4, atol=1e-6)


def test_pool3d():
    x = layers.data("x", [2, 3, 4, 4])
    y = layers.pool3d(x, 2, pool_stride=(1, 2, 2))
    data = images(1, 2, 3, 4, 4)
    assert np.array_equal(run([y], {"x": data}, startup=False)[0], pool(data, "max", [2, 2, 2], [1, 2, 2]))


def test_batch_norm_normalises_over_the_batch_and_moves_its_moments():
    x = layers.data("x", [3, 4, 4])
    y = layers.batch_norm(x, momentum=0.5)
    names = [(p.name, p.shape, p.trainable) for p in parameters()]
    assert names == [("batch_norm_0.w_0", (3,), True), ("batch_norm_0.b_0", (3,), True),
                     ("batch_norm_0.w_1", (3,), False), ("batch_norm_0.w_2", (3,), False)]  # fmt: skip
    scale, bias, mean, variance = parameters()
    assert mean.stop_gradient and variance.stop_gradient and mean.persistable
    data = 2 + images(5, 3, 4, 4)
    before = run([mean, variance], {"x": data})
    assert np.allclose(before, [data.mean((0, 2, 3)) / 2, 0.5 + data.var((0, 2, 3)) / 2])
    out, after, _ = run([y, mean, scale], {"x": data}, startup=False)
    np.testing.assert_allclose(out, normal(data, (0, 2, 3)), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(after, before[0] / 2 + data.mean((0, 2, 3)) / 2, rtol=1e-5)


def test_a_clone_for_the_test_uses_the_running_moments():
    x = layers.data("x", [3])
    y = layers.batch_norm(x)
    test = fluid.default_main_program().clone(for_test=True)
    data = images(4, 3)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    (fresh,) = exe.run(test, feed={"x": data}, fetch_list=[y.name])
    np.testing.assert_allclose(fresh, data / np.sqrt(1 + 1e-5), rtol=1e-5)
    exe.run(feed={"x": data}, fetch_list=[y])
    mean = exe.run(test, feed={"x": data}, fetch_list=["batch_norm_0.w_1"])[0]
    assert np.allclose(mean, 0.1 * data.mean(0)) and not np.allclose(mean, 0)


def test_batch_norm_in_place_with_given_names():
    x = layers.relu(layers.data("x", [3]))
    y = layers.batch_norm(
        x, act="relu", in_place=True, moving_mean_name="m", moving_variance_name="v", bias_attr="bias",
        param_attr=fluid.ParamAttr("scale", initializer=fluid.initializer.Constant(2.0)),
    )  # fmt: skip
    assert [p.name for p in parameters()] == ["scale", "bias", "m", "v"]
    assert ops()[1].output("Y") == [x.name] and y.op.type == "relu"
    data = images(6, 3)
    (out,) = run([y], {"x": data})
    np.testing.assert_allclose(out, np.maximum(2 * normal(np.maximum(data, 0), (0,)), 0), rtol=1e-3, atol=1e-4)


def test_layer_norm_and_group_norm():
    x = layers.data("x", [4, 3, 2])
    rows, plain = layers.layer_norm(x, begin_norm_axis=2), layers.layer_norm(x, scale=False, shift=False)
    groups = layers.group_norm(x, 2, bias_attr=False)
    assert [(p.name, p.shape) for p in parameters()] == [
        ("layer_norm_0.w_0", (6,)), ("layer_norm_0.b_0", (6,)), ("group_norm_0.w_0", (4,)),
    ]  # fmt: skip
    data = images(5, 4, 3, 2)
    a, b, c = run([rows, plain, groups], {"x": data})
    np.testing.assert_allclose(a, normal(data, (2, 3)), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(b, normal(data, (1, 2, 3)), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(c, normal(data.reshape(5, 2, -1), (2,)).reshape(data.shape), rtol=1e-3, atol=1e-4)


def test_a_small_network_of_images_learns():
    """Both walkers, step by step the same bits."""
    img, label = layers.data("img", [1, 8, 8]), layers.data("label", [1], dtype="int64")
    h = layers.conv2d(img, 4, 3, padding=1, act="relu")
    h = layers.batch_norm(layers.pool2d(h, 2, pool_stride=2), act="relu")
    h = layers.pool2d(layers.conv2d(h, 6, 3), 2, "avg", 2)
    p = layers.fc(h, 3, act="softmax")
    loss = layers.mean(layers.cross_entropy(p, label))
    fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    fluid.default_startup_program().random_seed = 3
    y = np.random.default_rng(0).integers(0, 3, (32, 1))
    x = images(32, 1, 8, 8) + np.where(np.arange(8) // 3 == y, 2.0, 0.0)[:, None, None].astype("float32")
    scopes = [fluid.Scope(), fluid.Scope()]
    exe, losses = fluid.Executor(fluid.CPUPlace()), []
    for scope in scopes:
        exe.run(fluid.default_startup_program(), scope=scope)
    for _ in range(15):
        pair = [exe.run(feed={"img": x, "label": y}, fetch_list=[loss], scope=s, keep_scopes=k)[0]
                for s, k in zip(scopes, (False, True), strict=True)]  # fmt: skip
        assert pair[0].tobytes() == pair[1].tobytes()
        losses.append(float(pair[0][0]))
    assert losses[-1] < 0.1 < losses[0]
    for p in parameters():
        a, b = (np.asarray(s.find_var(p.name).get_tensor()) for s in scopes)
        assert a.tobytes() == b.tobytes() and a.flags.c_contiguous, p.name


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda x: layers.conv2d(3, 4, 3), OpTypeError, "must be a Variable"),
        (lambda x: layers.conv2d(layers.data("r", [3]), 4, 3), OpValueError, "must be a 4-D tensor"),
        (lambda x: layers.conv2d(x, 4, 3, groups=2), OpValueError, "divisible by groups"),
        (lambda x: layers.conv2d(x, 4, 3, groups=3), OpValueError, "filters for each group"),
        (lambda x: layers.conv2d(x, 0, 3), OpValueError, "filters for each group"),
        (lambda x: layers.conv2d(x, 4, (3, 3, 3)), OpValueError, "list or tuple of 2 integers"),
        (lambda x: layers.conv2d(x, 4, 2.5), OpTypeError, "whole numbers"),
        (lambda x: layers.conv2d(x, 4, 3, stride="2"), OpTypeError, "whole numbers"),
        (lambda x: layers.conv2d(x, 4, 3, use_cudnn=None), OpTypeError, "True or False"),
        (lambda x: layers.conv2d(x, 4, 9), OpValueError, "larger than the padded image"),
        (lambda x: layers.conv2d(x, 4, 3, param_attr=False), OpValueError, "cannot do without"),
        (lambda x: layers.conv2d_transpose(x, 4), OpValueError, "output_size must be set"),
        (lambda x: layers.pool2d(x), OpValueError, "pool_size must be passed"),
        (lambda x: layers.pool2d(x, 2, "mean"), OpValueError, "Unknown pool_type: 'mean'"),
        (lambda x: layers.batch_norm(x, data_layout="NWHC"), OpValueError, "unsupported data layout: NWHC"),
        (lambda x: layers.batch_norm(x, epsilon=0.1), OpValueError, "'epsilon' should be between"),
        (lambda x: layers.batch_norm(x, bias_attr=False), OpValueError, "cannot do without"),
        (lambda x: layers.group_norm(x, 2), OpValueError, "must divide the number of channels"),
        (lambda x: layers.layer_norm(x, begin_norm_axis=0), OpValueError, "begin_norm_axis"),
        (lambda x: layers.layer_norm(layers.data("s", [4, -1, 3])), OpValueError, "length of a row"),
    ],
)
def test_mistakes_are_named(make, error, message):
    x = layers.data("x", [3, 8, 8])
    with pytest.raises(error) as caught:
        make(x)
    assert message in str(caught.value)
