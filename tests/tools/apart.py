"""Tests do not meet in default programs, scopes and names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
import fluidnb.distributed  # pytest would create a second module of each that a package imports while it is collected


@pytest.fixture(autouse=True)
def apart(doctest_namespace: dict[str, Any]) -> Iterator[None]:
    """Every test and doctest has new default programs, scope and name counters; examples know fluid and np."""
    doctest_namespace.update(fluid=fluid, np=np)
    with fluid.fresh():
        yield
