"""BLAS has one thread while a program runs whose convolutions oneDNN computes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.runtime.blas_threads import one_thread
from tests.onednn.test_convolution import small

threadpoolctl = pytest.importorskip("threadpoolctl")


def of_blas() -> int:
    """The number of threads of the BLAS that numpy has loaded."""
    assert np.ones((2, 2)).dot(np.ones(2)).tolist() == [2.0, 2.0]
    (number,) = {pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"}
    return int(number)


@pytest.fixture(autouse=True)
def two(by_onednn: None) -> Iterator[None]:
    with threadpoolctl.threadpool_limits(2, "blas"):
        yield


def network(fails: bool = False) -> tuple[Any, list[int]]:
    """A convolution, and a function of the user's that notes the threads of BLAS."""
    noted: list[int] = []

    def note(x: Any) -> np.ndarray:
        noted.append(of_blas())
        if fails:
            raise ZeroDivisionError
        return np.array(x)

    h = layers.conv2d(layers.data("x", [8, 9, 9]), 8, 3)
    out = fluid.default_main_program().current_block().create_var(name="noted", dtype="float32", shape=[-1, 8, 7, 7])
    return layers.py_func(note, h, out), noted


def test_only_in_a_run() -> None:
    out, noted = network()
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    for _ in range(2):
        exe.run(feed={"x": small(2, 8, 9, 9)}, fetch_list=[out])
        assert of_blas() == 2
    assert noted == [1, 1]
    fluid.set_flags({"FLAGS_use_mkldnn": False})
    exe.run(feed={"x": small(2, 8, 9, 9)}, fetch_list=[out])
    assert noted == [1, 1, 2]


def test_also_when_it_fails() -> None:
    out, noted = network(fails=True)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    with pytest.raises(fluid.core.EnforceNotMet):
        exe.run(feed={"x": small(2, 8, 9, 9)}, fetch_list=[out])
    assert noted == [1] and of_blas() == 2


def test_runs_inside_runs_and_in_other_threads() -> None:
    seen = []

    def inside() -> None:
        with one_thread:
            seen.append(of_blas())

    with one_thread:
        inside()
        other = threading.Thread(target=inside)
        other.start()
        other.join(30)
        seen.append(of_blas())
    assert seen == [1, 1, 1] and of_blas() == 2
