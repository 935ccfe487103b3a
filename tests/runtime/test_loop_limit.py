"""FLAGS_max_loop_iterations: a loop that does not end says so; what ends in ten million iterations is let alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet, OpValueError
from fluidnb.memory import flags

L = fluid.layers


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Flags as they were, after the test."""
    before = dict(flags.values)
    yield
    flags.values.update(before)


def limit(n: int) -> None:
    """Allow so many iterations."""
    fluid.set_flags({"FLAGS_max_loop_iterations": n})


def counting(forgotten: bool = False) -> tuple[Any, int]:
    """A loop that counts to n, or for ever: the counter, and the line of the loop."""
    i, n = L.zeros([1], "int64"), L.data("n", [1], dtype="int64", append_batch_size=False)
    more = L.less_than(i, n)
    with L.While(more).block():
        if not forgotten:
            L.increment(i)
        L.less_than(i, n, cond=more)
    line = fluid.default_main_program().global_block().ops[-1].where.line
    return i, line


def run(n: int, fetch: Any, machine: bool = False) -> Any:
    """Count."""
    exe = fluid.Executor(fluid.CPUPlace())
    feed = {"n": np.full(1, n)}
    return exe.run(feed=feed, fetch_list=[fetch], keep_scopes=machine)[0].item()


def test_there_is_a_limit_by_default_that_a_loop_of_some_length_does_not_meet() -> None:
    assert flags.FLAGS["max_loop_iterations"].default == 10_000_000
    assert run(100_000, counting()[0]) == 100_000


@pytest.mark.parametrize("machine", [False, True])
def test_the_limit_itself_is_allowed(machine: bool) -> None:
    i, _ = counting()
    limit(7)
    for n in (7, 0, 7, 3):
        assert run(n, i, machine) == n
        with pytest.raises(EnforceNotMet, match="7 times"):
            run(8, i, machine)
    limit(0)
    assert run(8, i, machine) == 8


@pytest.mark.parametrize("machine", [False, True])
def test_what_an_endless_loop_says(machine: bool) -> None:
    i, line = counting(forgotten=True)
    limit(1000)
    with pytest.raises(EnforceNotMet) as caught:
        run(1, i, machine)
    text = str(caught.value)
    assert text.startswith("while has run block 1 1000 times, and its condition still holds.")
    for part in ("(while) in block 0", f"{Path(__file__).name}:{line}", "bool[1]", "iteration 1001",
                 "less_than(i, n, cond=cond)", "FLAGS_max_loop_iterations"):  # fmt: skip
        assert part in text, text
    assert re.search(r"Condition: +less_than_\S+ +bool\[1\]", text), text


def test_the_limit_holds_for_each_time_a_loop_is_entered() -> None:
    outer, total = L.zeros([1], "int64"), L.zeros([1], "int64")
    n = L.data("n", [1], dtype="int64", append_batch_size=False)
    more = L.less_than(outer, n)
    with L.While(more).block():
        inner = L.zeros([1], "int64")
        again = L.less_than(inner, n)
        with L.While(again).block():
            L.increment(total)
            L.increment(inner)
            L.less_than(inner, n, cond=again)
        L.increment(outer)
        L.less_than(outer, n, cond=more)
    limit(5)
    assert run(5, total) == 25
    with pytest.raises(EnforceNotMet, match="block 2 5 times"):
        run(6, total)


def test_a_limit_is_no_negative_number() -> None:
    with pytest.raises(OpValueError, match="0 or more"):
        limit(-1)


@pytest.mark.parametrize("how", ["run", "interpret"])
def test_a_condition_that_becomes_three(how: str) -> None:
    """Found by random tests: bare ValueError of numpy."""
    i, n = (L.fill_constant([1], "int64", v) for v in (0, 3))
    sizes = L.data("sizes", [-1], dtype="int64", append_batch_size=False)
    more = L.less_than(i, n)
    with L.While(more).block():
        L.increment(i)
        L.less_than(sizes, n, cond=more)
    exe = fluid.Executor()
    feed = {"sizes": np.zeros(3, "int64")}
    with pytest.raises(EnforceNotMet, match="condition of while must hold one element") as caught:
        if how == "run":
            exe.run(feed=feed, fetch_list=[i])
        else:
            exe.interpret(feed=feed, fetch_list=[i]).run()
    assert caught.value.received == "3 elements"
