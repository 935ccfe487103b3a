"""The table of a benchmark run, and the file that keeps it."""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.driver import Result
from tests.benchmarks.works import WORKS, Goal, Work

#: A ratio that is so many times the median of earlier runs is named.
WORSE = 1.15


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
    threads = max((r.threads for r in results), default=1)
    how = "CPU time, one thread" if threads == 1 else f"by the clock, {threads} threads"
    lines = [f"{work.name}  {work.title} ({work.unit}, {how})"]
    for result in results:
        if result.value is None:
            lines.append(f"     {result.peer:8} missing: {(result.error or '').splitlines()[-1:]}")
            continue
        times = f"{result.value / mine:8.2f} x fluidnb" if mine and result.peer != "fluidnb" else " " * 18
        memory = f"{result.memory:6.0f} MB" if result.memory else ""
        lines.append(f"     {result.peer:8} {result.value:10.4g}  {times}  {memory}".rstrip())
    return "\n".join([*lines, "     " + verdict(work, results)])


def record(measured: Mapping[str, Sequence[Result]], threads: int = 1) -> dict[str, Any]:
    """Everything measured, as plain data for a JSON file, with what one must know of the machine."""
    works = {
        name: {
            "title": WORKS[name].title,
            "unit": WORKS[name].unit,
            "goal": WORKS[name].goal.text(WORKS[name].unit),
            "ratio": ratio(WORKS[name], results),
            "memory_ratio": memory_ratio(WORKS[name], results),
            "native_ratio": native_ratio(WORKS[name], results),
            "peers": {r.peer: {**vars(r), "median": r.value} for r in results},
        }
        for name, results in measured.items()
    }
    machine = {"python": platform.python_version(), "machine": platform.machine(), "cores": os.cpu_count()}
    return {
        "at": time.strftime("%Y-%m-%d %H:%M:%S"), "load": os.getloadavg()[0], **machine, "threads": threads,
        "works": works,
    }  # fmt: skip


def history(path: Path) -> list[dict[str, Any]]:
    """The records of earlier runs, the oldest first; none without a file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def remember(run: Mapping[str, Any], path: Path) -> None:
    """Append the record of a run to a file of one JSON line a run.

    Args:
        run: see `record`.
        path: the file; its folder is made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(run) + "\n")


def slower(run: Mapping[str, Any], earlier: Sequence[Mapping[str, Any]]) -> list[str]:
    """List the works whose time, as a multiple of a peer's, is 15 % above the median of earlier runs.

    Args:
        run: see `record`.
        earlier: records of other runs; those on other machines or by more threads do not count.

    Returns:
        A sentence for each work and peer.

    Example:
        >>> old, new = (record({"a": [Result("fluidnb", cpu=[t]), Result("torch", cpu=[100.0])]}) for t in (20.0, 25.0))
        >>> slower(new, [old])
        ['a: fluidnb takes 0.25x torch, 0.2x before']
    """
    alike = [r for r in earlier if all(r.get(key) == run[key] for key in ("machine", "cores", "threads"))]
    found = []
    for name, work in run["works"].items():
        before = [r["works"][name] for r in alike if name in r["works"]]
        for pair, value in _ratios(work).items():
            values = [v for w in before if (v := _ratios(w).get(pair)) is not None]
            if values and value > WORSE * statistics.median(values):
                own, peer = pair
                found.append(f"{name}: {own} takes {value:.3g}x {peer}, {statistics.median(values):.3g}x before")
    return found


def _ratios(work: Mapping[str, Any]) -> dict[tuple[str, str], float]:
    """(fluidnb or native, peer) -> the ratio of their times in a record of a work."""
    times = {peer: row["median"] for peer, row in work["peers"].items() if row["median"]}
    own = [peer for peer in ("fluidnb", "native") if peer in times]
    return {(mine, peer): times[mine] / times[peer] for mine in own for peer in times if peer not in own}
