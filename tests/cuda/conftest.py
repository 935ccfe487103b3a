"""Compiling kernels takes time: a run that is not full takes every fourth test of this folder, by the run's seed."""

from __future__ import annotations

import zlib

import pytest

from tests.tools.sampling import SEED

#: Modules that choose by themselves, or are quick.
_WHOLE = ("test_catalog", "test_compile", "test_gemm", "test_mutants", "test_sanitized")
_ONE_IN = 4


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what another seed takes; cases of one function stay together, for they share kernels."""
    if config.getoption("--full"):
        return
    here = [item for item in items if item.path.parent == config.rootpath / "tests" / "cuda"]
    left = [item for item in here if item.path.stem not in _WHOLE and not _is_drawn(item)]
    if left:
        config.hook.pytest_deselected(items=left)
        gone = set(left)
        items[:] = [item for item in items if item not in gone]


def _is_drawn(item: pytest.Item) -> bool:
    function = item.nodeid.partition("[")[0]
    return zlib.crc32(f"{SEED} {function}".encode()) % _ONE_IN == 0
