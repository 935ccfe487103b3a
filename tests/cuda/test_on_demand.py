"""Kernels of one file that several modules ask for, when those are imported one after another."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fluidnb_kernels import emulator

ROOT = Path(__file__).parents[2]
SCRIPT = """
import numpy as np
import fluidnb as fluid
x = fluid.layers.data("x", [2])
exe, feed = fluid.Executor(fluid.CUDAPlace(0)), {"x": np.zeros((1, 2), "float32")}
for layer in (fluid.layers.relu, fluid.layers.erf):
    print(exe.run(feed=feed, fetch_list=[layer(x)])[0].tolist())
"""


@pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())
def test_an_operator_that_is_imported_after_another_of_its_file() -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(str(ROOT / part) for part in (".", "kernels", "magics"))}
    env["FLAGS_cuda_backend"] = "emulator"
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=env)
    assert done.stdout.splitlines() == ["[[0.0, 0.0]]"] * 2, done.stderr
