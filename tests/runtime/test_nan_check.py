"""FLAGS_check_nan_inf: the first operator that makes a NaN is named, and parameters stay as they were."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet
from fluidnb.values.array_stats import ArrayStats


@pytest.fixture
def checking():
    fluid.set_flags({"FLAGS_check_nan_inf": True})
    yield
    fluid.set_flags({"FLAGS_check_nan_inf": False})


def build():
    x = fluid.layers.data("x", [2])
    hidden = fluid.layers.fc(x, 3)
    root = fluid.layers.sqrt(hidden)
    loss = fluid.layers.mean(root)
    fluid.optimizer.SGD(0.1).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe, root, loss


@pytest.mark.parametrize("keep", [False, True])
def test_the_first_operator_and_the_line_are_named(checking, keep):
    exe, root, loss = build()
    weight = fluid.global_scope().find_var("fc_0.w_0").get_tensor()
    weight.set(np.full((2, 3), -1, "float32"), fluid.CPUPlace())
    with pytest.raises(EnforceNotMet, match=f"Operator sqrt output Tensor {root.name} contains NAN/Inf") as e:
        exe.run(feed={"x": np.ones((4, 2), "float32")}, fetch_list=[loss], keep_scopes=keep)
    text = str(e.value)
    assert "12 NaN and 0 infinite of 12 elements" in text and "root = fluid.layers.sqrt(hidden)" in text
    assert (np.array(weight) == -1).all()


def test_without_the_flag_it_goes_through_and_the_flag_takes_effect_at_once(checking):
    exe, _, loss = build()
    fluid.set_flags({"FLAGS_check_nan_inf": False})
    feed = {"x": np.full((4, 2), np.nan, "float32")}
    fluid.global_scope().find_var("fc_0.b_0").get_tensor()
    assert np.isnan(exe.run(feed=feed, fetch_list=[loss])[0])
    fluid.set_flags({"FLAGS_check_nan_inf": True})
    with pytest.raises(EnforceNotMet, match="contains NAN/Inf"):
        exe.run(feed=feed, fetch_list=[loss])


def test_a_sum_that_overflows_is_no_infinity(checking):
    x = fluid.layers.data("x", [2], append_batch_size=False)
    y = fluid.layers.scale(x, scale=1.0)
    big = np.full(2, 3e38, "float32")
    assert np.array_equal(fluid.Executor(fluid.CPUPlace()).run(feed={"x": big}, fetch_list=[y])[0], big)


@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered")
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_what_counts_as_finite(dtype: str) -> None:
    numbers = np.random.default_rng(0).normal(size=(5, 6, 7)).astype(dtype)
    largest = np.full((3, 4), np.finfo(dtype).max, dtype)  # their squares are not finite, and neither is their sum
    for array in (numbers, numbers.transpose(1, 2, 0), numbers[::2, 1:, ::-1], largest, np.zeros((0, 3), dtype)):
        assert not ArrayStats().beyond(array)
    for hole in (np.nan, np.inf, -np.inf):
        odd = numbers.copy()
        odd[3, 2, 1] = hole
        assert all(ArrayStats().beyond(array) for array in (odd, odd.transpose(2, 0, 1), odd[3:, ::-1]))
        assert ArrayStats().beyond(np.array(hole, dtype))
