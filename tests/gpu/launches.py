"""Launches of kernels per second: operators on one number, with CUDA graphs, without, and by torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import fluidnb as fluid
from fluidnb.memory import flags
from tests.benchmarks.peers import fluidnb_peer
from tests.gpu import torch_side
from tests.gpu.models import resident
from tests.gpu.turns import Effort, turns, verdict

#: How much of torch's time a run with CUDA graphs may take at most.
GOAL = 0.3
#: How many operators there are, and how many for an emulator.
COUNT, FEW = 200, 12
_TORCH = "torch eager"


def tiny(place: fluid.CUDAPlace, graphs: bool, count: int) -> Callable[[], float]:
    """Operators on one number, one after the other.

    Args:
        place: the device.
        graphs: whether their kernels are launched as one graph.
        count: how many.

    Returns:
        A function that runs them and returns the result; whatever FLAGS_cuda_graphs is by then, it goes on as it began.
    """
    with fluid.fresh() as (main, _):
        feed, result = fluidnb_peer.tiny(fluid, count)
    exe, scope = fluid.Executor(place), fluid.Scope()
    feed = {name: resident(value, place) for name, value in feed.items()}

    def run() -> float:
        return float(exe.run(main, feed, [result], scope=scope)[0].item())

    before = flags.values["cuda_graphs"]
    fluid.set_flags({"FLAGS_cuda_graphs": graphs})
    try:
        for _ in range(3):  # the first binds, the second captures
            run()
    finally:
        fluid.set_flags({"FLAGS_cuda_graphs": before})
    return run


def measured(place: fluid.CUDAPlace, effort: Effort) -> list[dict[str, Any]]:
    """A row for each way.

    Args:
        place: the device.
        effort: how much is measured.

    Returns:
        Its title, the seconds of a run and the launches in a second, or why it is missing.
    """
    count = FEW if effort.small else COUNT
    runs = {f"fluidnb, {word} CUDA graphs": tiny(place, word == "with", count) for word in ("with", "without")}
    rows: list[dict[str, Any]] = []
    try:
        runs[_TORCH] = torch_side.tiny(count, effort.on_gpu)
    except torch_side.Missing as why:
        rows.append({"title": _TORCH, "missing": str(why)})
    for title, run in runs.items():
        found = run()
        if found != count // 2 + 1:
            raise AssertionError(f"{title}: {count} operators give {found}, and not {count // 2 + 1}")
    seconds = turns(runs, effort)
    made = [{"title": t, "operators": count, "seconds": s, "launches a second": count / s} for t, s in seconds.items()]
    return made + rows


def lines(rows: Sequence[dict[str, Any]], judged: bool) -> list[str]:
    """The table of launches.

    Args:
        rows: what was measured.
        judged: whether the times mean anything.
    """
    theirs = next((row["seconds"] for row in rows if row["title"] == _TORCH and "seconds" in row), None)
    made = [f"| {rows[0]['operators']} operators on one number | a run | launches a second | of torch eager |",
            "|---|---:|---:|---:|"]  # fmt: skip
    for row in rows:
        if "missing" in row:
            made.append(f"| {row['title']} | {row['missing']} | | |")
            continue
        seconds = row["seconds"]
        said = "" if theirs is None or row["title"] == _TORCH else f"{seconds / theirs:.2f}x"
        if said and row is rows[0]:
            said = f"{verdict(seconds / theirs, GOAL, judged)} (goal {GOAL}x)"
        made.append(f"| {row['title']} | {seconds * 1e6:,.1f} us | {row['launches a second']:,.0f} | {said} |")
    return made
