"""CUDA kernels are the same ones where bfloat16's package is not there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from fluidnb.op import all_ops
from fluidnb_kernels.cuda import sources

ROOT = Path(__file__).resolve().parents[2]
COUNT = """
import sys
sys.modules["ml_dtypes"] = None
from fluidnb.op import all_ops
from fluidnb_kernels.cuda import sources
all_ops()
print(sum(len(source.kernels) for source in sources if source.path.resolve().is_relative_to(sys.argv[1])))
"""


def test_every_kernel_is_listed() -> None:
    all_ops()
    ours = [source for source in sources if source.path.resolve().is_relative_to(ROOT)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(str(ROOT / part) for part in (".", "kernels", "magics"))}
    done = subprocess.run([sys.executable, "-c", COUNT, str(ROOT)], capture_output=True, text=True, env=env)
    assert ours[0].kernels, "a process that imported nothing else has them, too"
    assert done.stdout == f"{sum(len(source.kernels) for source in ours)}\n", done.stderr
