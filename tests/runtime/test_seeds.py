"""fluid.seed fixes programs, startup, readers and random operators at once, bit for bit, in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import OpTypeError
from tests.runtime import seeded


def in_a_new_process(seed: int, **environment: str) -> str:
    """The digest of a training in a process of its own."""
    root = Path(__file__).parents[2]
    paths = os.pathsep.join(str(root / part) for part in (".", "kernels", "magics"))
    environment = {**os.environ, "PYTHONPATH": paths, **environment}
    command = [sys.executable, "-m", "tests.runtime.seeded", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root, env=environment)
    return done.stdout.strip()


def test_two_processes_give_the_same_bits() -> None:
    one = in_a_new_process(42, PYTHONHASHSEED="1")
    assert one == in_a_new_process(42, PYTHONHASHSEED="2") == seeded.digest(42)
    assert one != in_a_new_process(43)


def test_the_machine_gives_the_same_bits() -> None:
    assert seeded.digest(7) == seeded.digest(7, machine=True) != seeded.digest(8)


def draws(program: fluid.Program, runs: int = 2) -> list[bytes]:
    """What the program's ``noise`` is in several runs of a new scope."""
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    return [exe.run(program, fetch_list=["noise"], scope=scope)[0].tobytes() for _ in range(runs)]


def noise(**attrs: float) -> fluid.Program:
    """A program that draws 4 numbers."""
    program = fluid.Program()
    attrs = {"shape": [4], "dtype": "float32", **attrs}  # type: ignore[dict-item]
    program.global_block().append_op("uniform_random", {}, {"Out": "noise"}, attrs)
    return program


def test_a_programs_own_seed_wins_over_the_sessions() -> None:
    program = noise()
    program.random_seed = 5
    fluid.seed(1)
    first = draws(program)
    fluid.seed(2)
    assert draws(program) == first and len(set(first)) == 2
    program.random_seed = 6
    assert draws(program) != first


def test_an_operators_own_seed_wins_over_all_and_repeats() -> None:
    program = noise(seed=9)
    program.random_seed = 5
    fluid.seed(1)
    first = draws(program, 3)
    assert len(set(first)) == 1
    fluid.seed(2)
    program.random_seed = 7
    assert draws(program, 3) == first


def test_without_a_seed_every_scope_and_run_differs() -> None:
    program = noise()
    exe = fluid.Executor(fluid.CPUPlace())
    scope = fluid.Scope()
    assert len({exe.run(program, fetch_list=["noise"], scope=scope)[0].tobytes() for _ in range(5)}) == 5


def test_numbers_do_not_depend_on_what_else_is_in_the_program() -> None:
    fluid.seed(3)
    alone = draws(noise())
    crowded = noise()
    crowded.global_block().prepend_op("gaussian_random", {}, {"Out": "more"}, {"shape": [7], "dtype": "float32"})
    assert draws(crowded) == alone


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_operator_draws_its_own(dtype: str) -> None:
    fluid.seed(4)
    values = [fluid.layers.uniform_random([5], dtype=dtype) for _ in range(3)]
    drawn = fluid.Executor(fluid.CPUPlace()).run(fetch_list=values)
    assert len({d.tobytes() for d in drawn}) == 3 and all(d.dtype == np.dtype(dtype) for d in drawn)


@pytest.mark.parametrize("wrong", ["one", 1.5, None])
def test_a_seed_is_an_integer(wrong: object) -> None:
    with pytest.raises(OpTypeError, match="seed takes an integer"):
        fluid.seed(wrong)  # type: ignore[arg-type]
