"""`make` and its helper: targets explain themselves, arguments reach pytest, missing packages are named."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*command: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run something at the top of the checkout, outside any make around this test."""
    kept = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    return subprocess.run([str(part) for part in command], cwd=ROOT, capture_output=True, text=True, env=kept | env)


def test_make_alone_lists_the_targets() -> None:
    listed = [line.split()[1] for line in run("make").stdout.splitlines()]
    targets = "help demo lab docs vsix lite test test-more test-full fuzz test-gpu bench-gpu bench lint clean"
    assert listed == targets.split()


@pytest.mark.parametrize(
    ("args", "reach"),
    [("-R test_mul_op -V", "-R test_mul_op -v"), ("tests/op -x", " tests/op -x")],
)
def test_args_reach_pytest_in_both_spellings(args: str, reach: str) -> None:
    shown = run("make", "-n", "test", f"ARGS={args}").stdout
    assert reach in shown and "ruff" not in shown


@pytest.mark.parametrize("target", ["test", "test-more", "test-full"])
def test_a_test_runs_on_each_core_unless_one_says_otherwise(target: str) -> None:
    assert "-m pytest --numprocesses logical " in run("make", "-n", target).stdout
    assert "-m pytest --numprocesses 0 " in run("make", "-n", target, "WORKERS=0").stdout


def test_make_test_checks_style_and_types_and_ends_with_pytest() -> None:
    lines = [line for line in run("make", "-n", "test").stdout.splitlines() if line.startswith(".venv/bin/")]
    assert [line.split()[0] for line in lines[-3:]] == [".venv/bin/ruff", ".venv/bin/mypy", ".venv/bin/python"]


def test_make_test_needs_python_alone() -> None:
    shown = run("make", "-n", "-B", "test").stdout
    assert "--part test" in shown and "install --editable '.[data,test]'" in shown
    for needed in ("browser", "graphs", "compiler", "node", "paddlepaddle"):
        assert needed not in shown


def test_make_test_more_installs_the_rest() -> None:
    shown = run("make", "-n", "-B", "test-more").stdout
    assert "--part more" in shown and re.search(r"\.ci/debian \S+ browser graphs compiler", shown)
    assert "paddlepaddle==2.6.2" in shown and "npm ci" in shown


@pytest.mark.parametrize("fails", ["test", "test-more", "neither"])
def test_ci_runs_both_parts_shows_their_ends_and_fails_with_either(tmp_path: Path, fails: str) -> None:
    made = f'''for target; do :; done
echo "$target" >> {tmp_path}/made
echo "FLUIDNB_CI=$FLUIDNB_CI: 12 passed in $target"
[ "$target" != {fails} ]'''
    (tmp_path / "bin").mkdir()
    done = run("/bin/sh", ".ci/run", PATH=bin_folder(tmp_path / "bin", make=made) + os.pathsep + os.environ["PATH"])
    assert (tmp_path / "made").read_text().split() == ["test", "test-more"]
    ends = done.stdout.partition("make test ended with:")[2]
    assert "FLUIDNB_CI=1: 12 passed in test\n" in ends and "FLUIDNB_CI=1: 12 passed in test-more\n" in ends
    assert (done.returncode == 0) == (fails == "neither")


def bin_folder(folder: Path, **scripts: str) -> str:
    """A PATH that has only some scripts."""
    for name, script in scripts.items():
        (folder / name).write_text("#!/bin/sh\n" + script + "\n")
        (folder / name).chmod(0o755)
    return str(folder)


def test_a_user_is_told_the_one_command(tmp_path: Path) -> None:
    path = bin_folder(tmp_path, id="echo 1000", **{"apt-get": "echo no >&2; exit 1"})
    done = run("/bin/sh", ".ci/debian", sys.executable, "browser", PATH=path)
    assert done.returncode == 1
    assert "sudo apt-get install -y --no-install-recommends chromium fonts-dejavu-core" in done.stdout


def test_root_gets_them_installed(tmp_path: Path) -> None:
    path = bin_folder(tmp_path, id="echo 0", **{"apt-get": f'echo "$@" >> {tmp_path}/log'})
    done = run("/bin/sh", ".ci/debian", sys.executable, "browser", PATH=path)
    assert done.returncode == 0, done.stderr
    first, second = (tmp_path / "log").read_text().splitlines()
    assert first.startswith("update") and second.split()[-2:] == ["chromium", "fonts-dejavu-core"]


def test_what_is_there_is_not_asked_for(tmp_path: Path) -> None:
    path = bin_folder(tmp_path, chromium="true")
    assert run("/bin/sh", ".ci/debian", sys.executable, "browser", "venv", PATH=path).stdout == ""


def test_another_system_is_told_what_is_missing(tmp_path: Path) -> None:
    done = run("/bin/sh", ".ci/debian", sys.executable, "browser", PATH=bin_folder(tmp_path))
    assert done.returncode == 1 and "chromium" in done.stdout and "not Debian" in done.stderr


def test_an_old_python_is_refused(tmp_path: Path) -> None:
    path = bin_folder(tmp_path, python3='[ "$1" = --version ] && echo Python 3.9.2 || exit 1')
    done = run("/bin/sh", ".ci/debian", "python3", "venv", PATH=path)
    assert done.returncode == 1 and "fluidnb needs Python 3.11 or newer; 'python3' is Python 3.9.2" in done.stderr
