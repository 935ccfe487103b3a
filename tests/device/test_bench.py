"""`make bench-gpu` runs, with torch and without; its figures mean something on a GPU alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import fluidnb as fluid
from fluidnb.memory import flags
from fluidnb_kernels.cuda_emulator_backend import RawKernel
from fluidnb_kernels.cuda_emulator_backend.streams import Graph
from tests.benchmarks.driver import python
from tests.device.faults import nth
from tests.gpu import bandwidth, bench, launches, models, torch_side
from tests.gpu.turns import Effort

ROOT = Path(__file__).parents[2]
SMALL = Effort(on_gpu=False, small=True, rounds=1, seconds=0.0)

#: Runs the benchmark with the torch of another environment, whose compiler is not there: compiling takes minutes.
WITH_TORCH = """
import runpy, sys
sys.path.append(sys.argv.pop(1))
import torch
def refuse(*args, **kw):
    raise RuntimeError("no compiler here\\nand more lines")
torch.compile = lambda function: refuse
sys.argv[0] = "bench"
runpy.run_module("tests.gpu.bench", run_name="__main__", alter_sys=True)
"""


@pytest.fixture
def untorched(cuda: fluid.CUDAPlace, monkeypatch: pytest.MonkeyPatch) -> fluid.CUDAPlace:
    """The device, in a process that has no torch; flags are as before afterwards."""
    monkeypatch.setitem(sys.modules, "torch", None)
    name = "fraction_of_gpu_memory_to_use"
    monkeypatch.setitem(flags.values, name, flags.values[name])
    return cuda


def test_all_of_it_runs_without_torch(
    untorched: fluid.CUDAPlace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.main(["--smoke", "--json", str(tmp_path / "made" / "all.json")]) == 0
    shown = capsys.readouterr().out
    for part in ("These times mean nothing", "torch not installed", "relu", "training step", "launches a second"):
        assert part in shown
    assert "MISSED" not in shown and ", met" not in shown
    found = json.loads((tmp_path / "made" / "all.json").read_text())
    assert not found["judged"] and found["device"] in shown
    assert [len(found[part]) for part in bench.PARTS] == [len(bandwidth.cases(1)), len(models.MODELS), 3]
    for row in found["models"]:
        assert row["missing"] == dict.fromkeys(models.GOALS, "not installed") and row["seconds"]["fluidnb"] > 0
        assert row["losses"][-1] < row["losses"][0]


def torch_packages() -> str:
    """The folder of packages in torch's environment; empty where there is none."""
    found = sorted(python("torch").parents[1].glob("lib/python*/site-packages/torch"))
    return str(found[0].parent) if found else ""


@pytest.mark.skipif(not torch_packages(), reason="no PyTorch: make bench installs it into .venvs/torch")
def test_torch_on_the_processor_computes_the_same(cuda: fluid.CUDAPlace, tmp_path: Path) -> None:
    kept = tmp_path / "all.json"
    command = [sys.executable, "-c", WITH_TORCH, torch_packages(), "--smoke", "--json", str(kept), "models", "launches"]
    env = {
        **os.environ, "OMP_NUM_THREADS": "1", "FLAGS_cuda_backend": "emulator",
        "PYTHONPATH": os.pathsep.join(str(ROOT / part) for part in (".", "kernels", "magics")),
    }  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(kept.read_text())
    assert "bandwidth" not in found
    for row in found["models"]:
        assert row["wrong"] == {} and row["seconds"].keys() == {"fluidnb", "torch eager"}
        assert row["missing"] == {"torch.compile": "fails: RuntimeError, no compiler here"}
    assert {row["title"] for row in found["launches"]} >= {"torch eager"}


def test_another_loss_is_told_and_is_a_failure(
    untorched: fluid.CUDAPlace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def other(kind: str, name: str, data: Any, values: Sequence[Any], sizes: Any, on_gpu: bool) -> Any:
        return lambda: 0.25, sum(value.size for value in values)

    monkeypatch.setattr(torch_side, "training", other)
    monkeypatch.setattr(models, "MODELS", models.MODELS[:1])
    assert bench.main(["--smoke", "models"]) == 1
    assert capsys.readouterr().out.count("NOT THE SAME: losses ") == len(models.GOALS)


def test_goals_are_judged_where_times_mean_something() -> None:
    row: dict[str, Any] = {
        "title": "a net", "sizes": {}, "parameters": 1234, "losses": [2.0, 1.0], "missing": {}, "wrong": {},
        "seconds": {"fluidnb": 1.1e-3, "torch eager": 1e-3, "torch.compile": 1e-3},
    }  # fmt: skip
    assert models.lines([row], True)[-1] == (
        "| a net | 1,234 | 2.000 to 1.000 | 1,100 us | 1,000 us: 1.10x, MISSED | 1,000 us: 1.10x, met |"
    )
    assert "MISSED" not in models.lines([row], False)[-1]
    made = [{"title": "fluidnb", "operators": 200, "seconds": 1e-4, "launches a second": 2e6},
            {"title": "torch eager", "operators": 200, "seconds": 1e-3, "launches a second": 2e5}]  # fmt: skip
    assert "| 0.10x, met (goal 0.3x) |" in launches.lines(made, True)[2]
    assert [line.rpartition(", ")[2] for line in bandwidth.lines([("a", 1.0, 0.9), ("b", 1.0, 0.8)], True)[2:]] == [
        "met |", "MISSED |",
    ]  # fmt: skip
    assert Effort().judged and not SMALL.judged and not Effort(small=True).judged


def test_graphs_are_launched_as_a_whole_and_kernels_one_by_one(cuda: fluid.CUDAPlace) -> None:
    whole, single = (launches.tiny(cuda, graphs, 12) for graphs in (True, False))
    with nth(Graph, "launch", -1, whole) as graphs, nth(RawKernel, "__call__", -1, whole) as kernels:
        assert whole() == 7.0
        assert (graphs.made, kernels.made) == (1, 0)
        assert single() == 7.0
        assert (graphs.made, kernels.made) == (1, 12)
