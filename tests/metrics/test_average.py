"""WeightedAverage: numbers, arrays, mistakes."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import OpValueError


def test_numbers_count_by_their_weight():
    average = fluid.average.WeightedAverage()
    for value, weight in ((1.0, 1), (np.float32(4.0), 2), (10, np.array([1]))):
        average.add(value, weight)
    assert average.eval() == pytest.approx(4.75)
    average.reset()
    average.add(value=7.0, weight=0.5)
    assert average.eval() == 7.0


def test_arrays_are_averaged_element_by_element():
    average, first = fluid.average.WeightedAverage(), np.array([1.0, 2.0])
    average.add(first, 1)
    average.add(np.array([3.0, 6.0]), 3)
    np.testing.assert_array_equal(average.eval(), [2.5, 5.0])
    np.testing.assert_array_equal(first, [1.0, 2.0])


def test_mistakes():
    average = fluid.average.WeightedAverage()
    with pytest.raises(OpValueError, match="There is no data to be averaged"):
        average.eval()
    with pytest.raises(OpValueError, match=r"The 'value' must be a number\(int, float\) or a numpy ndarray"):
        average.add("1", 1)
    with pytest.raises(OpValueError, match="weight of WeightedAverage.add must be a number"):
        average.add(1.0, [1])
    with pytest.raises(OpValueError, match="There is no data to be averaged"):
        average.eval()
