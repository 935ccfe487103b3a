"""Tests with processes, threads, interrupts or pages of their own may come late on cores that are busy with others."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What fails three times has failed, in a browser five times; each try is told."""
    for item in items:
        browser = item.get_closest_marker("browser")
        if browser or item.get_closest_marker("live"):
            item.add_marker(pytest.mark.flaky(reruns=4 if browser else 2))
