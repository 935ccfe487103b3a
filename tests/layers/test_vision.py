"""Layers that sample images, lay their elements out anew, and cut them into windows."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.op import RuleError

layers = fluid.layers
X = np.random.default_rng(0).uniform(-1, 1, (2, 4, 3, 5)).astype("float32")


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def image():
    return layers.data("x", [4, 3, 5])


def run(fetch, **feed):
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe.run(feed=feed or {"x": X}, fetch_list=[fetch])[0]


def test_a_map_that_turns_images_around():
    theta = layers.data("theta", [2, 3])
    y = layers.grid_sampler(image(), layers.affine_grid(theta, [2, 4, 3, 5]))
    half_turn = np.tile(np.array([[[-1, 0, 0], [0, -1, 0]]], "float32"), (2, 1, 1))
    np.testing.assert_allclose(run(y, x=X, theta=half_turn), X[:, :, ::-1, ::-1], 1e-4, 1e-5)


def test_the_size_of_a_grid_as_a_variable():
    theta = layers.data("theta", [2, 3])
    size = layers.data("size", [4], dtype="int32", append_batch_size=False)
    grid = layers.affine_grid(theta, size)
    same = np.tile(np.eye(2, 3, dtype="float32"), (2, 1, 1))
    for h, w in ((3, 5), (2, 2)):
        assert run(grid, theta=same, size=np.array([2, 4, h, w], "int32")).shape == (2, h, w, 2)


def test_affine_channel_scales_shifts_and_activates():
    scale, bias = (layers.data(n, [4], append_batch_size=False) for n in ("scale", "bias"))
    y = layers.affine_channel(image(), scale, bias, act="relu")
    s, b = np.arange(4, dtype="float32"), np.float32([0.1, -0.2, 0.3, 0])
    expected = np.maximum(X * s.reshape(4, 1, 1) + b.reshape(4, 1, 1), 0)
    np.testing.assert_allclose(run(y, x=X, scale=s, bias=b), expected, 1e-5, 1e-6)


def test_shuffles_and_shifts():
    np.testing.assert_array_equal(run(layers.shuffle_channel(image(), 2)), X[:, [0, 2, 1, 3]])
    moved = X.copy()
    moved[0, 0], moved[1, 0], moved[0, 1], moved[1, 1] = 0, X[0, 0], X[1, 1], 0
    np.testing.assert_array_equal(run(layers.temporal_shift(image(), 2)), moved)
    squares = run(layers.pixel_shuffle(image(), 2))
    np.testing.assert_array_equal(squares[:, 0, 1::2, ::2], X[:, 2])


@pytest.mark.parametrize(("paddings", "count"), [(0, 2 * 4), (1, 4 * 6), ([0, 1], 2 * 6), ([1, 0, 0, 0], 3 * 4)])
def test_windows_as_columns(paddings, count):
    y = layers.unfold(image(), 2, paddings=paddings)
    out = run(y)
    assert out.shape == (2, 16, count) and y.shape == (-1, 16, count)
    if paddings == 0:
        np.testing.assert_array_equal(out[:, :, 5], X[:, :, 1:3, 1:3].reshape(2, -1))


def test_what_is_refused():
    x = image()
    with pytest.raises(OpTypeError, match="out_shape of affine_grid must be a list of ints"):
        layers.affine_grid(layers.data("theta", [2, 3]), 4)
    with pytest.raises(OpTypeError, match="upscale_factor of pixel_shuffle must be an int"):
        layers.pixel_shuffle(x, 1.5)
    with pytest.raises(OpTypeError, match="group of shuffle_channel must be an int"):
        layers.shuffle_channel(x, "2")
    with pytest.raises(RuleError, match="must divide the number of channels"):
        layers.shuffle_channel(x, 3)
    with pytest.raises(OpValueError, match="between 0 and 0.5"):
        layers.temporal_shift(x, 2, 0.6)
    with pytest.raises(OpValueError, match="2 or 4 integers"):
        layers.unfold(x, 2, paddings=[1, 2, 3])
    with pytest.raises(OpValueError, match="Input Scale of affine_channel not found"):
        layers.affine_channel(x)
    assert fluid.default_main_program().global_block().ops == []
