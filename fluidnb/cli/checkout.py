"""Files that only a checkout has (tests, benchmarks, notebooks), and programs that use them."""

import os
import subprocess
import sys
from pathlib import Path

import fluidnb
from fluidnb.errors import FluidError


def root(needed: str) -> Path:
    """The checkout that fluidnb was installed from, with the ``needed`` file or folder in it."""
    folder = Path(fluidnb.__file__).parents[1]
    if (folder / needed).exists() and (folder / "pyproject.toml").exists():
        return folder
    raise FluidError(
        f"There is no {needed}/ beside this fluidnb: it was installed as a package, which is without it.",
        expected=f"a checkout, with {needed}/ in it", received=f"fluidnb in {Path(fluidnb.__file__).parent}",
        hint="clone the project, and in the clone: pip install --editable '.[data,notebook,test,test-more]'",
    )  # fmt: skip


def start(module: str, *arguments: str, folder: Path | None = None) -> int:
    """Runs another module in a separate Python process and waits for it.

    Args:
        folder: where it runs; here by default.
    """
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(command, cwd=folder, env={**os.environ, "PYTHONUNBUFFERED": "1"}) as process:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:  # it has got the same Ctrl-C, and ends in its own way
                continue
