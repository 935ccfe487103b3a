"""The benchmark of bandwidths runs; its figures mean something on a GPU alone."""

from __future__ import annotations

import pytest

from fluidnb.memory import flags
from fluidnb_kernels import emulator
from tests.gpu.bandwidth import cases, table


@pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())
def test_every_row_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(flags.values, "cuda_backend", "emulator")
    made = table(0, 1)
    assert len(made) == len(cases(1))
    assert all(speed > 0 and share > 0 for _, speed, share in made)
