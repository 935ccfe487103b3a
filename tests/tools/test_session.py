"""The tests' own plugin: what it refuses, what it repeats, how it resumes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools.resume import ROOT
from tests.tools.sampling import sample

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

CONFTEST = """
from pathlib import Path
from tests.tools.resume import Resume

def pytest_configure(config):
    config.pluginmanager.register(Resume(Path(__file__).with_name("list"), "some state"))
"""


def run(folder: Path, *options: str, **env: str) -> str:
    """The last line that a pytest of its own prints over the tests in a folder."""
    command = [sys.executable, "-m", "pytest", "-c", "/dev/null", "--rootdir", str(folder), *options, str(folder)]
    env = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"} | env
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=env)
    return done.stdout.strip().splitlines()[-1].strip("= ").split(" in ")[0]


def test_a_skip_fails_in_ci_unless_it_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(SKIPPING)
    assert run(tmp_path, "-p", "tests.tools.skips") == "2 skipped, 1 xfailed"
    assert run(tmp_path, "-p", "tests.tools.skips", FLUIDNB_CI="1") == "1 failed, 1 skipped, 1 xfailed"


def test_a_skipped_module_fails_in_ci(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text('import pytest\npytest.importorskip("no_such_module")\n')
    assert run(tmp_path, "-p", "tests.tools.skips") == "1 skipped"
    assert run(tmp_path, "-p", "tests.tools.skips", FLUIDNB_CI="1") == "1 error"


def test_a_full_run_resumes_where_it_failed(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(RESUMING)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    assert run(tmp_path, RUN="1") == "1 failed, 1 passed"
    assert (tmp_path / "list").read_text() == "some state\ntest_it.py::test_first\n"
    assert run(tmp_path, RUN="2") == "1 passed, 1 deselected"
    assert not (tmp_path / "list").exists()


def test_a_sample_keeps_order_and_repeats(request: pytest.FixtureRequest) -> None:
    chosen = sample(range(1000), 20)
    assert chosen == sorted(set(chosen)) == sample(range(1000), 20)
    assert len(chosen) == (1000 if request.config.getoption("--full") else 20)
    assert sample([1, 2], 20) == [1, 2]
