"""Runs inside the environment of real PaddlePaddle 2.6.2, without fluidnb, as a job of `paddle_server.py`.

FOLDER holds cases.json, a list of {"fetch": [names], "lod": {name: offsets}}, and for each its program N.pb and feeds
N.npz. For each, from FIRST on, N.lod and N.out.npz or N.error are written. A case that kills the process leaves none.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
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
                feed = {name: tensor(array, case["lod"].get(name)) for name, array in file.items()}
            scope = paddle.base.core.Scope()
            got = exe.run(program, feed=feed, fetch_list=case["fetch"], scope=scope, return_numpy=False)
            (folder / f"{n}.lod").write_text(json.dumps([t.lod() for t in got]))
            np.savez(folder / f"{n}.out.npz", **{str(i): np.array(t) for i, t in enumerate(got)})
        except Exception as e:  # noqa: BLE001  what Paddle refuses is a result too
            (folder / f"{n}.error").write_text(f"{type(e).__name__}: {e}")


def tensor(array: np.ndarray, lod: list[list[int]] | None) -> paddle.base.core.LoDTensor:
    """An array as Paddle's tensor, with the offsets of its sequences."""
    made = paddle.base.core.LoDTensor()
    made.set(array, paddle.CPUPlace())
    if lod:
        made.set_lod(lod)
    return made
