"""``%fluid place`` and ``%%fluid --place``."""

from __future__ import annotations

import re

import pytest
from IPython.core.error import UsageError

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet, NotFound
from tests.magics.conftest import Session, session

__all__ = ["session"]

NET = """%%fluid net --place cuda
x = layers.data("x", shape=[3])
out = layers.scale(layers.relu(x), scale=2.0)
"""


def test_programs_of_a_session_run_on_a_device(session: Session, cuda: fluid.CUDAPlace) -> None:
    shown = session.run("%fluid place")
    assert "> CPUPlace" in shown
    assert "  CUDAPlace(0)  emulator, sm_90" in shown
    session.run(NET)
    assert "> CUDAPlace(0)" in session.run("%fluid place")
    session.run("import numpy as np; a = np.array([[1.0, -1.0, 2.0]], 'float32')")
    assert re.search(r"2\D+0\D+4", session.run("%fluid run --feed x=a --fetch out"))
    assert "> CPUPlace" in session.run("%fluid place cpu")
    error, _ = session.fail("%fluid place cuda:7")
    assert isinstance(error, EnforceNotMet)
    error, _ = session.fail("%fluid place tpu")
    assert isinstance(error, UsageError)
    assert "> CPUPlace" in session.run("%fluid place")


def test_the_plan_of_a_run_is_shown(session: Session, cuda: fluid.CUDAPlace) -> None:
    """What is copied to the host and back stands beside the operator that wants it there."""
    session.run("%fluid place cuda")
    session.run("""%%fluid
x = layers.data("x", shape=[3])
y = fluid.default_main_program().current_block().create_var(name="y", shape=[-1, 3], dtype="float32")
layers.py_func(lambda a: np.asarray(a) * np.float32(2), layers.relu(x), y)
out = layers.mean(y)
""")
    error, _ = session.fail("%fluid plan")
    assert isinstance(error, NotFound) and "has not run" in str(error)
    session.run("a = np.array([[1.0, -1.0, 2.0]], 'float32')")
    session.run("%fluid run --feed x=a --fetch out")
    shown = session.run("%fluid plan")
    assert "the last run on CUDAPlace(0); emulator, sm_90" in shown
    assert "fed x; fetched out" in shown
    assert re.search(r"0 relu +x -> \S+\n", shown)
    assert re.search(r"1 py_func +\S+ -> y +\[place cuda -> cpu\]", shown)
    assert "around the kernels of 1 of 3 operators" in shown
    session.run("%fluid place cpu")
    session.run("%fluid run --feed x=a --fetch out")
    assert "no copies, casts or layout conversions" in session.run("%fluid plan")


def test_a_device_that_is_not_there_is_no_error_until_it_is_chosen(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fluidnb_kernels.cuda.backend.missing", lambda: "no device: get one.")
    assert "no device" in session.run("%fluid place")
    error, _ = session.fail(NET)
    assert "get one, or use fluid.CPUPlace()" in str(error)
    assert "nothing" in session.run("%fluid cells") or "net" not in session.run("%fluid cells")
