"""Runs inside the environment of real PaddlePaddle 2.6.2, without fluidnb, as a job of `paddle_server.py`.

For every schedule of `schedules.py` it writes NAME.theirs.pb, Paddle's own program, and runs Paddle's program as well
as NAME.pb, the program that lies in FOLDER (job.json has the names of the rates and of the counters' first values).
Rates of every step go to rates.npz as "theirs/NAME" and "ours/NAME".
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import paddle
from paddle import static
from schedules import SCHEDULES, STEPS, make


def rates(program: Any, scope: Any, fetch: str) -> np.ndarray:
    """The rate of every step."""
    exe = static.Executor(paddle.CPUPlace())
    return np.concatenate([exe.run(program, fetch_list=[fetch], scope=scope)[0].ravel() for _ in range(STEPS)])


def theirs(schedule: Any, file: Path) -> np.ndarray:
    """Build and run a schedule with Paddle's own means."""
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup), paddle.utils.unique_name.guard():
        rate = make(paddle.optimizer.lr, schedule)
    file.write_bytes(main.desc.serialize_to_string())
    scope = paddle.base.core.Scope()
    static.Executor(paddle.CPUPlace()).run(startup, scope=scope)
    return rates(main, scope, rate.name)


def ours(file: Path, job: dict[str, Any]) -> np.ndarray:
    """Run a program that was built elsewhere."""
    scope = paddle.base.core.Scope()
    for name, (dtype, value) in job["first"].items():
        scope.var(name).get_tensor().set(np.array(value, dtype), paddle.CPUPlace())
    return rates(static.Program.parse_from_string(file.read_bytes()), scope, job["rate"])


def main(folder: Path) -> None:
    """All schedules, both ways."""
    paddle.enable_static()
    jobs = json.loads((folder / "job.json").read_text())
    out = {}
    for name, schedule in SCHEDULES.items():
        out[f"theirs/{name}"] = theirs(schedule, folder / f"{name}.theirs.pb")
        out[f"ours/{name}"] = ours(folder / f"{name}.pb", jobs[name])
    np.savez(folder / "rates.npz", **out)
