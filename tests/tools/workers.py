"""Several tests at a time: what the workers of pytest-xdist share, and who gets which tests.

`make test` starts a worker for each core; plain `pytest` starts none and runs everything in its own process.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from xdist.scheduler import LoadScopeScheduling

#: Folders whose tests share something costly (JupyterLab and its browser): one worker gets all of them.
TOGETHER = ("tests/browser",)


def is_worker(config: pytest.Config) -> bool:
    """Whether this process runs tests that another one hands out.

    Args:
        config: pytest's.

    Returns:
        False in a plain run and in the process that hands out.

    Example:
        >>> from types import SimpleNamespace
        >>> is_worker(SimpleNamespace(workerinput={})), is_worker(SimpleNamespace())
        (True, False)
    """
    return hasattr(config, "workerinput")


def unit(nodeid: str) -> str:
    """The unit that a test is handed out with: its file, or a whole folder of `TOGETHER`.

    Args:
        nodeid: pytest's name of the test.

    Returns:
        A path.

    Example:
        >>> unit("tests/op/test_rng.py::TestRng::test_seed[a::b]"), unit("tests/browser/test_tour.py::test_tour")
        ('tests/op/test_rng.py', 'tests/browser')
    """
    path = nodeid.partition("::")[0]
    return next((folder for folder in TOGETHER if path.startswith(folder + "/")), path)


def leave_out(passed: Collection[str], config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests.

    Args:
        passed: their names.
        config: pytest's.
        items: what was collected; those of `passed` are taken out.
    """
    done = [item for item in items if item.nodeid in passed]
    items[:] = [item for item in items if item.nodeid not in passed]
    if done:
        config.hook.pytest_deselected(items=done)


def pytest_configure(config: pytest.Config) -> None:
    """A worker's terminal has no size: in the process above, readline tells its children of 80 columns."""
    if is_worker(config):
        for name in ("COLUMNS", "LINES"):
            os.environ.pop(name, None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A worker leaves out what it was told to (`tests.tools.resume`), and puts files with few tests first.

    A test that takes long is seldom among many; so at the end there are short ones to hand out, and all workers end at
    the same time. What one worker gets whole takes longest of all, and starts before the rest.
    """
    if is_worker(config):
        leave_out(set(config.workerinput.get("passed_before", ())), config, items)
        sizes = Counter(unit(item.nodeid) for item in items)
        items.sort(key=lambda item: (unit(item.nodeid) not in TOGETHER, sizes[unit(item.nodeid)]))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Hand out whole files in their order, so that what a module sets up is set up once."""
    from xdist.scheduler import LoadScopeScheduling

    config.option.loadscopereorder = False

    class Units(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return unit(nodeid)

    return Units(config, log)
