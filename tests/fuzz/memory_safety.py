"""Operators under hostile attributes, shapes and indexes, in guarded memory: ``make fuzz ARGS=memory_safety``.

Each program runs twice with different poison in memory that nobody wrote. It fails when results differ, when a canary
changed, or when the process dies.
"""

from __future__ import annotations

import contextlib
import copy
import faulthandler
import json
import os
import random
import resource
import signal
import tempfile
import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache, lru_cache
from itertools import combinations
from typing import Any

import numpy as np

import fluidnb as fluid
from fluidnb.errors import FluidError
from fluidnb.memory import flags
from fluidnb.values import LoDTensor, LoDTensorArray, SelectedRows
from tests.fuzz import farm, guarded
from tests.fuzz.hostile import mutate
from tests.fuzz.oracle import REFUSED, RESULT, Outcome
from tests.fuzz.victims import Maker, Makers, makers

#: Seconds of the processor for one mutated program, bytes that a process may add to its parent's, iterations of a loop.
SECONDS, BYTES, LOOPS = 10, 4 << 30, 100
#: Mutated programs that one process runs.
BATCH = 100
#: How a program runs: bytes, feeds, fetches, what the scope holds, poison, whether by steps.
Run = Callable[[bytes, dict[str, Any], Sequence[str], dict[str, Any], int, bool], Any]
#: Outcomes that are failures.
WRONG = ("poison", "canary", "died", "harness")


def bits(value: Any) -> Any:
    """A fetched value, down to the last bit."""
    if isinstance(value, LoDTensorArray):
        return [bits(v) for v in value]
    if isinstance(value, SelectedRows):
        return list(value.rows()), value.height(), bits(value.get_tensor())
    if isinstance(value, LoDTensor):
        array = np.asarray(value)
        return str(array.dtype), array.shape, value.lod_, array.tobytes()
    return repr(value)


def run_program(
    text: bytes, feed: dict[str, Any], fetch: Sequence[str], held: dict[str, Any], poison: int, step: bool
) -> Any:
    """Run a program with one poison; gives the results, or the error."""
    guarded.poison(poison)
    scope = fluid.Scope()
    for name, value in held.items():
        scope.var(name).value = copy.deepcopy(value)
    try:
        program = fluid.Program.parse_from_string(text)
        program.random_seed = 1
        with tempfile.TemporaryDirectory(dir=".") as folder, contextlib.chdir(folder):  # no file of the run before
            found = fluid.Executor(fluid.CPUPlace()).run(
                program, feed=copy.deepcopy(feed), fetch_list=list(fetch), scope=scope, return_numpy=False,
                keep_scopes=step,
            )  # fmt: skip
        return "result", [bits(v) for v in found]
    except FluidError as e:
        return "error", type(e).__name__
    except Exception as e:  # another test looks for these
        return "bare error", f"{type(e).__name__}: {e}"


class Case:
    """A program to break, in bytes.

    Args:
        maker: makes it.
        run: runs it.
    """

    def __init__(self, maker: Maker, run: Run) -> None:
        self.run = run
        victim = maker()
        self.text = victim.program.desc.serialize_to_string()
        self.feed, self.fetch, self.held = victim.feed, victim.fetch, victim.held

    def attempt(self, seed: int | None, keep: Collection[int] | None = None) -> tuple[str, str]:
        """Break it with a seed (None leaves it whole) and run it with both poisons.

        Args:
            seed: of the change.
            keep: which of its changes are made, by number; None for all.

        Returns:
            The outcome, and what was changed.
        """
        dice, feed, text, what = random.Random(seed), dict(self.feed), self.text, "whole"
        if seed is not None:
            text, what = mutate(dice, text, feed, keep)
        step = dice.random() < 0.3
        results = [self.run(text, feed, self.fetch, self.held, poison, step) for poison in guarded.POISONS]
        said = guarded.GUARDS.verify()
        if said:
            return "canary", f"{what}: {said[0]}"
        if ("error", "OutOfMemory") in results:  # how much is left depends on the run before
            return "error", what
        if results[0] != results[1]:
            again = self.run(text, feed, self.fetch, self.held, guarded.POISONS[0], step)
            if again == results[0]:
                return "poison", f"{what}{' (steps)' if step else ''}: {_difference(*results)}"
            return "differs by itself", what
        return results[0][0], what if results[0][0] != "bare error" else f"{what}: {results[0][1]}"


