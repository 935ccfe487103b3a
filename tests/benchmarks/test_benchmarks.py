"""The benchmarks: every work runs, the report says what was missed, and a run costs little over bare numpy."""

from __future__ import annotations

import base64
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.memory import flags
from tests.benchmarks import __main__ as benchmarks
from tests.benchmarks import generated_code, inference
from tests.benchmarks.driver import ROOT, Result, measure
from tests.benchmarks.page import write_page
from tests.benchmarks.peers import fluidnb_peer
from tests.benchmarks.report import history, record, slower, table, verdict
from tests.benchmarks.scaling import SCALES, measure_scale, scale_table
from tests.benchmarks.works import WORKS
from tests.paddle.harness import require_paddle

Step = Callable[[int], None]


def cheapest(step: Step, n: int, rounds: int = 15) -> float:
    """The least CPU time of one step, in microseconds."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        step(n)
        times.append((time.process_time() - start) / n * 1e6)
    return min(times)


def bare_a(n: int) -> None:
    """Work a by numpy's functions of arrays, and nothing else."""
    c, values = np.ones(1, "float32"), [np.ones(1, "float32") for _ in range(201)]
    calls = [(np.add if i % 2 else np.multiply, values[i], c, values[i + 1]) for i in range(200)]
    for _ in range(n):
        for f, x, y, out in calls:
            f(x, y, out)


def bare_f(n: int) -> None:
    """Work f by numpy's functions, each of which writes into a separate buffer."""
    x, take = np.arange(1000, dtype="float32"), np.ndarray.take
    i, j, end, one = np.zeros(1, "int64"), np.zeros(1, "int64"), np.full(1, 1000), np.ones(1, "int64")
    item, total, next_total, more = (np.zeros(1, t) for t in ("float32", "float32", "float32", "bool"))
    for _ in range(n):
        i[0] = total[0] = 0
        more[0] = True
        while more.item():
            take(x, i, 0, item)
            np.add(total, item, next_total)
            np.add(i, one, j)
            np.less(j, end, more)
            i, j, total, next_total = j, i, next_total, total
    assert total[0] == 499500


@pytest.mark.parametrize(("work", "bare", "n", "most"), [("a", bare_a, 500, 1.5), ("f", bare_f, 10, 1.5)])
def test_a_run_costs_little_over_bare_numpy(work: str, bare: Step, n: int, most: float) -> None:
    step = getattr(fluidnb_peer, work)()
    step(n)
    ratio = cheapest(step, n) / cheapest(bare, n)
    assert 0.2 < ratio < most


def test_regression_learns_in_the_loop_and_in_one_step() -> None:
    fluidnb_peer.b()(3)


@pytest.mark.parametrize("work", ["e", "e_static"])
def test_an_lstm_learns_in_twenty_steps(work: str) -> None:
    with fluid.fresh():
        getattr(fluidnb_peer, work)()(1)


def test_a_program_for_paddle_is_the_one_that_is_measured_here() -> None:
    with fluid.fresh():
        said = fluidnb_peer.program_of_e_static()
        main = fluid.default_main_program()
    read = fluid.Program.parse_from_string(base64.b64decode(said["main"]))
    assert [op.type for op in read.global_block().ops] == [op.type for op in main.global_block().ops]
    assert read.global_block().var(said["loss"]).shape == (1,)


def first_run(length: int) -> float:
    """The least CPU time of the first run of a chain, in seconds."""
    times = []
    for _ in range(3):
        with fluid.fresh():
            times.append(fluidnb_peer.chain(length)["value"])
    return min(times)


def test_a_first_run_is_linear_in_the_program() -> None:
    short, long = first_run(500), first_run(2500)
    assert long / short < 5 * 3  # 25 if it were quadratic; others may share the core


@pytest.mark.parametrize("name", ["a", "h"])
def test_processes_are_measured_and_missing_peers_are_named(name: str) -> None:
    work = replace(WORKS[name], rounds=2)
    mine, nobody = measure(work, ["fluidnb", "nobody"])
    assert mine.error is None and len(mine.cpu) == 2 and mine.value and mine.value > 0
    assert nobody.value is None and "not installed" in (nobody.error or "")
    assert "nobody   missing" in table(work, [mine, nobody])


