"""FLAGS_num_threads sets the threads of BLAS."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

import fluidnb as fluid

threadpoolctl = pytest.importorskip("threadpoolctl")


def of_blas() -> set[int]:
    """The numbers of threads of BLAS, which numpy has loaded."""
    assert np.ones((2, 2)).dot(np.ones(2)).tolist() == [2.0, 2.0]
    return {pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """An executor, which lets BLAS follow the flag; the number of before afterwards."""
    fluid.Executor()
    yield
    fluid.set_flags({"FLAGS_num_threads": 0})


def test_blas_follows_the_flag_and_has_its_own_number_again() -> None:
    before = of_blas()
    for number in (2, 1, 3):
        fluid.set_flags({"FLAGS_num_threads": number})
        assert of_blas() == {number}
    fluid.set_flags({"FLAGS_check_nan_inf": False})  # another flag changes nothing
    assert of_blas() == {3}
    fluid.set_flags({"FLAGS_num_threads": 0})
    assert of_blas() == before


def test_a_wrong_number_leaves_it_as_it_was() -> None:
    fluid.set_flags({"FLAGS_num_threads": 2})
    with pytest.raises(ValueError, match="FLAGS_num_threads cannot be -1"):
        fluid.set_flags({"FLAGS_num_threads": -1})
    assert of_blas() == {2} and fluid.get_flags("FLAGS_num_threads") == {"FLAGS_num_threads": 2}


def test_the_environment_variable_holds_from_the_first_executor_on() -> None:
    code = (
        f"import sys; sys.path[:0] = {sys.path!r}\n"
        "from tests.runtime.test_blas_threads import fluid, of_blas\n"
        "fluid.Executor(); print(of_blas())"
    )
    env = os.environ | {"FLAGS_num_threads": "2", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=100)
    assert done.stdout.strip() == "{2}", done.stderr


def test_without_threadpoolctl_it_says_so(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    before = of_blas()
    with caplog.at_level(logging.WARNING, "fluidnb"):
        fluid.set_flags({"FLAGS_num_threads": 2})
    assert "FLAGS_num_threads=2 has no effect: pip install 'fluidnb[native]' installs threadpoolctl" in caplog.text
    assert of_blas() == before
