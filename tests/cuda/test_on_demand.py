"""Kernels of one file that several modules ask for, when those are imported one after another."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = """
import numpy as np
from fluidnb.op import Binder, Clock, OpDesc, check_desc, get_op
from fluidnb.runtime import Scope
from fluidnb.runtime.compile.lowering import LoweredOp
from fluidnb.values import LoDTensor
from tests.cuda.twins import OnDevice

for type in ("relu", "gelu"):
    desc, scope = OpDesc(type, {"X": ["X"]}, {"Out": ["Out"]}, {}), Scope()
    check_desc(get_op(type), desc)
    scope.var("X").value = LoDTensor(np.zeros((1, 2), "float32"))
    calls = Binder(LoweredOp(desc, 0, 0), OnDevice(Clock(1)), scope).bind()
    print([function.source.path.name for function, *_ in calls])
"""


def test_an_operator_that_is_imported_after_another_of_its_file() -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(str(ROOT / part) for part in (".", "kernels", "magics"))}
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=env)
    assert done.stdout.splitlines() == ["['activation.cu']"] * 2, done.stderr
