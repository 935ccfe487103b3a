"""`-R NAME`, in ctest's spelling: only the tests whose name, file included, has a regular expression in it."""

from __future__ import annotations

import re

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `-R`."""
    parser.addoption("-R", dest="names", metavar="NAME", default="", help="only tests whose name has NAME in it")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse what is no regular expression."""
    try:
        re.compile(config.getoption("names"))
    except re.error as error:
        raise pytest.UsageError(f"-R takes a regular expression: {error}") from None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the others."""
    wanted = re.compile(config.getoption("names"))
    others = [item for item in items if not wanted.search(item.nodeid)]
    if others:
        items[:] = [item for item in items if wanted.search(item.nodeid)]
        config.hook.pytest_deselected(items=others)
