"""The wheel has the three packages with their data, and nothing else."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ["fluidnb", "kernels/fluidnb_kernels", "magics/fluidnb_magics"]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """What is in the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("fluidnb-*-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as file:
        return set(file.namelist())


def test_every_file_of_the_packages_is_in_it(names: set[str]) -> None:
    done = subprocess.run(["git", "ls-files", *PACKAGES], cwd=ROOT, capture_output=True, text=True, check=True)
    files = {line for line in done.stdout.splitlines() if (ROOT / line).exists()}
    assert {line.removeprefix("kernels/").removeprefix("magics/") for line in files} <= names
    assert {"fluidnb/proto/framework.desc", "fluidnb/proto/framework.proto", "fluidnb_magics/py.typed"} <= names


def test_nothing_else_is_in_it(names: set[str]) -> None:
    assert {name.partition("/")[0] for name in names} == {Path(p).name for p in PACKAGES} | {"fluidnb-0.1.0.dist-info"}
    assert not [name for name in names if "__pycache__" in name]
