"""The table of a benchmark run, and the file that keeps it."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.driver import Result
from tests.benchmarks.works import WORKS, Goal, Work


def ratio(work: Work, results: Sequence[Result]) -> float | None:
    """fluidnb's time as a part of what its goal is measured by; None where one of the two is missing.

    Args:
        work: with its goal.
        results: of all peers.

    Returns:
        The ratio, or fluidnb's own time for a goal without a peer.

    Example:
        >>> ratio(WORKS["a"], [Result("fluidnb", cpu=[30.0]), Result("torch", cpu=[150.0])])
        0.2
    """
    values = {result.peer: result.value for result in results}
    mine, theirs = values.get("fluidnb"), values.get(work.goal.peer) if work.goal.peer else 1.0
    return None if mine is None or theirs is None else mine / theirs


def memory_ratio(work: Work, results: Sequence[Result]) -> float | None:
    """fluidnb's peak memory as a part of what its memory goal is measured by; None where one of the two is missing.

    Example:
        >>> memory_ratio(WORKS["d"], [Result("fluidnb", memory=60.0), Result("paddle", memory=300.0)])
        0.2
    """
    values = {result.peer: result.memory for result in results}
    mine, theirs = values.get("fluidnb"), values.get(work.memory.peer or "") if work.memory else None
    return mine / theirs if mine and theirs else None


def native_ratio(work: Work, results: Sequence[Result]) -> float | None:
    """The time of native code as a part of what its goal is measured by; None where one of the two is missing.

    Example:
        >>> native_ratio(WORKS["g"], [Result("native", cpu=[10.0]), Result("torch", cpu=[40.0])])
        0.25
    """
    values = {result.peer: result.value for result in results}
    mine, theirs = values.get("native"), values.get(work.native.peer or "") if work.native else None
    return mine / theirs if mine and theirs else None


def judged(work: Work, results: Sequence[Result]) -> list[tuple[str, Goal, float | None]]:
    """Each goal of a work: its text, itself, and what was reached."""
    goals = [(work.goal.text(work.unit), work.goal, ratio(work, results))]
    if work.memory:
        goals.append((f"memory {work.memory.text('MB')}", work.memory, memory_ratio(work, results)))
    if work.native and any(result.peer == "native" for result in results):
        goals.append((f"native {work.native.text(work.unit)}", work.native, native_ratio(work, results)))
    return goals


def all_met(work: Work, results: Sequence[Result]) -> bool:
    """Whether every goal of a work was measured and met."""
    return all(found is not None and found <= goal.bound for _, goal, found in judged(work, results))


def verdict(work: Work, results: Sequence[Result]) -> str:
    """The goals in words, and whether they are met."""
    parts = []
    for text, goal, found in judged(work, results):
        said = "not measured" if found is None else f"{found:.3g}, {'met' if found <= goal.bound else 'MISSED'}"
        parts.append(f"goal {text}: {said}")
    return "; ".join(parts)


def table(work: Work, results: Sequence[Result]) -> str:
    """The table of one work: a row for each peer, with its time and how that compares with fluidnb's."""
    mine = next((r.value for r in results if r.peer == "fluidnb"), None)
    lines = [f"{work.name}  {work.title} ({work.unit}, CPU time, one thread)"]
    for result in results:
        if result.value is None:
            lines.append(f"     {result.peer:8} missing: {(result.error or '').splitlines()[-1:]}")
            continue
        times = f"{result.value / mine:8.2f} x fluidnb" if mine and result.peer != "fluidnb" else " " * 18
        memory = f"{result.memory:6.0f} MB" if result.memory else ""
        lines.append(f"     {result.peer:8} {result.value:10.4g}  {times}  {memory}".rstrip())
    return "\n".join([*lines, "     " + verdict(work, results)])


def record(measured: Mapping[str, Sequence[Result]]) -> dict[str, Any]:
    """Everything measured, as plain data for a JSON file, with what one must know of the machine."""
    works = {
        name: {
            "unit": WORKS[name].unit,
            "goal": WORKS[name].goal.text(WORKS[name].unit),
            "ratio": ratio(WORKS[name], results),
            "memory_ratio": memory_ratio(WORKS[name], results),
            "native_ratio": native_ratio(WORKS[name], results),
            "peers": {r.peer: {**vars(r), "median_cpu": r.value} for r in results},
        }
        for name, results in measured.items()
    }
    machine = {"python": platform.python_version(), "machine": platform.machine(), "cores": os.cpu_count()}
    return {"at": time.strftime("%Y-%m-%d %H:%M:%S"), "load": os.getloadavg()[0], **machine, "works": works}


def save(measured: Mapping[str, Sequence[Result]], path: Path) -> None:
    """Write the record of a run.

    Args:
        measured: results by work.
        path: the file; its folder is made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record(measured), indent=1) + "\n")
