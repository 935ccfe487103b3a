"""The pytest plugin of this project, loaded by the options in pyproject.toml, so that doctests have it too."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid

_PARTS = ("sampling", "live", "skips", "names", "workers", "resume", "shells")
pytest_plugins = [f"tests.tools.{part}" for part in _PARTS]


def pytest_configure(config: pytest.Config) -> None:
    """A shell starts what runs in the background with Ctrl-C switched off; tests of interrupts need it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def apart(doctest_namespace: dict[str, Any]) -> Iterator[None]:
    """Every test and doctest has new default programs, scope and name counters; examples know fluid and np."""
    doctest_namespace.update(fluid=fluid, np=np)
    with fluid.fresh():
        yield
