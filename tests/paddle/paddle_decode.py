"""Runs inside the environment of real PaddlePaddle 2.6.2, without fluidnb, as a job of `paddle_server.py`.

FOLDER holds `model`, an inference model that was saved elsewhere, and feeds.npz and lengths.json: arrays and lengths of
their sequences by name. What Paddle computes goes to out.npz and lods.json, by the number of the target.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import paddle
from paddle import static


def main(folder: Path) -> None:
    """Load the model and run it once."""
    paddle.enable_static()
    place = paddle.CPUPlace()
    exe = static.Executor(place)
    program = static.Program.parse_from_string((folder / "model" / "__model__").read_bytes())
    static.io.load_vars(exe, str(folder / "model"), program, predicate=static.io.is_persistable)
    feed = {}
    lengths = json.loads((folder / "lengths.json").read_text())
    for name, array in np.load(folder / "feeds.npz").items():
        feed[name] = paddle.base.core.LoDTensor()
        feed[name].set(array, place)
        feed[name].set_recursive_sequence_lengths(lengths[name])
    fetch = [op.input("X")[0] for op in program.global_block().ops if op.type == "fetch"]
    found = exe.run(program, feed=feed, fetch_list=fetch, return_numpy=False)
    np.savez(folder / "out.npz", **{str(k): np.array(tensor) for k, tensor in enumerate(found)})
    (folder / "lods.json").write_text(json.dumps([tensor.lod() for tensor in found]))
