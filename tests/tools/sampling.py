"""Large sets of cases are sampled, with a seed that every run prints; `--full` (make test-full) takes them whole."""

from __future__ import annotations

import os
import random
import secrets
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import pytest

T = TypeVar("T")

#: The seed of this run: what FLUIDNB_SEED says, or a new one.
SEED = int(os.environ.get("FLUIDNB_SEED") or secrets.randbits(31))

_full = False


def sample(cases: Sequence[T], n: int) -> list[T]:
    """Some of a large set of test cases, in their own order; with `--full`, all of them.

    Args:
        cases: all there are.
        n: how many a normal run takes.

    Returns:
        The chosen ones, the same for the same seed.

    Example:
        >>> len(sample(range(1000), 10)) in (10, 1000)
        True
    """
    if _full or len(cases) <= n:
        return list(cases)
    chosen = random.Random(f"{SEED} {len(cases)} {n}").sample(range(len(cases)), n)
    return [cases[i] for i in sorted(chosen)]


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Random numbers for one test: they depend on the run's seed and the test's name only."""
    return np.random.default_rng([SEED, *request.node.nodeid.encode()])


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--full`."""
    parser.addoption("--full", action="store_true", help="take large sets of cases whole; resumes an interrupted run")


def pytest_configure(config: pytest.Config) -> None:
    """Hand the seed to the workers of pytest-xdist, which are started with it."""
    global _full
    _full = config.getoption("--full")
    os.environ["FLUIDNB_SEED"] = str(SEED)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only a full run takes."""
    left = [] if _full else [item for item in items if item.get_closest_marker("full")]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]


def pytest_report_header() -> str:
    """The line that says how to repeat this run."""
    return f"cases: {'all' if _full else 'sampled'}, to repeat: FLUIDNB_SEED={SEED}"
