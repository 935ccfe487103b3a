"""The garbage collector leaves what was imported and collected alone.

A worker holds up to 17,000 collected tests until the end, and each full collection walked through all of them. A test
that calls `gc.collect()` forty times took a minute in place of four seconds.
"""

from __future__ import annotations

import gc

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Freeze what lives until the end."""
    gc.collect()
    gc.freeze()
