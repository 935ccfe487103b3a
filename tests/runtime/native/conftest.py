"""A separate cache folder and the flags of before, for tests of native code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import fluidnb as fluid
from fluidnb.memory import flags
from fluidnb.runtime.native import matrix_products, segment_code


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder of all tests that change nothing in it."""
    return tmp_path_factory.mktemp("native")


@pytest.fixture(autouse=True)
def separate(shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """New programs, the shared cache folder, no failure of before, short runs count; afterwards the flags of before.

    Products are those of numpy, so that bits can be compared.
    """
    monkeypatch.setattr(matrix_products, "products", lambda: None)
    monkeypatch.setenv("FLUIDNB_CACHE", str(shared_cache))
    monkeypatch.setattr(segment_code, "LONG", 0.0)
    segment_code.forget()
    before = flags.values["native"]
    with fluid.fresh():
        yield
    flags.values["native"] = before
    segment_code.forget()
