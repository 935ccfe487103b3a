"""Runs inside the environment of real PaddlePaddle 2.6.2, without fluidnb, as a job of `paddle_server.py`.

Builds a small model and saves it in every way that Paddle has: persistables each in a file and in one, an inference
model. Runs the inference model that fluidnb saved in FOLDER/ours, and loads the persistables of FOLDER/ours_vars and
FOLDER/ours_one. What it saw goes to FOLDER/paddle.npz.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import paddle
from paddle import static


def model() -> tuple[Any, Any, Any, Any]:
    """Two layers with Adam: main, startup, input, output."""
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        x = static.data("x", [-1, 3], "float32")
        out = static.nn.fc(static.nn.fc(x, 4, activation="relu"), 2)
        paddle.optimizer.Adam(0.1).minimize(paddle.mean(out))
    return main, startup, x, out


def main(folder: Path) -> None:
    """Save, load and run."""
    paddle.enable_static()
    exe = static.Executor(paddle.CPUPlace())
    program, startup, x, out = model()
    exe.run(startup)
    feed = {"x": np.load(folder / "x.npy")}
    exe.run(program, feed=feed, fetch_list=[out])
    static.io.save_vars(exe, str(folder / "vars"), program, predicate=static.io.is_persistable)
    static.io.save_vars(exe, str(folder / "one"), program, predicate=static.io.is_persistable, filename="all")
    static.save_inference_model(str(folder / "inference"), [x], [out], exe, program=program)
    seen = {f"value/{v.name}": np.array(static.global_scope().find_var(v.name).get_tensor())
            for v in program.list_vars() if static.io.is_persistable(v)}  # fmt: skip
    test = program.clone(for_test=True)._prune_with_input(["x"], [out])
    seen["out"] = exe.run(test, feed=feed, fetch_list=[out.name])[0]
    (folder / "main.pb").write_bytes(program.desc.serialize_to_string())
    (folder / "names.json").write_text(json.dumps([v.name for v in program.list_vars() if static.io.is_persistable(v)]))
    if (folder / "ours").exists():
        _read_ours(folder, exe, feed, seen)
    np.savez(folder / "paddle.npz", **{k.replace("/", "|"): v for k, v in seen.items()})


def _read_ours(folder: Path, exe: Any, feed: dict[str, Any], seen: dict[str, Any]) -> None:
    for name, options in (("ours_vars", {}), ("ours_one", {"filename": "all"})):
        with static.scope_guard(paddle.base.core.Scope()):
            program = static.Program.parse_from_string((folder / "ours.pb").read_bytes())
            persistable = static.io.is_persistable
            static.io.load_vars(exe, str(folder / name), program, predicate=persistable, **options)
            for v in program.list_vars():
                if static.io.is_persistable(v):
                    seen[f"{name}/{v.name}"] = np.array(static.global_scope().find_var(v.name).get_tensor())
    with static.scope_guard(paddle.base.core.Scope()):
        data = (folder / "ours" / "__model__").read_bytes()
        program = static.Program.parse_from_string(data)
        static.io.load_vars(exe, str(folder / "ours"), program, predicate=static.io.is_persistable)
        fetch = [op.input("X")[0] for op in program.global_block().ops if op.type == "fetch"]
        seen["ours"] = exe.run(program, feed=feed, fetch_list=fetch)[0]
