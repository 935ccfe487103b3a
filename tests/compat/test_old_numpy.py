"""Fetched arrays of one element convert to numbers in old scripts, also after np.array; numpy itself is restored."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import compat
from fluidnb.compat import old_numpy


@pytest.fixture
def installed() -> Iterator[None]:
    """Paddle's names for the length of a test."""
    compat.install(force=True)
    yield
    compat.uninstall()


def fetch(values: Any, return_numpy: bool = True) -> Any:
    """The fetched array of an assigned value."""
    out = fluid.layers.assign(np.asarray(values, "float32"))
    return fluid.Executor(fluid.CPUPlace()).run(fetch_list=[out], return_numpy=return_numpy)


#: How scripts take a fetched array before they use it as a number.
TAKEN: dict[str, Callable[[], Any]] = {
    "fetched": lambda: fetch([2.25])[0],
    "np.array": lambda: np.array(fetch([2.25])[0]),
    "np.asarray": lambda: np.asarray(fetch([2.25])[0], dtype="float64"),
    "a list": lambda: np.array(fetch([2.25])),
    "a tensor": lambda: np.array(fetch([2.25], return_numpy=False)[0]),
    "a sum": lambda: 0.0 + np.array(fetch([2.0])[0]) + 0.25,
    "matrix": lambda: fetch([[2.25]])[0],
    "an exponential": lambda: np.exp(fetch([0.8109302])[0]),
}


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("how", TAKEN)
def test_one_element_is_a_number(how: str) -> None:
    loss = TAKEN[how]()
    assert loss.shape in ((1,), (1, 1))
    assert math.isclose(float(loss), 2.25, rel_tol=1e-6) and int(loss) == 2
    assert "%.2f %d" % (loss, loss) == "2.25 2" and "Step %.1f" % loss == "Step 2.2"  # noqa: UP031
    assert f"{loss:.2f}" == "2.25" and "{0:0.2}".format(loss) == "2.2"  # noqa: UP030, UP032
    assert round(loss, 1) == 2.2 and round(loss) == 2 and not math.isnan(loss)
    cells = np.zeros(2)
    cells[1] = loss
    assert cells.tolist() == [0.0, pytest.approx(2.25)]


@pytest.mark.usefixtures("installed")
def test_several_elements_are_no_number() -> None:
    loss = np.array(fetch([1.0, 2.0])[0])
    for convert in (float, int, lambda x: "%f" % x):  # noqa: UP031
        with pytest.raises((TypeError, ValueError)):
            convert(loss)
    with pytest.raises(TypeError, match="format string"):
        f"{loss:.2f}"
    assert f"{loss}" == "[1. 2.]" and round(loss, 1).tolist() == [1.0, 2.0]


@pytest.mark.usefixtures("installed")
def test_reductions_give_scalars_and_pickles_plain_arrays() -> None:
    loss = fetch([1.0, 2.0])[0]
    assert type(loss.sum()) is type(np.mean(loss)) is type(loss[0]) is np.float32
    assert type(pickle.loads(pickle.dumps(loss))) is np.ndarray and repr(loss) == "array([1., 2.], dtype=float32)"


@pytest.mark.usefixtures("installed")
def test_targets_of_a_data_set_are_numbers() -> None:
    batch = next(fluid.batch(fluid.dataset.uci_housing.test(), 10)())
    prices = np.array([sample[1] for sample in batch]).astype("float32")
    assert ["%.1f" % price for price in prices] == [f"{price[0]:.1f}" for price in prices]  # noqa: UP031


@pytest.mark.usefixtures("installed")
def test_arrays_of_others_stay_plain() -> None:
    assert type(np.array([1.0])) is type(np.asarray(np.ones(1))) is np.ndarray
    with pytest.raises(TypeError):
        float(np.array([1.0]))


@pytest.mark.usefixtures("installed")
def test_a_fetched_array_is_fed_again() -> None:
    x = fluid.layers.data("x", [1])
    exe = fluid.Executor(fluid.CPUPlace())
    for value in (fetch([[2.0]])[0], np.array(fetch([[2.0]])[0])):
        assert exe.run(feed={"x": value}, fetch_list=[x * 2.0])[0].tolist() == [[4.0]]


@pytest.mark.usefixtures("installed")
def test_rows_of_several_lengths_are_an_array_of_lists() -> None:
    rows = np.array([[1, 2], [3]])
    assert rows.shape == (2,) and rows.dtype == object and rows[[1, 0]].tolist() == [[3], [1, 2]]
    with pytest.raises(ValueError, match="inhomogeneous"):
        np.array([[1, 2], [3]], dtype="int64")


def test_rows_of_several_lengths_are_known_without_the_words_of_numpy() -> None:
    def convert(value: object, dtype: type | None = None) -> tuple[object, type]:
        if dtype is None:
            raise ValueError("in other words")
        return value, dtype

    assert old_numpy._keeping_class(convert)([[1], [2, 3]]) == ([[1], [2, 3]], object)
    with pytest.raises(ValueError, match="in other words"):
        old_numpy._keeping_class(convert)(5)


def test_numpy_is_restored() -> None:
    names, array, asarray = set(vars(np)), np.array, np.asarray
    compat.install(force=True)
    assert np.float is float and np.int is int and np.product([2, 3]) == 6 and np.array is not array
    assert pickle.loads(pickle.dumps(np.array)) is np.array
    compat.uninstall()
    assert set(vars(np)) == names and np.array is array and np.asarray is asarray
    assert type(fetch([1.0])[0]) is np.ndarray
    with pytest.raises(ValueError, match="inhomogeneous"):
        np.array([[1, 2], [3]])
