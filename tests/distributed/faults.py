"""``python -m tests.distributed.faults [--runs 20] [--address HOST:PORT]``: kill roles at random steps.

The exit status is 1 when a run hangs, loses a committed step or ends with other parameters than a run without faults.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import fluidnb as fluid
from fluidnb.distributed import LocalEngine, RayEngine, split_batches
from fluidnb.distributed.checkpoints import Checkpoints
from fluidnb.distributed.ray_start import running_ray
from tests.distributed.networks import Feeds, batches, built, divided, lenet

STEPS = 30
ROLES = ("ps:0", "ps:1", "trainer:0", "trainer:1")
#: Seconds that a training takes at most, faults included.
_HANGS = 120.0


def adam() -> Any:
    return fluid.optimizer.Adam(0.01)


@dataclass
class Run:
    """One training of which a process was killed.

    Attributes:
        role: whose process was killed, with SIGKILL.
        step: when it had done so many steps.
        committed: the newest step of which every server had a checkpoint then.
        back: the step that the servers went back to; None where they did not have to.
        seconds: of the whole training.
        equal: whether the parameters have the bits of a run without faults.
        events: of the engine.
    """

    role: str
    step: int
    committed: int = -1
    back: int | None = None
    seconds: float = 0.0
    equal: bool = False
    events: list[str] = field(default_factory=list)

    @property
    def lost(self) -> int:
        """Committed steps that were lost."""
        return 0 if self.back is None else max(0, self.committed - self.back)

    @property
    def good(self) -> bool:
        """Whether the process was killed, and nothing of the training was lost."""
        return self.committed >= 0 and bool(self.events) and self.lost == 0 and self.equal


def feeds_of_lenet() -> Feeds:
    """The batches of all runs."""
    return batches(built(lenet, adam)[0], STEPS)


def without_faults(feeds: Feeds) -> dict[str, Any]:
    """Parameters after a training in threads."""
    with LocalEngine(divided(built(lenet, adam))) as engine:
        engine.train(split_batches(feeds, 2))
        return engine.parameters()


def with_fault(role: str, step: int, feeds: Feeds, expected: dict[str, Any]) -> Run:
    """Train with processes, and kill that of one role when it has done some steps.

    Args:
        role: an endpoint, or ``trainer:`` and its number.
        step: fewer than there are batches.
        feeds: whole batches.
        expected: parameters of a run without faults.
    """
    run, over = Run(role, step), threading.Event()

    def slow(trainer: int) -> Iterator[Any]:
        for feed in split_batches(feeds, 2)(trainer):
            time.sleep(0.05)
            yield feed

    def kill(engine: RayEngine, folder: str) -> None:
        while not over.wait(0.01):
            state = engine.states.get(role)
            if state is not None and (state["step"] or 0) >= step:
                kept = [set(Checkpoints(folder, name).steps()) for name in engine.plan.endpoints]
                run.committed = max({0} | set.intersection(*kept))
                os.kill(state["pid"], signal.SIGKILL)
                return

    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, RayEngine(
        divided(built(lenet, adam)), checkpoints=folder, deadline=_HANGS
    ) as engine:  # fmt: skip
        killer = threading.Thread(target=kill, args=(engine, folder))
        killer.start()
        try:
            engine.train(slow)
            parameters = engine.parameters()
        finally:
            over.set()
            killer.join()
    run.seconds, run.events = time.monotonic() - start, engine.events
    back = [int(match[1]) for event in engine.events if (match := re.search(r"back to step (\d+)", event))]
    run.back = min(back, default=None)
    run.equal = all(np.array_equal(parameters[name], value) for name, value in expected.items())
    return run


def main() -> int:
    """Run all and print them."""
    parser = argparse.ArgumentParser(prog="python -m tests.distributed.faults", description="kill roles of trainings")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--address", help="of a Ray cluster on this machine; without it one starts")
    options = parser.parse_args()
    draw, feeds = random.Random(options.seed), feeds_of_lenet()
    expected, bad = without_faults(feeds), 0
    print(f"{'run':>3}  {'killed':10} {'at step':>7} {'committed':>9} {'back to':>7} {'lost':>4} {'equal':>5} {'s':>6}")
    with running_ray(options.address):
        for number in range(options.runs):
            run = with_fault(ROLES[number % len(ROLES)], draw.randrange(1, STEPS - 4), feeds, expected)
            bad += not run.good
            back = "-" if run.back is None else run.back
            print(
                f"{number + 1:3}  {run.role:10} {run.step:7} {run.committed:9} {back:>7} {run.lost:4} "
                f"{'yes' if run.equal else 'NO':>5} {run.seconds:6.1f}", flush=True,
            )  # fmt: skip
    print(f"{options.runs - bad} of {options.runs} runs without loss")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
