"""Runs inside the environment of real PaddlePaddle 2.6.2:  python paddle_sweep.py FOLDER FIRST

FOLDER holds cases.json, a list of {"fetch": [names]}, and for each its program N.pb and feeds N.npz. For each, from
FIRST on, N.out.npz or N.error is written. A case that kills the process leaves neither.
"""

from __future__ import annotations

import json
import sys
import zlib  # noqa: F401  (paddle breaks zlib when it is imported first)
from pathlib import Path

import numpy as np
import numpy.random  # noqa: F401  (for the same reason)
import paddle
from paddle import static


def main(folder: Path, first: int) -> None:
    """Run the cases of a folder."""
    paddle.enable_static()
    exe = static.Executor(paddle.CPUPlace())
    for n, case in list(enumerate(json.loads((folder / "cases.json").read_text())))[first:]:
        try:
            program = static.Program.parse_from_string((folder / f"{n}.pb").read_bytes())
            with np.load(folder / f"{n}.npz") as file:
                feed = dict(file)
            got = exe.run(program, feed=feed, fetch_list=case["fetch"], scope=paddle.base.core.Scope())
            np.savez(folder / f"{n}.out.npz", **{str(i): a for i, a in enumerate(got)})
        except Exception as e:  # noqa: BLE001  what Paddle refuses is a result too
            (folder / f"{n}.error").write_text(f"{type(e).__name__}: {e}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
