"""Broken programs and feeds: a program of `victims`, one thing of it changed, run by the replay or the interpreter."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Iterator
from functools import cache
from typing import Any

import fluidnb as fluid
from fluidnb.memory import flags
from tests.fuzz import farm
from tests.fuzz.mutate import Victim
from tests.fuzz.oracle import RESULT, Outcome, judge
from tests.fuzz.victims import Makers, makers

#: Bytes that a case may take: as much as a process may have, because a program says itself how large its variables are.
CASE_BYTES = farm.ADDRESS_SPACE

#: Iterations after which a loop gives up: what is broken may never end.
LOOPS = 300


@cache
def known() -> Makers:
    """All programs."""
    return makers()


def case(dice: random.Random) -> dict[str, Any]:
    """A program and the seed of its changes; every operator has the same chance."""
    kind = dice.choice(sorted(known()))
    at = dice.randrange(len(known()[kind]))
    return {"kind": kind, "at": at, "seed": dice.getrandbits(32), "changes": dice.choice([1, 1, 1, 2, 3])}


def run(one: dict[str, Any]) -> Outcome:
    """Break a program and run it."""
    flags.values["max_loop_iterations"] = LOOPS
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            return _run(one)
        finally:
            os.chdir(here)


def _run(one: dict[str, Any]) -> Outcome:
    dice = random.Random(one["seed"])
    what = []
    try:
        victim: Victim = known()[one["kind"]][one["at"]][1]()
        for _ in range(one["changes"]):
            if not any(block.ops for block in victim.program.desc.blocks):
                break
            what.append(victim.mutate(dice))
        scope = fluid.Scope()
        for name, value in victim.held.items():
            scope.var(name).value = value
        fluid.Executor(fluid.CPUPlace()).run(
            victim.program, feed=victim.feed, fetch_list=victim.fetch, scope=scope, return_numpy=False,
            keep_scopes=dice.random() < 0.3,
        )  # fmt: skip
    except BaseException as error:
        outcome = judge(error, own=(__file__,))
        return Outcome(outcome.kind, outcome.signature, "; ".join(what)[:500] + "\n" + outcome.text)
    return Outcome(RESULT)


def smaller(one: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Cases with fewer changes."""
    for changes in range(1, one["changes"]):
        yield one | {"changes": changes}


def show(one: dict[str, Any]) -> str:
    """Python code that runs the case again."""
    return f"from tests.fuzz import programs\nprint(programs.run({one!r}))"
