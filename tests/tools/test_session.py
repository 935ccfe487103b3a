"""The tests' own plugins: refused skips, repeated tests, resumed runs."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.tools import changes, sampling
from tests.tools.parts import BOTH, MORE, parts
from tests.tools.resume import ROOT
from tests.tools.sampling import sample, takes_all
from tests.tools.workers import unit

SKIPPING = """
import pytest

def test_browser():
    pytest.skip("no Chromium")

def test_gpu():
    pytest.skip("no CUDA device")

@pytest.mark.xfail(reason="known", strict=True)
def test_known():
    assert False
"""

RESUMING = """
import os

def test_first():
    assert os.environ["RUN"] == "1"  # may not run a second time

def test_second():
    assert os.environ["RUN"] == "2"
"""

SEEDED = """
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from tests.tools.sampling import SEED, sample

def test_it(worker_id):
    (Path(__file__).parent / worker_id).write_text(f"{SEED} {sample(range(1000), 3)}")
    assert "COLUMNS" not in os.environ
"""

DRAWING = """
import numpy as np
import pytest
import fluidnb as fluid

@pytest.mark.parametrize("n", [1, 2])
def test_draw(n):
    with fluid.fresh():
        x = fluid.layers.uniform_random([1])
        drawn = fluid.Executor(fluid.CPUPlace()).run(fetch_list=[x])[0].item(), np.random.rand()
    open(f"drawn-{n}", "a").write(f"{drawn}\\n")
"""

CONFTEST = """
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from tests.tools.resume import Resume
from tests.tools.workers import is_worker

def pytest_configure(config):
    if not is_worker(config):
        config.pluginmanager.register(Resume(Path(__file__).with_name("list"), "some state"))
"""

WORKERS = pytest.mark.parametrize("how", [(), ("-n", "1")], ids=["alone", "a worker"])


def run(folder: Path, plugin: str, *options: str, paths: Sequence[str] = (".",), **env: str) -> list[str]:
    """The output of pytest in a new process, for the tests in a folder, with one plugin of this project."""
    command = [sys.executable, "-m", "pytest", "-c", "/dev/null", "--rootdir", str(folder), "-p", "xdist",
               "-p", f"tests.tools.{plugin}", *options, *paths]  # fmt: skip
    env = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | env
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=env)
    return done.stdout.strip().splitlines()


def outcome(lines: list[str]) -> str:
    """The counts in the last line."""
    return lines[-1].strip("= ").split(" in ")[0]


def test_a_skip_is_one_outside_ci(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(SKIPPING)
    (tmp_path / "test_module.py").write_text('import pytest\npytest.importorskip("no_such_module")\n')
    assert outcome(run(tmp_path, "skips")) == "3 skipped, 1 xfailed"


@WORKERS
def test_a_skip_fails_in_ci_unless_it_is_allowed(tmp_path: Path, how: tuple[str, ...]) -> None:
    (tmp_path / "test_it.py").write_text(SKIPPING)
    assert outcome(run(tmp_path, "skips", *how, FLUIDNB_CI="1")) == "1 failed, 1 skipped, 1 xfailed"


@WORKERS
def test_a_skipped_module_fails_in_ci(tmp_path: Path, how: tuple[str, ...]) -> None:
    (tmp_path / "test_module.py").write_text('import pytest\npytest.importorskip("no_such_module")\n')
    assert outcome(run(tmp_path, "skips", *how, FLUIDNB_CI="1")) == "1 error"


@WORKERS
def test_a_full_run_resumes_where_it_failed(tmp_path: Path, how: tuple[str, ...]) -> None:
    (tmp_path / "test_it.py").write_text(RESUMING)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    assert outcome(run(tmp_path, "workers", *how, RUN="1")) == "1 failed, 1 passed"
    assert (tmp_path / "list").read_text() == "some state\ntest_it.py::test_first\n"
    assert outcome(run(tmp_path, "workers", *how, RUN="2")).split(",")[0] == "1 passed"
    assert not (tmp_path / "list").exists()


def test_a_test_draws_the_same_numbers_in_every_run(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(DRAWING)
    for paths in (["test_it.py"], ["test_it.py::test_draw[2]"]):
        assert "passed" in outcome(run(tmp_path, "seeds", paths=paths))
    first, second = (tmp_path / "drawn-2").read_text().splitlines()
    assert first == second != (tmp_path / "drawn-1").read_text().strip()


def test_names_are_regular_expressions(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(RESUMING)
    lines = run(tmp_path, "names", "-R", "test_it.*_(first|third)$", "--collect-only", "-q")
    assert [line for line in lines if "::" in line] == ["test_it.py::test_first"]


def test_workers_draw_with_the_seed_that_is_printed_and_know_no_terminal(tmp_path: Path) -> None:
    for name in ("test_one.py", "test_two.py", "test_three.py", "test_four.py"):
        (tmp_path / name).write_text(SEEDED)
    more = ("-p", "tests.tools.workers", "-p", "_hypothesis_pytestplugin", "-n", "2")
    shown = run(tmp_path, "sampling", *more)
    assert outcome(shown) == "4 passed"
    printed = re.findall(r"FLUIDNB_SEED=(\d+)", "\n".join(shown))
    drawn = [(tmp_path / name).read_text() for name in ("gw0", "gw1")]
    assert len(printed) == 1 and drawn[0] == drawn[1] and drawn[0].split()[0] == printed[0]


PARTED = """
import pytest

