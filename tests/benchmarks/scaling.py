"""Measure works at several sizes: number of operators, batch size, sequence length, loop iterations, layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.benchmarks.driver import measure
from tests.benchmarks.works import WORKS, Goal, Work


@dataclass(frozen=True)
class Scale:
    """A work at several sizes; ``work`` is the function of the peers that takes the size."""

    title: str  # what it is, for readers
    axis: str  # what grows
    work: str  # the function of each module of `peers`
    sizes: tuple[int, ...]


SCALES = {
    "ops": Scale("elementwise operators on one number each, a run", "operators", "a", (20, 200, 2000)),
    "batch": Scale("MLP 784-200-200-10 with Adam, a step", "rows", "c", (4, 16, 64, 256, 1024)),
    "length": Scale("LSTM cell in a StaticRNN with Adam, batch 32, a step", "steps", "e_static", (10, 50, 200)),
    "loop": Scale("while loop, s += x[i], a run", "iterations", "f", (10, 100, 1000, 10000)),
    "depth": Scale("layers of 64 with SGD, batch 16, a step", "layers", "deep", (4, 16, 64)),
}


def measure_scale(scale: Scale, peers: Sequence[str], rounds: int = 9) -> dict[str, Any]:
    """Measure a work at all its sizes, one thread.

    Args:
        scale: what grows.
        peers: who takes part.
        rounds: how often each peer is measured at each size.

    Returns:
        Plain data: title, axis, sizes, and for each peer the median CPU time of each size in us, or None.
    """
    times: dict[str, list[float | None]] = {peer: [] for peer in peers}
    for size in scale.sizes:
        like = WORKS.get(scale.work, Work(scale.work, "", "us", Goal(1.0, None)))
        work = replace(like, name=f"{scale.work}={size}", per=1, rounds=rounds, native=Goal(1.0, None))
        for result in measure(work, peers):
            times[result.peer].append(result.value)
    return {"title": scale.title, "axis": scale.axis, "sizes": list(scale.sizes), "times": times}


def scale_table(measured: Mapping[str, Any]) -> str:
    """The times as text: a row for each size."""
    peers = list(measured["times"])
    head = f"{measured['axis']:>12} " + "".join(f"{peer:>12}" for peer in peers)
    lines = [f"{measured['title']} (us, CPU time, one thread)", head]
    for k, size in enumerate(measured["sizes"]):
        row = [measured["times"][peer][k] for peer in peers]
        lines.append(f"{size:12,} " + "".join("     missing" if t is None else f"{t:12.4g}" for t in row))
    return "\n".join(lines)
