"""Thousands of broken one-operator programs, each in a process of its own with 2 GB and 10 seconds."""

from __future__ import annotations

import os
import random
import resource
import signal
from typing import Any

import pytest

import fluidnb as fluid
from fluidnb.errors import FluidError
from fluidnb.op import has_op
from tests.fuzz.mutate import Victim
from tests.paddle.grid import Case, cases
from tests.paddle.grid_sequence import sequence_cases
from tests.paddle.test_sweep import build
from tests.tools.sampling import SEED, sample

COUNT, SAMPLED, SECONDS, BYTES = 5000, 250, 10, 2 << 30


def attempt(case: Case, seed: int) -> str:
    """Break a case and run it; an empty text when the outcome is a result or a clear error."""
    dice = random.Random(seed)
    victim = Victim(*build(case))
    exe, scope, what = fluid.Executor(fluid.CPUPlace()), fluid.Scope(), ""
    try:
        what = victim.mutate(dice)
    except FluidError as e:
        return "" if str(e) else "an error without words"
    before, names = victim.program.desc.serialize_to_string(), scope.local_var_names()
    try:
        exe.run(victim.program, feed=victim.feed, fetch_list=victim.fetch, scope=scope)
    except FluidError as e:
        if not str(e).strip():
            return f"{what}: an error without words"
        held = [n for n in scope.local_var_names() if scope.find_var(n).value is not None and n not in names]
        if held and not any(v.persistable() for v in victim.program.desc.blocks[0].vars.values()):
            return f"{what}: left {held} in the scope"
    except BaseException as e:  # noqa: BLE001  whatever else comes out is what this test looks for
        return f"{what}: {type(e).__name__}: {str(e)[:200]}"
    return "" if victim.program.desc.serialize_to_string() == before else f"{what}: the program changed"


def in_child(case: Case, seed: int) -> str:
    """`attempt` in a child; what went wrong, or an empty text."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(SECONDS)
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        try:
            said = attempt(case, seed)
        except BaseException as e:  # noqa: BLE001
            said = f"outside of the run: {type(e).__name__}: {str(e)[:200]}"
        os.write(write, said.encode()[:4000])
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    if status == 0:
        return said
    number = os.WTERMSIG(status)
    return f"no answer in {SECONDS} s" if number == signal.SIGALRM else f"killed by {signal.Signals(number).name}"


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_result_or_a_clear_error() -> None:
    known: list[Any] = [c for c in (*cases(), *sequence_cases()) if has_op(c.op)]
    drawn = [(random.Random(f"{SEED} {i}").choice(known), SEED + i) for i in range(COUNT)]
    chosen = sample(drawn, SAMPLED)
    wrong = {f"{case.id} seed {seed}": said for case, seed in chosen if (said := in_child(case, seed))}
    lines = [f"{k}: {v}" for k, v in wrong.items()]
    assert not wrong, f"{len(wrong)} of {len(chosen)}:\n" + "\n".join(lines[:50])
