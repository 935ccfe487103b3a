"""Tests with processes, threads, interrupts or pages of their own may come late on cores that are busy with others."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What fails three times has failed; each try is told."""
    for item in items:
        if item.get_closest_marker("browser") or item.get_closest_marker("live"):
            item.add_marker(pytest.mark.flaky(reruns=2))
