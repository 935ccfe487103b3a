"""Hands jobs to real PaddlePaddle 2.6.2, in an interpreter and environment of its own: files in, files out."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
PYTHON = Path(os.environ.get("FLUIDNB_VENVS") or ROOT / ".venvs") / "paddle" / "bin" / "python"

Arrays = dict[str, np.ndarray]


@dataclass
class Run:
    """What came back from Paddle.

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


def require_paddle() -> None:
    """Skip the test where there is no real Paddle; in CI that is a failure."""
    if not PYTHON.exists():
        pytest.skip(f"real Paddle 2.6.2 needs Python 3.11 or 3.12 (`make test` sets it up in {PYTHON.parents[1]})")


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
    script = Path(__file__).with_name("paddle_side.py")
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    env |= {"GLOG_minloglevel": "3", "OMP_NUM_THREADS": "1"}
    if job.get("classic"):
        env["FLAGS_control_flow_use_new_executor"] = "0"  # the same for the blocks inside
    command = [str(PYTHON), "-W", "ignore", str(script), str(folder)]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, f"Paddle failed:\n{done.stderr[-3000:]}"
    said = json.loads(done.stdout.strip().splitlines()[-1])
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
