"""Constants as runs."""

import numpy as np
import pytest

from fluidnb.op.ufunc_rewrites import ENOUGH, LONG, scalar_row
from fluidnb.testing import run_op

ZERO = np.zeros((), "float32")


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((100,), (100,)),
        ((3, 5, 100), (3, 5, 100)),
        ((1000, 5, 100), (1, 5, 100)),
        ((2, ENOUGH), (1, ENOUGH)),
        ((2, LONG), (1, LONG)),
        ((2, LONG + 1), ()),
        ((5,), ()),
        ((0, 100), ()),
        ((1000, 1), (1000, 1)),
    ],
)
def test_a_scalar_row_is_as_long_as_a_run(shape, expected):
    assert scalar_row(ZERO, np.zeros(shape, "float32")).shape == expected


def test_a_scalar_row_follows_the_order_in_memory():
    x = np.zeros((16, 30, 40, 64), "float32").transpose(3, 0, 1, 2)
    found = scalar_row(ZERO, x)
    assert found.shape == (64, 1, 1, 40) and found.strides[0] == 4 < found.strides[3]


def test_a_scalar_row_is_made_once_for_each_value_dtype_and_order():
    x = np.zeros((2, 50), "float32")
    assert scalar_row(ZERO, x) is scalar_row(np.zeros((), "float32"), x + 1)
    assert scalar_row(ZERO, x) is not scalar_row(np.ones((), "float32"), x)
    assert scalar_row(np.zeros(()), x).dtype == np.float64
    assert not scalar_row(ZERO, x).flags.writeable


@pytest.mark.parametrize("shape", [(3,), (2, 50), (300, 40), (2, 3, 100_000)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_relu_is_the_same_for_every_shape(shape, order):
    x = np.asarray(np.random.default_rng(0).normal(size=shape), order=order)
    assert np.array_equal(run_op("relu", {"X": x})["Out"], np.where(x > 0, x, 0))
