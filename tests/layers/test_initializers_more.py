"""Truncated normal draws, interpolating kernels, and where constants are made."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import OpValueError

I, L = fluid.initializer, fluid.layers  # noqa: E741


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def value(initializer, shape, dtype="float32"):
    w = L.create_parameter(shape, dtype, name="w", default_initializer=initializer)
    [out] = fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program(), fetch_list=[w.name])
    assert out.shape == tuple(shape) and out.dtype == np.dtype(dtype)
    return out


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_truncated_normal(dtype):
    out = value(I.TruncatedNormal(3.0, 0.5), [40, 500], dtype)
    assert 2.0 <= out.min() < 2.05 and 3.95 < out.max() <= 4.0
    # The deviation of a normal distribution without what is beyond two deviations is 0.8796 of the whole's.
    assert out.mean() == pytest.approx(3.0, abs=0.02) and out.std() == pytest.approx(0.5 * 0.8796, rel=0.02)


def test_a_seed_fixes_the_draws():
    with fluid.fresh():
        a = value(I.TruncatedNormal(seed=5), [20])
    with fluid.fresh():
        b = value(I.TruncatedNormal(seed=5), [20])
    assert np.array_equal(a, b) and not np.array_equal(a, value(I.TruncatedNormal(seed=6), [20]))


@pytest.mark.parametrize("factor", [2, 3, 4])
def test_bilinear_enlarges_an_image(factor):
    """The weight of a transposed convolution, as its definition says: a straight line stays one inside."""
    size, pad = 2 * factor - factor % 2, -(-(factor - 1) // 2)
    kernel = value(I.Bilinear(), [3, 1, size, size])
    assert (kernel == kernel[:1]).all() and np.array_equal(kernel[0, 0], kernel[0, 0].T)
    image = np.add.outer(np.arange(6), 10 * np.arange(6)).astype("float64")
    large = np.zeros((5 * factor + size,) * 2)
    for (i, j), pixel in np.ndenumerate(image):
        large[i * factor : i * factor + size, j * factor : j * factor + size] += pixel * kernel[0, 0]
    inside = large[pad : pad + 6 * factor, pad : pad + 6 * factor][factor:-factor, factor:-factor]
    np.testing.assert_allclose(np.diff(inside, axis=0), 1 / factor, atol=1e-5)
    np.testing.assert_allclose(np.diff(inside, axis=1), 10 / factor, atol=1e-5)


def test_bilinear_wants_square_kernels():
    with pytest.raises(OpValueError, match="the length of shape must be 4"):
        value(I.Bilinear(), [3, 3])
    with pytest.raises(OpValueError, match=r"shape\[2\] must be equal to shape\[3\]"):
        value(I.Bilinear(), [1, 1, 3, 4])
    assert not fluid.default_main_program().global_block().vars


def test_constants_on_the_cpu():
    def on_cpu(op):
        return op.attr("force_cpu")

    def make():
        L.create_global_var([1], 1.0, "float32", persistable=True)
        L.fill_constant([1], "float32", 1.0)
        return on_cpu(fluid.default_startup_program().global_block().ops[-1]), on_cpu(
            fluid.default_main_program().global_block().ops[-1]
        )

    assert make() == (False, False)
    with I.init_on_cpu():
        with I.init_on_cpu():
            assert I.force_init_on_cpu()
        assert make() == (True, True)
    with pytest.raises(ZeroDivisionError), I.init_on_cpu():
        raise ZeroDivisionError
    assert not I.force_init_on_cpu() and make() == (False, False)


def test_short_names():
    for name in ("Bilinear", "Constant", "MSRA", "Normal", "TruncatedNormal", "Uniform", "Xavier"):
        assert getattr(I, name) is getattr(I, name + "Initializer")
