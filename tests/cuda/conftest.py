"""Compiling kernels takes time: a sampled run takes every fourth test of this folder, always the same."""

from __future__ import annotations

import pytest

from tests.tools.sampling import is_drawn, takes_all

#: Modules that choose by themselves, or are quick.
_WHOLE = ("test_catalog", "test_compile", "test_gemm", "test_mutants", "test_sanitized")
_ONE_IN = 4


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out three of four functions; the cases of one stay together, for they share kernels."""
    here = [item for item in items if item.path.parent == config.rootpath / "tests" / "cuda"]
    left = [item for item in here if item.path.stem not in _WHOLE and not _is_drawn(item)]
    if left:
        config.hook.pytest_deselected(items=left)
        gone = set(left)
        items[:] = [item for item in items if item not in gone]


def _is_drawn(item: pytest.Item) -> bool:
    return takes_all(item.path) or is_drawn(item.nodeid.partition("[")[0], _ONE_IN)
