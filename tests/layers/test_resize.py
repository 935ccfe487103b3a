"""Layers that make images larger or smaller, and local response normalisation."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import OpTypeError, OpValueError
from tests.tools.refused import refused

layers = fluid.layers
X = np.arange(12, dtype="float32").reshape(1, 1, 3, 4)


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def run(fetch, **feed):
    return fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=[fetch])[0]


def attributes():
    (op,) = fluid.default_main_program().global_block().ops
    return {name: op.attr(name) for name in ("out_h", "out_w", "interp_method", "align_corners", "align_mode")}


def image(*shape):
    return layers.data("x", list(shape) or [1, 3, 4])


def test_resize_bilinear_to_a_shape():
    y = layers.resize_bilinear(image(), out_shape=[5, 7])
    assert y.shape == (-1, 1, 5, 7)
    expected = np.add.outer(np.arange(5) * 2.0, np.arange(7) / 2)
    np.testing.assert_allclose(run(y, x=X)[0, 0], expected, 1e-6)
    assert attributes() == {
        "out_h": 5, "out_w": 7, "interp_method": "bilinear", "align_corners": True, "align_mode": 1,
    }  # fmt: skip


def test_resize_nearest_by_a_scale():
    y = layers.resize_nearest(image(), scale=2, align_corners=False)
    assert y.shape == (-1, 1, 6, 8)
    np.testing.assert_array_equal(run(y, x=X), X.repeat(2, 2).repeat(2, 3))


def test_image_resize_chooses_the_method():
    x = image()
    layers.image_resize(x, [2, 2])
    layers.image_resize(x, [2, 2], resample="NEAREST", align_mode=0)
    kinds = [op.type for op in fluid.default_main_program().global_block().ops]
    assert kinds == ["bilinear_interp", "nearest_interp"]


@pytest.mark.parametrize("slot", ["out_shape", "actual_shape"])
def test_a_variable_gives_the_size_anew_in_each_run(slot):
    size = layers.data("size", [2], dtype="int32", append_batch_size=False)
    given = {"out_shape": size} if slot == "out_shape" else {"out_shape": [3, 4], "actual_shape": size}
    y = layers.image_resize(image(), resample="NEAREST", **given)
    for h, w in ((1, 2), (6, 5), (3, 4)):
        assert run(y, x=X, size=np.array([h, w], "int32")).shape == (1, 1, h, w)


def test_sizes_may_be_numbers_of_numpy() -> None:
    size = np.array([12, 16], "int32") // 2
    assert layers.resize_bilinear(image(1, 3, 4), out_shape=list(size)).shape == (-1, 1, 6, 8)
    assert layers.resize_nearest(image(1, 3, 4), scale=np.float32(2)).shape == (-1, 1, 6, 8)


@pytest.mark.parametrize(("shape", "short", "new"), [((6, 9), 4, (4, 6)), ((10, 7), 5, (7, 5)), ((4, 4), 6, (6, 6))])
def test_image_resize_short_keeps_the_form(shape, short, new):
    assert layers.image_resize_short(image(3, *shape), short).shape == (-1, 3, *new)


def test_a_resized_image_trains_what_made_it():
    x = image()
    y = layers.resize_bilinear(layers.scale(x, 2.0), out_shape=[5, 7])
    (g,) = fluid.gradients(layers.reduce_sum(y), x)
    np.testing.assert_allclose(run(g, x=X).sum(), 2 * 35, 1e-6)


def test_lrn_divides_by_the_channels_around():
    y = layers.lrn(image(3, 1, 1), n=3, k=2.0, alpha=0.5, beta=1.0)
    x = np.array([1, 2, 3], "float32").reshape(1, 3, 1, 1)
    np.testing.assert_allclose(run(y, x=x).ravel(), [1 / 4.5, 2 / 9, 3 / 8.5], 1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "One of out_shape and scale must not be None"),
        ({"out_shape": [2, 2], "resample": "CUBIC"}, "can only be 'BILINEAR' or 'NEAREST'"),
        ({"out_shape": [2]}, "must be a height and a width"),
        ({"out_shape": [2, 0]}, "must be a height and a width"),
        ({"scale": -1.0}, "must be a positive number"),
        ({"out_shape": [2, 2], "align_mode": 2}, "can only be 0 or 1"),
    ],
)
def test_what_image_resize_refuses(arguments, message):
    x = image()
    with refused(OpValueError, message):
        layers.image_resize(x, **arguments)
    assert fluid.default_main_program().global_block().ops == []


def test_what_is_no_shape_and_no_image():
    with pytest.raises(OpTypeError, match="out_shape of resize_bilinear must be a list of ints"):
        layers.resize_bilinear(image(), out_shape=3)
    with pytest.raises(OpValueError, match="must be a 4-D tensor"):
        layers.lrn(layers.data("flat", [3]))
    with pytest.raises(OpValueError, match="needs to know the height and width"):
        layers.image_resize_short(layers.data("open", [2, 3, -1, -1]), 4)
