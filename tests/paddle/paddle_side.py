"""Runs inside the environment of real PaddlePaddle 2.6.2, without fluidnb, as a job of `paddle_server.py`.

FOLDER holds job.json (see `main`), feeds.npz ("step/variable") and, for a program that is given, main.pb and params.npz
(the persistable variables). Written beside them: out.npz ("step/fetch" and "param/variable") and, for a program that is
built here, main.pb, startup.pb and params.npz.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import paddle
from paddle import static

Arrays = dict[str, np.ndarray]


def build(spec: dict[str, Any], folder: Path) -> tuple[Any, list[str]]:
    """Build, differentiate and initialise the model that `tests.paddle.spec` describes, with Paddle's own means.

    Args:
        spec: the description.
        folder: gets main.pb, startup.pb and params.npz.

    Returns:
        The main program and the names to fetch.
    """
    main, startup = static.Program(), static.Program()
    startup.random_seed = main.random_seed = spec["seed"]
    with static.program_guard(main, startup):
        x = static.data("x", [-1, spec["width"]], "float32")
        labels = spec["loss"] == "cross_entropy"
        y = static.data("y", [-1, 1], "int64" if labels else "float32")
        h = x
        for size, act in spec["layers"]:
            h = static.nn.fc(h, size, activation=act)
        cost = _append("cross_entropy", {"X": h, "Label": y}, "Y") if labels else _square_error(h, y)
        loss = _append("mean", {"X": cost}, "Out")
        optimizer(spec).minimize(loss)
    (folder / "main.pb").write_bytes(main.desc.serialize_to_string())
    (folder / "startup.pb").write_bytes(startup.desc.serialize_to_string())
    scope = paddle.base.core.Scope()
    static.Executor(paddle.CPUPlace()).run(startup, scope=scope)
    np.savez(folder / "params.npz", **persistables(main, scope))
    return main, [loss.name]


def _append(kind: str, inputs: dict[str, Any], slot: str) -> Any:
    """Append one operator of Fluid that Paddle's own layers no longer use."""
    block = static.default_main_program().current_block()
    out = block.create_var(name=paddle.utils.unique_name.generate(kind), dtype="float32")
    block.append_op(type=kind, inputs=inputs, outputs={slot: out})
    return out


def _square_error(h: Any, y: Any) -> Any:
    difference = _append("elementwise_sub", {"X": h, "Y": y}, "Out")
    return _append("square", {"X": difference}, "Out")


def optimizer(spec: dict[str, Any]) -> Any:
    """Paddle's optimizer for a description, with its regularizer and gradient clip."""
    decay = paddle.regularizer.L2Decay(spec["l2"]) if spec["l2"] else None
    clip = paddle.nn.ClipGradByGlobalNorm(spec["clip"]) if spec["clip"] else None
    more = {"weight_decay": decay, "grad_clip": clip}
    if spec["optimizer"] == "momentum":
        return paddle.optimizer.Momentum(spec["rate"], 0.9, use_nesterov=spec["nesterov"], **more)
    return {"sgd": paddle.optimizer.SGD, "adam": paddle.optimizer.Adam}[spec["optimizer"]](spec["rate"], **more)


def persistables(program: Any, scope: Any) -> Arrays:
    """The persistable variables of a program that a scope holds, by name."""
    names = {v.name for v in program.list_vars() if v.persistable} - {"feed", "fetch"}
    found = {name: scope.find_var(name) for name in sorted(names)}
    return {name: np.array(var.get_tensor()) for name, var in found.items() if var is not None}


def run_classic(exe: Any, program: Any, feed: Arrays, fetch: list[str], scope: Any) -> list[Any]:
    """Run a program as Fluid did, operator by operator: the later executor crashes on delete_var."""
    full = paddle.base.executor._add_feed_fetch_ops(program, feed, fetch, "feed", "fetch")
    exe._feed_data(full, feed, "feed", scope)
    exe._default_executor.run(full.desc, scope, 0, True, True, fetch)
    return [np.array(paddle.base.core.get_fetch_variable(scope, "fetch", i)) for i in range(len(fetch))]


def train(program: Any, params: Arrays, feeds: Arrays, fetch: list[str], classic: bool = False) -> Arrays:
    """Run a program once for each step of the feeds.

    Args:
        program: a training program.
        params: its persistable variables before the first step.
        feeds: arrays named "step/variable".
        fetch: names to fetch in every step.
        classic: whether to use the executor of Fluid's time.

    Returns:
        Arrays named "step/fetch", and "param/variable" after the last step.
    """
    place = paddle.CPUPlace()
    scope, exe = paddle.base.core.Scope(), static.Executor(place)
    for name, array in params.items():
        scope.var(name).get_tensor().set(array, place)
    out: Arrays = {}
    for step in sorted({int(key.partition("/")[0]) for key in feeds}):
        feed = {key.partition("/")[2]: array for key, array in feeds.items() if key.startswith(f"{step}/")}
        if classic:
            values = run_classic(exe, program, feed, fetch, scope)
        else:
            values = exe.run(program, feed=feed, fetch_list=fetch, scope=scope)
        for name, value in zip(fetch, values, strict=True):
            out[f"{step}/{name}"] = value
    return out | {f"param/{name}": array for name, array in persistables(program, scope).items()}


def main(folder: Path) -> None:
    """Do the job of a folder: {"build": spec} builds and trains, {"fetch": [names]} trains the program given.

    With {"classic": true} the executor of Fluid's time runs it.
    """
    paddle.enable_static()
    job = json.loads((folder / "job.json").read_text())
    if "build" in job:
        program, fetch = build(job["build"], folder)
    else:
        program, fetch = static.Program.parse_from_string((folder / "main.pb").read_bytes()), job["fetch"]
    with np.load(folder / "params.npz") as params, np.load(folder / "feeds.npz") as feeds:
        out = train(program, dict(params), dict(feeds), fetch, job.get("classic", False))
    np.savez(folder / "out.npz", **out)
    print(json.dumps({"fetch": fetch, "paddle": paddle.__version__}))