def test_quick():
    pass

@pytest.mark.slow
def test_slow():
    pass
"""


@WORKERS
@pytest.mark.parametrize(("part", "names"), [
    ("test", ["op/test_it.py::test_quick", "ops/test_it.py::test_quick"]),
    ("more", ["cuda/test_it.py::test_quick", "cuda/test_it.py::test_slow", "op/test_it.py::test_slow",
              "ops/test_it.py::test_quick", "ops/test_it.py::test_slow"]),
])  # fmt: skip
def test_each_test_runs_in_its_part(tmp_path: Path, part: str, names: list[str], how: tuple[str, ...]) -> None:
    for folder in ("op", "ops", "cuda"):
        (tmp_path / "tests" / folder).mkdir(parents=True)
        (tmp_path / "tests" / folder / "test_it.py").write_text(PARTED)
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = tests\nmarkers = slow\n")
    options = ("-c", "pytest.ini", "--import-mode=importlib", "-rA", *how, f"--part={part}")
    lines = run(tmp_path, "parts", *options, paths=())
    assert sorted(line.split("tests/")[1] for line in lines if line.startswith("PASSED")) == names
    named = run(tmp_path, "parts", *options, paths=("tests/cuda/test_it.py",))
    assert outcome(named) == "2 passed"


def test_what_the_table_of_parts_names_is_there() -> None:
    assert [row for row in [*MORE, *BOTH] if not (ROOT / row).exists()] == []
    assert parts("kernels/fluidnb_kernels/rows/device_rows.py") == parts("tests/dap/test_server.py") == ("more",)


SAMPLED = """
import pytest
from tests.tools.sampling import sample

@pytest.mark.parametrize("case", sample([f"case {i}" for i in range(100)], 3))
def test_cases(case):
    pass

@pytest.mark.full
def test_full():
    pass
