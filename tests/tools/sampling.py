"""Large sets of cases are sampled, always the same way; they are whole where someone asks for a file or a name.

All cases run with `--cases=all` (`--full`, make test-full), and by default where a file, a test, `-k` or `-R` is given.
In sampled runs, too, the cases of changed operators and of changed test files are whole (`tests.tools.changes`).
"""

from __future__ import annotations

import os
import re
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from tests.tools import changes

T = TypeVar("T")

#: The seed of random cases and of the choice among cases: the same in every run, unless FLUIDNB_SEED gives another.
SEED = int(os.environ.get("FLUIDNB_SEED") or 0)

#: Part of a case's text that differs from run to run.
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")

_all = False


def sample(cases: Sequence[T], n: int) -> list[T]:
    """Chooses some of a large set of test cases, by a hash of their names.

    Args:
        cases: all cases; a new one displaces at most one that was chosen.
        n: how many a sampled run takes, beside those of changed operators.

    Returns:
        The chosen cases, in their order; all of them in runs of all cases, and where the calling file has changed.

    Example:
        >>> len(sample(range(1000), 10)) in (10, 1000)
        True
    """
    if takes_all(sys._getframe(1).f_globals["__file__"]) or len(cases) <= n:
        return list(cases)
    names = [_ADDRESS.sub("", str(getattr(case, "id", None) or case)) for case in cases]
    chosen = set(sorted(range(len(cases)), key=lambda i: (zlib.crc32(f"{SEED} {names[i]}".encode()), i))[:n])
    return [case for i, case in enumerate(cases) if i in chosen or changes.mentions(names[i])]


def takes_all(file: str | Path | None = None) -> bool:
    """Whether this run takes all cases.

    Args:
        file: the file they are from; None where they are from none.
    """
    return _all or (file is not None and Path(file) in changes.files())


def is_drawn(name: str, one_in: int) -> bool:
    """Whether a sampled run takes something.

    Args:
        name: its name; what names a changed operator is always taken.
        one_in: how many there are for each one that is taken.

    Example:
        >>> all(is_drawn(name, 1) for name in "abc")
        True
    """
    return _all or zlib.crc32(f"{SEED} {name}".encode()) % one_in == 0 or changes.mentions(name)


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Random numbers for one test: they depend on the seed and the test's name only."""
    return np.random.default_rng([SEED, *request.node.nodeid.encode()])


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--cases` and `--full`."""
    parser.addoption("--cases", choices=("sampled", "all"), help="default: all where a file or a name is given")
    parser.addoption("--full", action="store_true", help="run all cases of all tests; resumes an interrupted run")


def pytest_configure(config: pytest.Config) -> None:
    """Decide how many cases run, and hand the seed to the workers of pytest-xdist, which are started with it."""
    global _all
    asked = config.getoption("cases")
    _all = config.getoption("full") or (asked == "all" if asked else _is_named(config))
    os.environ["FLUIDNB_SEED"] = str(SEED)


def _is_named(config: pytest.Config) -> bool:
    """Whether a file, a test or a name is given on the command line."""
    paths = [config.invocation_params.dir / argument.partition("::")[0] for argument in config.args]
    return bool(config.option.keyword or config.getoption("names", "") or any(path.is_file() for path in paths))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only a run of all cases takes; of changed files, too, for it may need what only make test-full
    installs."""
    left = [] if _all else [item for item in items if item.get_closest_marker("full")]
    if left:
        config.hook.pytest_deselected(items=left)
        gone = set(left)
        items[:] = [item for item in items if item not in gone]


def pytest_report_header() -> str:
    """The line that says how to repeat this run."""
    changed = f", all of changed operators ({', '.join(sorted(changes.operators()))})" if changes.operators() else ""
    return f"cases: {'all' if _all else f'sampled{changed}'}, FLUIDNB_SEED={SEED}"
