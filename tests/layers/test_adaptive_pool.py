"""Layers of pooling into a given number of windows."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import OpValueError

layers = fluid.layers
X = np.random.default_rng(0).permutation(35).astype("float32").reshape(1, 1, 5, 7)
ROWS, COLUMNS = [(0, 3), (2, 5)], [(0, 3), (2, 5), (4, 7)]


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def run(*fetch, x=X):
    return fluid.Executor(fluid.CPUPlace()).run(feed={"x": x}, fetch_list=list(fetch))


def windows(function):
    return np.array([[function(X[0, 0, a:b, c:d]) for c, d in COLUMNS] for a, b in ROWS])


def test_the_largest_elements_and_where_they_were():
    out, where = layers.adaptive_pool2d(layers.data("x", [1, 5, 7]), [2, 3], require_index=True)
    largest, places = run(out, where)
    np.testing.assert_array_equal(largest[0, 0], windows(np.max))
    np.testing.assert_array_equal(X.ravel()[places[0, 0]], largest[0, 0])
    assert places.dtype == np.int32 and where.stop_gradient


def test_means():
    out = layers.adaptive_pool2d(layers.data("x", [1, 5, 7]), (2, 3), pool_type="avg")
    np.testing.assert_allclose(run(out)[0][0, 0], windows(np.mean), 1e-5)


@pytest.mark.parametrize("kind", ["max", "avg"])
def test_volumes(kind):
    x = np.random.default_rng(1).uniform(size=(2, 1, 4, 4, 2)).astype("float32")
    out = layers.adaptive_pool3d(layers.data("x", [1, 4, 4, 2]), [2, 2, 1], pool_type=kind)
    parts = x.reshape(2, 1, 2, 2, 2, 2, 1, 2)
    expected = parts.max((3, 5, 7)) if kind == "max" else parts.mean((3, 5, 7))
    np.testing.assert_allclose(run(out, x=x)[0], expected, 1e-5)


def test_the_gradient_goes_where_the_largest_was():
    x = layers.data("x", [1, 5, 7])
    (g,) = fluid.gradients(layers.reduce_sum(layers.adaptive_pool2d(x, 1)), x)
    np.testing.assert_array_equal(run(g)[0], X == X.max())


def test_what_is_refused():
    x = layers.data("x", [1, 5, 7])
    with pytest.raises(OpValueError, match="Unknown pool_type: 'mean'"):
        layers.adaptive_pool2d(x, 2, pool_type="mean")
    with pytest.raises(OpValueError, match="invalid setting 'require_index'"):
        layers.adaptive_pool2d(x, 2, pool_type="avg", require_index=True)
    with pytest.raises(OpValueError, match="must be a list or tuple of 3 integers"):
        layers.adaptive_pool3d(layers.data("v", [1, 4, 4, 4]), [2, 2])
    assert fluid.default_main_program().global_block().ops == []