def test_the_report_tells_a_goal_that_is_met_from_one_that_is_missed() -> None:
    work = WORKS["a"]
    torch = Result("torch", cpu=[100.0, 120.0, 110.0])
    assert verdict(work, [Result("fluidnb", cpu=[22.0]), torch]) == "goal <= 0.25x torch: 0.2, met"
    assert verdict(work, [Result("fluidnb", cpu=[44.0]), torch]) == "goal <= 0.25x torch: 0.4, MISSED"
    assert verdict(work, [torch]) == "goal <= 0.25x torch: not measured"
    kept = record({"a": [Result("fluidnb", cpu=[22.0]), torch]})["works"]["a"]
    assert kept["ratio"] == 0.2 and kept["peers"]["torch"]["median"] == 110.0


def test_a_run_is_remembered_and_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A ratio 15 % above the median of earlier runs is reported; runs on other machines do not count."""

    def run(mine: float) -> dict[str, Any]:
        return record({"a": [Result("fluidnb", cpu=[mine]), Result("torch", cpu=[100.0])]})

    earlier = [run(20.0), run(22.0), run(90.0), {**run(5.0), "cores": 96}, {**run(5.0), "threads": 2}]
    assert slower(run(25.0), earlier) == []
    assert slower(run(26.0), earlier) == ["a: fluidnb takes 0.26x torch, 0.22x before"]
    path = tmp_path / "deep" / "history.jsonl"
    for _ in range(2):
        benchmarks.main(["a", "--peers", "fluidnb", "--json", str(path)])
    kept = history(path)
    assert len(kept) == 2 and kept[1]["works"]["a"]["peers"]["fluidnb"]["median"] > 0
    assert "goal <= 0.25x torch: not measured" in capsys.readouterr().out


def test_the_page_shows_the_figures(tmp_path: Path) -> None:
    """The notebook runs with other figures than its own: a table, a plot, the history."""
    scaling = {"loop": measure_scale(replace(SCALES["loop"], sizes=(10, 100)), ["fluidnb", "nobody"], rounds=2)}
    assert scaling["loop"]["times"]["nobody"] == [None, None]
    assert scale_table(scaling["loop"]).splitlines()[2].endswith("missing")
    times = {"a": [Result("fluidnb", cpu=[20.0]), Result("torch", cpu=[100.0]), Result("jax", error="absent")]}
    runs = [record(times), record(times, 2)]
    path = tmp_path / "benchmarks.ipynb"
    shutil.copy(ROOT / "notebooks" / "benchmarks.ipynb", path)
    write_page(*runs, scaling, runs, path)
    shown = path.read_text("utf-8")
    assert "20 us | | | 100 us (5.00x) |" in shown.replace("|  |", "| |").replace("|  |", "| |")
    assert "<svg" in shown and "0.20x" in shown


@pytest.mark.slow
def test_generated_code_beside_executors(capsys: pytest.CaptureFixture[str]) -> None:
    assert generated_code.main(["mlp", "--batches", "4", "--rounds", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[16:34].strip() for line in lines[1:3]] == ["executor", "C"]
    size, memory = map(float, lines[2].split()[-2:])
    assert 10 < size < 200 and 1 < memory < 20


def test_an_exported_model_beside_paddle_inference(capsys: pytest.CaptureFixture[str]) -> None:
    require_paddle()
    before = dict(flags.values)
    try:
        assert inference.main(["mobilenet_v3_small", "--batches", "1", "--rounds", "1"]) == 0
    finally:
        fluid.set_flags(before)
    model, mean = capsys.readouterr().out.splitlines()[1:]
    assert model.split()[0] == "mobilenet_v3_small" and mean.split()[:2] == ["geometric", "mean"]
    assert all(0.01 < float(word) < 100 for word in model.split()[2:])
