"""Hands jobs to real PaddlePaddle 2.6.2 and 3.3.1, each in a separate environment: files in, files out.

The interpreter starts with the first job and has a child for each (`paddle_server.py`): importing Paddle takes seconds.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
VENVS = Path(os.environ.get("FLUIDNB_VENVS") or ROOT / ".venvs")
#: Version -> its interpreter.
PYTHONS = {v: VENVS / folder / "bin" / "python" for v, folder in (("2.6.2", "paddle"), ("3.3.1", "paddle3"))}

Arrays = dict[str, np.ndarray]


@dataclass
class Run:
    """The results of a job of Paddle.

    Args:
        program: the training program's bytes.
        startup: the bytes of the startup program, where Paddle built it.
        params: persistable variables before the first step, by name.
        losses: the first fetch of every step.
        after: persistable variables after the last step, by name.
        fetch: names of what was fetched.
    """

    program: bytes
    startup: bytes | None
    params: Arrays
    losses: np.ndarray
    after: Arrays
    fetch: list[str]


def require_paddle(*versions: str) -> None:
    """Skip the test where there is no real Paddle of these versions, by default 2.6.2; in CI that is a failure."""
    for version in versions or ("2.6.2",):
        if not PYTHONS[version].exists():
            pytest.skip(f"real Paddle {version} needs Python 3.11 or 3.12 (`make test-more` sets it up in {VENVS})")


@cache
def _server(classic: bool, version: str) -> subprocess.Popen[str]:
    """A process that has imported Paddle and does jobs until this one ends."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    env |= {"GLOG_minloglevel": "3", "OMP_NUM_THREADS": "1"}
    if classic:
        env["FLAGS_control_flow_use_new_executor"] = "0"  # the same for the blocks inside
    command = [str(PYTHONS[version]), "-W", "ignore", str(Path(__file__).with_name("paddle_server.py"))]
    server = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(server.communicate)  # which also closes its input: no more jobs
    assert server.stdout is not None
    assert any(line == "ready\n" for line in server.stdout), "Paddle cannot be imported"
    return server


def in_paddle(
    module: str, folder: Path, *arguments: Any, classic: bool = False, may_die: bool = False, version: str = "2.6.2"
) -> str:  # fmt: skip
    """Call the `main` of a module beside this one, with a folder, where Paddle is.

    Args:
        module: its name.
        folder: what `main` gets, and where it runs.
        *arguments: what else `main` gets.
        classic: whether the blocks inside a program run in the executor of Fluid's time.
        may_die: whether it is no failure when Paddle crashes.
        version: of Paddle.

    Returns:
        What it printed.
    """
    server = _server(classic, version)
    assert server.stdin is not None and server.stdout is not None
    server.stdin.write(json.dumps([module, str(folder), *arguments]) + "\n")
    server.stdin.flush()
    status = server.stdout.readline().strip()
    assert status == "0" or may_die, f"Paddle failed ({status}):\n{(folder / 'errors.txt').read_text()[-3000:]}"
    return (folder / "said.txt").read_text()


def train_in_paddle(
    folder: Path, program: bytes, params: Arrays, feeds: Arrays, fetch: list[str], classic: bool = False
) -> Run:
    """Train a program of ours in Paddle.

    Args:
        folder: an empty folder for the files.
        program: the training program's bytes.
        params: its persistable variables before the first step.
        feeds: arrays named "step/variable".
        fetch: names to fetch in every step, the loss first.
        classic: whether to use the executor of Fluid's time, which knows delete_var.

    Returns:
        The losses and the parameters after the last step.
    """
    (folder / "main.pb").write_bytes(program)
    np.savez(folder / "params.npz", **params)
    return _run(folder, {"fetch": fetch, "classic": classic}, feeds)


def build_in_paddle(folder: Path, spec: Mapping[str, Any], feeds: Arrays) -> Run:
    """Let Paddle build, differentiate, initialise and train a model.

    Args:
        folder: an empty folder for the files.
        spec: a description as in `tests.paddle.spec`.
        feeds: arrays named "step/variable".

    Returns:
        Its programs, initial parameters, losses, and the parameters after the last step.
    """
    return _run(folder, {"build": spec}, feeds)


def _run(folder: Path, job: dict[str, Any], feeds: Arrays) -> Run:
    (folder / "job.json").write_text(json.dumps(job))
    np.savez(folder / "feeds.npz", **feeds)
    said = json.loads(in_paddle("paddle_side", folder, classic=job.get("classic", False)).splitlines()[-1])
    assert said["paddle"] == "2.6.2"
    out = load(folder / "out.npz")
    steps = len({name.partition("/")[0] for name in feeds})
    startup = folder / "startup.pb"
    return Run(
        (folder / "main.pb").read_bytes(),
        startup.read_bytes() if startup.exists() else None,
        load(folder / "params.npz"),
        np.array([out[f"{step}/{said['fetch'][0]}"].item() for step in range(steps)]),
        {name.removeprefix("param/"): array for name, array in out.items() if name.startswith("param/")},
        said["fetch"],
    )


def load(path: Path) -> Arrays:
    """The arrays of an .npz file, by name."""
    with np.load(path) as file:
        return dict(file)
