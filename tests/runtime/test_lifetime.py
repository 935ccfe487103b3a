"""Lifetime of memory: unused memory is freed, and repeated runs need no more."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def bytes_of() -> dict[str, dict[int, list[int]]]:
    """Kind of loop -> steps -> bytes after each of four runs, and after the program is gone."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.runtime.lifetime"], cwd=ROOT, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return {kind: {int(n): seen for n, seen in rows.items()} for kind, rows in found.items()}


def test_a_loop_needs_no_more_from_run_to_run(bytes_of: dict[str, dict[int, list[int]]]) -> None:
    for rows in (bytes_of["array"], bytes_of["tensor"]):
        for seen in rows.values():
            assert seen[0] > 0
            assert len(set(seen[1:4])) == 1


def test_backward_through_a_loop_needs_memory_in_proportion_to_its_steps(
    bytes_of: dict[str, dict[int, list[int]]],
) -> None:
    needs = {n: seen[3] for n, seen in bytes_of["array"].items()}
    # an iteration keeps the array's element, its gradient, and what tanh and the product read: 4 tensors of 4 KB
    assert needs[200] - needs[100] <= 100 * 4 * 4096 * 1.5
    assert abs((needs[200] - needs[100]) - 2 * (needs[100] - needs[50])) <= 64 * 1024


def test_a_loop_without_arrays_or_backward_needs_the_same_however_long(
    bytes_of: dict[str, dict[int, list[int]]],
) -> None:
    assert bytes_of["tensor"][10][3] == bytes_of["tensor"][1000][3]


def test_a_program_that_nobody_holds_gives_its_memory_back(bytes_of: dict[str, dict[int, list[int]]]) -> None:
    assert all(seen[4] == 0 for kind in ("array", "tensor") for seen in bytes_of[kind].values())


def test_answers_of_guards_that_never_come_again_do_not_pile_up(bytes_of: dict[str, dict[int, list[int]]]) -> None:
    seen = bytes_of["answers"][6000]
    assert max(seen[4:]) <= max(seen[:4]) * 1.3  # one for each 1000 runs; it starts afresh after 4096
