"""A device in a notebook: places, memory of every pool, device time, errors in cells."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.error import UsageError

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet
from fluidnb.memory import OutOfMemory
from fluidnb.viz import read_memory
from tests.device.cells import NET
from tests.magics.conftest import Session, session

__all__ = ["session"]

RUN = "%fluid run --feed x=a --fetch loss"


@pytest.fixture
def typed(session: Session, cuda: fluid.CUDAPlace) -> Session:
    """A session with a program that is to run on the device."""
    session.run("import numpy as np; a = np.linspace(0, 1, 60, dtype='float32').reshape(3, 20)")
    assert "programs run on CUDAPlace(0), emulator, sm_90, emulator in place of cupy" in session.run(NET)
    return session


def test_a_cell_that_fails_leaves_the_place_as_it_was(typed: Session) -> None:
    typed.fail("%%fluid more --place cpu\nlayers.relu(nowhere)")
    assert "> CUDAPlace(0)" in typed.run("%fluid place")
    assert "programs run on CPUPlace" in typed.run("%%fluid more --place cpu\nlayers.relu(h)")
    assert "> CPUPlace" in typed.run("%fluid place")


def test_parameters_go_with_the_place_of_a_session(typed: Session) -> None:
    def loss() -> float:
        return float(re.findall(r"\[([\d.e-]+)\]", typed.run(RUN))[-1])

    seen = [loss()]
    for place in ("cpu", "cuda:0", "cpu"):
        typed.run(f"%fluid place {place}")
        seen.append(loss())
    weights = fluid.global_scope().find_var("h.w_0").get_tensor()
    assert weights._place() == fluid.CPUPlace()
    assert seen == sorted(seen, reverse=True) and len(set(seen)) == 4, "each step went on from the one before"


def test_memory_of_all_places(typed: Session) -> None:
    typed.run(RUN)
    shown = typed.run("%fluid memory")
    assert re.search(r"memory by holder  CUDAPlace\(0\): \d.* used, peak .* reserved, \d+ blocks", shown)
    assert re.search(r"emulator, sm_90, emulator in place of cupy [\d.]+; at most .*B for the pool", shown)
    assert "other pool  CPUPlace: " in shown
    first, *others = read_memory(fluid.default_main_program()).pools
    assert {h.name: h.kind for h in first.holders}["h.w_0"] == "persistable"
    assert first.stats.used == fluid.memory.used(fluid.CUDAPlace(0))
    assert "CPUPlace" in [pool.stats.place for pool in others]
    assert "pool of CUDAPlace(0)" in typed.run("%fluid memory --growth 3 --feed x=a")


def test_device_time(typed: Session, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    shown = typed.run(f"%fluid profile --feed x=a --fetch loss --steps 2 --trace {path}")
    assert "device time by CUDA events: CUDAPlace(0), emulator, sm_90" in shown and "\nCUDAPlace(0) 0  " in shown
    rows = json.loads(path.read_text())["traceEvents"]
    assert rows[0]["args"]["name"] == "CUDAPlace(0)" and {row["pid"] for row in rows} == {0}
    shown = typed.run("%fluid profile --feed x=a --fetch loss --steps 2 --listing")
    assert "mean of 2 runs; device time by CUDA events: CUDAPlace(0)" in shown
    [row] = [row for row in shown.splitlines() if "mul(X=x" in row]
    assert re.match(r" *[\d.]+ (µs|ms|s) ", row)
    error, _ = typed.fail("%fluid profile --feed x=a --listing --live")
    assert isinstance(error, UsageError)


def test_debug_sessions_say_where_they_run(typed: Session) -> None:
    shown = typed.run("%fluid debug --feed x=a --fetch loss")
    assert "step 0  entry  on CUDAPlace(0), emulator, sm_90" in shown
    assert "on CUDAPlace(0)" in typed.run("%fluid step")
    typed.run("%fluid debug off")
    typed.run("%fluid place cpu")
    assert " on C" not in typed.run("%fluid debug --feed x=a --fetch loss").splitlines()[0]
    typed.run("%fluid debug off")


def test_scopes_say_where_tensors_are(typed: Session) -> None:
    typed.run(RUN)
    [row] = [row for row in typed.run("%fluid scope").splitlines() if "h.w_0" in row]
    assert "float32[20, 16]  on CUDAPlace(0)" in row


def test_errors_in_cells(typed: Session) -> None:
    typed.run(RUN)
    error, _ = typed.fail("fluid.LoDTensor().set(np.broadcast_to(np.float32(0), (1 << 40,)), fluid.CUDAPlace(0))")
    assert isinstance(error, OutOfMemory)
    assert "Out of memory on CUDAPlace(0)" in str(error) and "the most is held by" in str(error)
    assert "use a smaller batch" in str(error)
    error, _ = typed.fail("%%fluid more --place cuda:9\nlayers.relu(h)")
    assert isinstance(error, EnforceNotMet) and "There is no CUDA device 9" in str(error)
    assert "> CUDAPlace(0)" in typed.run("%fluid place")
    assert "loss" in typed.run(RUN)


def test_without_a_device_there_is_a_sentence_and_the_next_step(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fluidnb_kernels.cuda.backend.missing", lambda: "no device here: plug one in.")
    shown = session.run("%fluid place").splitlines()
    assert shown[1].split("  ") == ["", "CUDAPlace(0)", "no device here."]
    assert shown[2].strip() == "plug one in, or use fluid.CPUPlace()."


def test_completion(typed: Session) -> None:
    def offered(line: str) -> set[Any]:
        with provisionalcompleter():
            return {c.text for c in typed.shell.Completer.completions(line, len(line))}

    assert {"cpu", "cuda:0"} <= offered("%fluid place c")
    assert "--place" in offered("%%fluid net --pl") and "cuda:0" in offered("%%fluid net --place cu")
    assert "--listing" in offered("%fluid profile --li")
