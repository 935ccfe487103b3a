"""Learning-rate schedules beside real Paddle: the same rates, its programs here, and ours there."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import fluidnb as fluid
from tests.paddle.harness import in_paddle, load, require_paddle
from tests.paddle.schedules import SCHEDULES, STEPS, make

pytestmark = pytest.mark.paddle
#: Paddle 2.6.2 builds these with two-sided branches, whose operators came after Fluid.
TWO_SIDED = {"polynomial_cycle", "warmup", "warmup_piecewise", "warmup_noam"}


def build(name: str) -> tuple[fluid.Program, str, dict[str, np.ndarray]]:
    """Our program of a schedule, the rate's name, and the values that the startup program makes."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        rate = make(fluid.layers, SCHEDULES[name])
    names = [v.name for v in main.list_vars() if v.persistable]
    values = fluid.Executor(fluid.CPUPlace()).run(startup, fetch_list=names, scope=fluid.Scope())
    return main, rate.name, dict(zip(names, values, strict=True))


def run(program: fluid.Program, rate: str, first: dict[str, np.ndarray]) -> np.ndarray:
    """The rate of every step."""
    scope, exe = fluid.Scope(), fluid.Executor(fluid.CPUPlace())
    for name, array in first.items():
        scope.var(name).get_tensor().set(array, fluid.CPUPlace())
    return np.concatenate([exe.run(program, fetch_list=[rate], scope=scope)[0] for _ in range(STEPS)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Paddle's values of all schedules."""
    require_paddle()
    path = tmp_path_factory.mktemp("schedules")
    jobs = {}
    for name in SCHEDULES:
        program, rate, first = build(name)
        (path / f"{name}.pb").write_bytes(program.desc.serialize_to_string())
        jobs[name] = {"rate": rate, "first": {n: (a.dtype.name, a.tolist()) for n, a in first.items()}}
    (path / "job.json").write_text(json.dumps(jobs))
    in_paddle("paddle_schedules", path)
    return path


@pytest.mark.parametrize("name", SCHEDULES)
def test_rates_are_paddles(name: str, folder: Path) -> None:
    program, rate, first = build(name)
    mine, paddles = run(program, rate, first), load(folder / "rates.npz")
    np.testing.assert_allclose(mine, paddles[f"theirs/{name}"], rtol=2e-6, atol=1e-8)
    np.testing.assert_allclose(mine, paddles[f"ours/{name}"], rtol=2e-6, atol=1e-8)
    assert len(set(mine)) > 2


@pytest.mark.parametrize("name", [n for n in SCHEDULES if n not in TWO_SIDED])
def test_paddles_program_here(name: str, folder: Path) -> None:
    _, _, first = build(name)
    theirs = fluid.Program.parse_from_string((folder / f"{name}.theirs.pb").read_bytes())
    last = theirs.global_block().ops[-1].output("Out")[0]
    np.testing.assert_allclose(run(theirs, last, first), load(folder / "rates.npz")[f"theirs/{name}"], rtol=2e-6)


@pytest.mark.parametrize("name", [n for n in SCHEDULES if n not in TWO_SIDED])
def test_operators_are_paddles(name: str, folder: Path) -> None:
    mine = build(name)[0]
    theirs = fluid.Program.parse_from_string((folder / f"{name}.theirs.pb").read_bytes())
    for ours, real in zip(mine.blocks, theirs.blocks, strict=True):
        assert [(op.type, op.attr("op_role")) for op in ours.ops] == [(op.type, op.attr("op_role")) for op in real.ops]