def _difference(a: Any, b: Any) -> str:
    if a[0] != "result" or b[0] != "result":
        return f"{a[0]} {str(a[1])[:150]} against {b[0]} {str(b[1])[:150]}"
    at = [i for i, (x, y) in enumerate(zip(a[1], b[1], strict=True)) if x != y]
    return f"outputs {at} of {len(a[1])}"


def _child(jobs: Sequence[tuple[str, Maker, int | None]], run: Run, limit: int, pipe: int) -> None:
    """Run jobs and write a line for each outcome."""
    limit += farm.addressed()
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    faulthandler.disable()
    flags.values["max_loop_iterations"] = LOOPS
    guarded.install()
    np.seterr(all="ignore")
    cases: dict[str, Case] = {}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, maker, seed in jobs:
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            try:
                if name not in cases:
                    cases[name] = Case(maker, run)
                line = json.dumps(cases[name].attempt(seed))
            except Exception:
                line = json.dumps(("harness", traceback.format_exc()[-1500:]))
            os.write(pipe, line.encode()[:3000] + b"\n")


def outcomes(
    jobs: Sequence[tuple[str, Maker, int | None]], run: Run = run_program, limit: int = BYTES
) -> Iterator[tuple[str, str, int | None, str]]:
    """Run jobs in processes of their own.

    Args:
        jobs: name, maker and seed of each.
        run: how a program is run.
        limit: bytes that a process may address beside what this one does.

    Yields:
        (outcome, name, seed, what was changed); a process that dies is an outcome of the job it was at.
    """
    at = 0
    while at < len(jobs):
        batch = jobs[at : at + BATCH]
        read, write = os.pipe()
        log = tempfile.TemporaryFile()  # noqa: SIM115
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.close(read)
                os.dup2(log.fileno(), 1)
                os.dup2(log.fileno(), 2)
                _child(batch, run, limit, write)
                code = 0
            finally:
                os._exit(code)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            lines = pipe.read().decode(errors="replace").splitlines()
        _, status = os.waitpid(child, 0)
        for (name, _, seed), line in zip(batch, lines, strict=False):
            try:
                outcome, what = json.loads(line)
            except ValueError:
                outcome, what = "cut off", line[:200]
            yield outcome, name, seed, what
        at += len(lines)
        if status and len(lines) < len(batch):
            name, _, seed = batch[len(lines)]
            number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
            slow = number in (signal.SIGPROF, signal.SIGKILL)
            log.seek(0)
            lines = log.read().decode(errors="replace").splitlines()
            found = [line for line in lines if "ERROR" in line or "#" in line]
            yield "slow" if slow else "died", name, seed, f"signal {number}, status {status} {' '.join(found[:5])}"
            at += 1
        log.close()


# ---- as a target of the farm

#: Bytes that a case may take: as much as a process may have, because a program says itself how large its variables are.
CASE_BYTES = farm.ADDRESS_SPACE


@cache
def known() -> Makers:
    """All programs."""
    return makers()


@cache
def _prepared() -> None:
    """Guard the memory of this process, which does nothing else."""
    flags.values["max_loop_iterations"] = LOOPS
    guarded.install()
    np.seterr(all="ignore")


@lru_cache(50)
def _built(kind: str, at: int, run: Run) -> Case:
    return Case(known()[kind][at][1], run)


def case(dice: random.Random, wanted: Callable[[str], bool] = lambda kind: True) -> dict[str, Any]:
    """A program and the seed of its changes; every operator has the same probability."""
    kind = dice.choice(sorted(filter(wanted, known())))
    return {"kind": kind, "at": dice.randrange(len(known()[kind])), "seed": dice.randrange(1 << 40), "keep": None}


def run(one: dict[str, Any], run: Run = run_program) -> Outcome:
    """Break a program and run it with both poisons."""
    _prepared()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        outcome, what = _built(one["kind"], one["at"], run).attempt(one["seed"], one["keep"])
    if outcome in WRONG:
        return Outcome(outcome, f"{outcome} {one['kind']}", what)
    return Outcome(RESULT if outcome in ("result", "differs by itself") else REFUSED, one["kind"], what)


def smaller(one: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Cases with fewer changes."""
    given = range(3) if one["keep"] is None else one["keep"]
    for count in range(1, len(given)):
        for keep in combinations(given, count):
            yield one | {"keep": list(keep)}


def show(one: dict[str, Any]) -> str:
    """Python code that runs the case again."""
    return f"from tests.fuzz import memory_safety\nprint(memory_safety.run({one!r}))"
