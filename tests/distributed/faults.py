"""``python -m tests.distributed.faults [--kills 20] [--trainings 4] [--collective]``: kill roles at random steps.

The exit status is 1 when a training hangs, loses a committed step or ends with other parameters than without faults.
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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import fluidnb as fluid
from fluidnb.distributed import LocalEngine, RayEngine, split_batches
from fluidnb.distributed.checkpoints import Checkpoints
from fluidnb.distributed.ray_start import running_ray
from tests.distributed.networks import Built, Feeds, batches, built, collective, divided, lenet

ROLES = ("ps:0", "ps:1", "trainer:0", "trainer:1")
COLLECTIVE_ROLES = ("trainer:0", "trainer:1", "group")
#: Divides a program among the roles.
Divide = Callable[[Built], fluid.DistributeTranspiler]
#: Seconds without any progress after which a training counts as hanging.
_HANGS = 240.0


def adam() -> Any:
    return fluid.optimizer.Adam(0.01)


@dataclass
class Kill:
    """One process that was killed with SIGKILL during a training.

    Attributes:
        role: whose process it was.
        step: when it had done at least so many steps.
        committed: the newest step of which every server had a checkpoint then; -1 where it was not killed.
        back: the step that the servers went back to; None where they did not have to.
        seconds: until the same role had done another step.
        equal: whether the parameters at the end have the bits of a training without faults.
    """

    role: str
    step: int
    committed: int = -1
    back: int | None = None
    seconds: float = float("nan")
    equal: bool = False

    @property
    def lost(self) -> int:
        """Committed steps that were lost."""
        return 0 if self.back is None else max(0, self.committed - self.back)

    @property
    def good(self) -> bool:
        """Whether the process was killed and came back, and nothing of the training was lost."""
        return self.committed >= 0 and self.seconds == self.seconds and self.lost == 0 and self.equal


def random_kills(draw: random.Random, roles: Sequence[str]) -> list[Kill]:
    """A kill of each role in turn, at random steps."""
    step, kills = 0, []
    for role in roles:
        step += draw.randrange(2, 9)
        kills.append(Kill(role, step))
    return kills


def images() -> fluid.Variable:
    """Images, classified with random numbers in each step, too."""
    return lenet(dropout=0.2)


def feeds_for(kills: Sequence[Kill]) -> Feeds:
    """Batches for a training with some kills."""
    return batches(built(images, adam)[0], kills[-1].step + 5)


def without_faults(feeds: Feeds, divide: Divide) -> dict[str, Any]:
    """Parameters after a training in threads."""
    with LocalEngine(divide(built(images, adam))) as engine:
        engine.train(split_batches(feeds, 2))
        return engine.parameters()


def with_faults(kills: Sequence[Kill], divide: Divide = divided) -> None:
    """Train with processes, kill some, and note in each kill what followed.

    Args:
        kills: in the order of their steps.
        divide: `divided` with servers, `collective` without.
    """
    feeds = feeds_for(kills)
    expected, over = without_faults(feeds, divide), threading.Event()

    def slow(trainer: int) -> Iterator[Any]:
        for feed in split_batches(feeds, 2)(trainer):
            time.sleep(0.05)
            yield feed

    def state(engine: RayEngine, kill: Kill, step: int, other_than: int = 0) -> Any:
        """The state of a role that has done some steps, in another process; the group takes those of trainer 0."""
        while not over.wait(0.01):
            now = engine.states.get(kill.role)
            counting = engine.states.get("trainer:0") if kill.role == "group" else now
            if now is not None and counting is not None:
                done = counting["step"] or 0
                if done >= step and now["pid"] != other_than:
                    return {**now, "step": done}
        return None

    def work(engine: RayEngine, folder: str) -> None:
        for kill in kills:
            now = state(engine, kill, kill.step)
            if now is None:
                return
            writers = engine.plan.endpoints or ["trainer:0"]
            kept = [set(Checkpoints(folder, name).steps()) for name in writers]
            kill.committed, events, start = max({0} | set.intersection(*kept)), len(engine.events), time.monotonic()
            os.kill(now["pid"], signal.SIGKILL)
            if state(engine, kill, now["step"] + 1, now["pid"]) is not None:
                kill.seconds = time.monotonic() - start
            found = [re.search(r"back to step (\d+)", event) for event in engine.events[events:]]
            kill.back = min((int(match[1]) for match in found if match), default=None)

    with tempfile.TemporaryDirectory() as folder, RayEngine(
        divide(built(images, adam)), checkpoints=folder, deadline=_HANGS
    ) as engine:  # fmt: skip
        killer = threading.Thread(target=work, args=(engine, folder))
        killer.start()
        try:
            engine.train(slow)
            parameters = engine.parameters()
        finally:
            over.set()
            killer.join()
    equal = all(np.array_equal(parameters[name], value) for name, value in expected.items())
    for kill in kills:
        kill.equal = equal


def main() -> int:
    """Run all trainings and print their kills."""
    parser = argparse.ArgumentParser(prog="python -m tests.distributed.faults", description="kill roles of trainings")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--trainings", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--collective", action="store_true", help="trainers without servers")
    parser.add_argument("--address", help="of a Ray cluster on this machine; without it one starts")
    options = parser.parse_args()
    draw, bad = random.Random(options.seed), 0
    known, divide = (COLLECTIVE_ROLES, collective) if options.collective else (ROLES, divided)
    roles = [known[number % len(known)] for number in range(options.kills)]
    size = -(-options.kills // options.trainings)
    print("training  killed      at step  committed  back to  lost  equal  seconds to recover")
    with running_ray(options.address):
        for first in range(0, options.kills, size):
            kills = random_kills(draw, draw.sample(roles[first : first + size], len(roles[first : first + size])))
            with_faults(kills, divide)
            for kill in kills:
                bad += not kill.good
                back, equal = "-" if kill.back is None else kill.back, "yes" if kill.equal else "NO"
                print(
                    f"{first // size + 1:8}  {kill.role:10}  {kill.step:7}  {kill.committed:9}  {back:>7}  "
                    f"{kill.lost:4}  {equal:>5}  {kill.seconds:18.1f}", flush=True,
                )  # fmt: skip
    print(f"{options.kills - bad} of {options.kills} without loss")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
