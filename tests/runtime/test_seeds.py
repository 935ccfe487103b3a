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
    """The program's ``noise`` in several runs of a new scope."""
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
    with pytest.raises(OpTypeError, match="n of seed must be an int"):
        fluid.seed(wrong)  # type: ignore[arg-type]


def first_values(*initializers: fluid.initializer.Initializer, startup_seed: int = 0) -> list[bytes]:
    """The parameters of shape [6, 6] after the startup program."""
    with fluid.fresh() as (_, startup):
        startup.random_seed = startup_seed
        names = [
            fluid.layers.create_parameter([6, 6], "float32", default_initializer=initializer).name
            for initializer in initializers
        ]
        return [v.tobytes() for v in fluid.Executor(fluid.CPUPlace()).run(startup, fetch_list=names)]


KINDS = [
    fluid.initializer.Normal, fluid.initializer.Uniform, fluid.initializer.TruncatedNormal, fluid.initializer.Xavier,
    fluid.initializer.MSRA,
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_initializers_with_one_seed_draw_the_same_numbers(kind: type[fluid.initializer.Initializer]) -> None:
    one, other, third = first_values(kind(seed=7), kind(seed=7), kind(seed=8))  # type: ignore[call-arg]
    assert one == other != third


def test_initializers_copy_the_seed_of_the_startup_program() -> None:
    """So the parameters of one shape and distribution are equal, as in Fluid."""
    normal = fluid.initializer.Normal
    one, other, own = first_values(normal(), normal(), normal(seed=5), startup_seed=7)
    assert one == other == first_values(normal(seed=7))[0] != own
    one, other = first_values(normal(), normal())
    assert one != other


@pytest.mark.parametrize("seed", [2**31 - 1, 2**31, -(2**40), 2 * (2**31 - 1)])
def test_a_seed_of_any_size_reaches_the_attribute(seed: int) -> None:
    with fluid.fresh() as (_, startup):
        startup.random_seed = seed
        fluid.layers.create_parameter([2], "float32", default_initializer=fluid.initializer.Normal())
        assert startup.global_block().ops[0].attr("seed") not in (0, None)


def training(prefix: str, machine: bool = False, seed: int = 3) -> list[bytes]:
    """Losses, masks and noise of a small model whose variables have their own names, and its parameters."""
    with fluid.fresh() as (main, startup), fluid.scope_guard(fluid.Scope()):
        main.random_seed = startup.random_seed = seed
        x = fluid.layers.data(prefix + "x", shape=[4])
        h = fluid.layers.fc(x, 8, act="relu", param_attr=prefix + "w", bias_attr=prefix + "b", name=prefix)
        masks = [fluid.layers.dropout(h, 0.5, name=f"{prefix}{i}") for i in range(2)]
        noise = fluid.layers.gaussian_random([3])
        y = fluid.layers.fc(fluid.layers.sums(masks), 1, param_attr=prefix + "v", bias_attr=False)
        loss = fluid.layers.mean(fluid.layers.square(y))
        fluid.optimizer.SGD(0.1).minimize(loss)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        found = []
        for _ in range(2):
            feed, fetches = {prefix + "x": np.ones((5, 4), "float32")}, [loss, noise, *masks]
            found += [v.tobytes() for v in exe.run(main, feed=feed, fetch_list=fetches, keep_scopes=machine)]
        return found


def test_equal_models_under_one_seed_are_equal_whatever_their_names() -> None:
    got = training("one")
    assert got == training("another") == training("third", machine=True) != training("one", seed=4)
    assert len(set(got)) == len(got), "masks and noise of different operators and runs differ"


def test_a_second_run_of_the_startup_program_gives_the_same_parameters() -> None:
    with fluid.fresh() as (_, startup), fluid.scope_guard(fluid.Scope()):
        startup.random_seed = 11
        w = fluid.layers.fc(fluid.layers.data("x", [4]), 3).param.name
        exe = fluid.Executor(fluid.CPUPlace())
        one, other = (exe.run(startup, fetch_list=[w])[0] for _ in range(2))
        np.testing.assert_array_equal(one, other)
