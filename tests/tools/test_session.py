"""The tests' own plugin: what it refuses, what it repeats, how it resumes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools.resume import ROOT
from tests.tools.sampling import sample
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
from tests.tools.sampling import SEED, sample

def test_it(worker_id):
    (Path(__file__).parent / worker_id).write_text(f"{SEED} {sample(range(1000), 3)}")
    assert "COLUMNS" not in os.environ
"""

CONFTEST = """
from pathlib import Path
from tests.tools.resume import Resume
from tests.tools.workers import is_worker

def pytest_configure(config):
    if not is_worker(config):
        config.pluginmanager.register(Resume(Path(__file__).with_name("list"), "some state"))
"""

WORKERS = pytest.mark.parametrize("how", [(), ("-n", "1")], ids=["alone", "a worker"])


def run(folder: Path, plugin: str, *options: str, **env: str) -> list[str]:
    """What a pytest of its own prints over the tests in a folder, with one plugin of ours."""
    command = [sys.executable, "-m", "pytest", "-c", "/dev/null", "--rootdir", str(folder), "-p", "xdist",
               "-p", f"tests.tools.{plugin}", *options, str(folder)]  # fmt: skip
    env = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | env
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=env)
    return done.stdout.strip().splitlines()


def outcome(lines: list[str]) -> str:
    """What the last line tells."""
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


def test_a_file_stays_together_and_so_does_the_folder_of_the_browser() -> None:
    files = ["tests/op/test_rng.py", "tests/browser", "tests/browser"]
    names = ["op/test_rng.py::TestA::test", "browser/test_a.py::test", "browser/test_b.py::test[a::b]"]
    assert [unit(f"tests/{name}") for name in names] == files


def test_a_sample_keeps_order_and_repeats(request: pytest.FixtureRequest) -> None:
    chosen = sample(range(1000), 20)
    assert chosen == sorted(set(chosen)) == sample(range(1000), 20)
    assert len(chosen) == (1000 if request.config.getoption("--full") else 20)
    assert sample([1, 2], 20) == [1, 2]
