"""The pytest plugin of this project, loaded by the options in pyproject.toml, so that doctests have it too."""

from __future__ import annotations

import signal

import pytest

_PARTS = (
    "parts", "compiled", "sampling", "properties", "seeds", "apart", "garbage", "skips", "names", "workers", "resume",
    "shells",
)  # fmt: skip
pytest_plugins = [f"tests.tools.{part}" for part in _PARTS]


def pytest_configure(config: pytest.Config) -> None:
    """A shell starts what runs in the background with Ctrl-C switched off; tests of interrupts need it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
