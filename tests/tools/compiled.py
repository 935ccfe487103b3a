"""Products of matrices in C, compiled before the first test: all processes then have the same by FLAGS_native=auto."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def _products_in_c(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.config.getoption("part", None) != "test":
        from fluidnb.runtime.native.compiler import compiler
        from fluidnb.runtime.native.matrix_products import products

        found = products()
        if found is not None and compiler() is not None and os.environ.get("FLAGS_native") != "off":
            found.build()
    yield