"""


@WORKERS
@pytest.mark.parametrize(("options", "paths", "count"), [
    ((), (".",), 3),
    ((), ("test_it.py",), 101),
    (("-k", "test_cases"), (".",), 100),
    (("--cases=sampled",), ("test_it.py",), 3),
    (("--cases=all",), (".",), 101),
])  # fmt: skip
def test_all_cases_run_where_a_file_or_a_name_is_given(
    tmp_path: Path, options: tuple[str, ...], paths: tuple[str, ...], count: int, how: tuple[str, ...]
) -> None:
    (tmp_path / "test_it.py").write_text(SAMPLED)
    lines = run(tmp_path, "sampling", *options, *how, paths=paths)
    assert outcome(lines).split(",")[0] == f"{count} passed"


def test_two_runs_sample_the_same_and_a_new_case_moves_one_at_most(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(SAMPLED)
    first = run(tmp_path, "sampling", "--collect-only", "-q")[:3]
    assert first == run(tmp_path, "sampling", "--collect-only", "-q")[:3] and all("::test_cases" in x for x in first)
    (tmp_path / "test_it.py").write_text(SAMPLED.replace("range(100)", "range(101)"))
    assert len(set(first) & set(run(tmp_path, "sampling", "--collect-only", "-q")[:3])) >= 2


def test_a_change_takes_its_own_operators_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*arguments: str) -> None:
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=b", *arguments], cwd=tmp_path, check=True)

    git("init", "-q", "-b", "main")
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text("")
        git("add", ".")
        git("commit", "-q", "-m", name)
    monkeypatch.delenv("FLUIDNB_BASE", raising=False)
    monkeypatch.setattr(changes, "ROOT", tmp_path)
    for function in (changes.base, changes.files):
        function.cache_clear()
    assert changes.files() == {tmp_path / "two.py"}  # on the main branch: what the last commit changed
    git("switch", "-q", "-c", "mine")
    (tmp_path / "one.py").write_text("changed\n")
    (tmp_path / "new.py").write_text("")
    git("commit", "-q", "-a", "-m", "one")
    for function in (changes.base, changes.files):
        function.cache_clear()
    assert changes.files() == {tmp_path / "one.py", tmp_path / "new.py"}
    for function in (changes.base, changes.files):
        function.cache_clear()


def test_a_change_takes_no_test_that_make_test_full_installs_for(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    item: pytest.Item = request.node
    told: list[pytest.Item] = []
    item.add_marker("full")
    monkeypatch.setattr(sampling, "_all", False)
    monkeypatch.setattr(changes, "files", lambda: frozenset([item.path]))
    hook = SimpleNamespace(pytest_deselected=lambda items: told.extend(items))
    config: Any = SimpleNamespace(hook=hook)
    sampling.pytest_collection_modifyitems(config, items := [item])
    assert items == [] and told == [item]


def test_changed_files_name_their_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    math = ROOT / "kernels" / "fluidnb_kernels" / "math"
    monkeypatch.setattr(changes, "files", lambda: frozenset([math / "clip.py", math / "dot.py"]))
    changes.operators.cache_clear()
    assert {"clip", "dot"} <= changes.operators() and "relu" not in changes.operators()
    assert changes.mentions("clip/f32") and changes.mentions("dot_grad") and not changes.mentions("clipping")
    cases = [f"clip/{i}" for i in range(30)] + [f"relu/{i}" for i in range(30)]
    assert sample(cases, 2)[:30] == cases[:30]
    changes.operators.cache_clear()


@WORKERS
@pytest.mark.parametrize(("options", "limit"), [((), None), (("--full",), 3600), (("--full", "--timeout=60"), 60)])
def test_a_test_of_a_full_run_may_take_an_hour(
    tmp_path: Path, options: tuple[str, ...], limit: int | None, how: tuple[str, ...]
) -> None:
    (tmp_path / "test_it.py").write_text(f"def test_limit(request):\n    assert request.config._env_timeout == {limit}")
    plugins = ["-p", "tests.tools.sampling", "-p", "_hypothesis_pytestplugin", "-p", "pytest_timeout"]
    lines = run(tmp_path, "properties", *plugins, *options, *how)
    assert outcome(lines).split(",")[0] == "1 passed"


def test_a_file_stays_together_and_so_does_the_folder_of_the_browser() -> None:
    files = ["tests/op/test_rng.py", "tests/browser", "tests/browser"]
    names = ["op/test_rng.py::TestA::test", "browser/test_a.py::test", "browser/test_b.py::test[a::b]"]
    assert [unit(f"tests/{name}") for name in names] == files


def test_a_sample_keeps_order_and_repeats() -> None:
    chosen = sample(range(1000), 20)
    assert chosen == sorted(set(chosen)) == sample(range(1000), 20)
    assert len(chosen) == (1000 if takes_all(__file__) else 20)
    assert sample([1, 2], 20) == [1, 2]
