"""``%fluid place`` and ``%%fluid --place``."""

from __future__ import annotations

import re

import pytest
from IPython.core.error import UsageError

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet
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


def test_a_device_that_is_not_there_is_no_error_until_it_is_chosen(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fluidnb_kernels.cuda.backend.missing", lambda: "no device: get one.")
    assert "no device" in session.run("%fluid place")
    error, _ = session.fail(NET)
    assert "get one, or use fluid.CPUPlace()" in str(error)
    assert "nothing" in session.run("%fluid cells") or "net" not in session.run("%fluid cells")
