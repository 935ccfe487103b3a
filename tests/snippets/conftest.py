"""The snippets of the design papers are old scripts: they `import paddle`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fluidnb import compat


@pytest.fixture(autouse=True)
def paddle() -> Iterator[None]:
    """Paddle's names for the length of a snippet."""
    compat.install(force=True)
    yield
    compat.uninstall()
