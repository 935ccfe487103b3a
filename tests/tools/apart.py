"""Tests do not meet in default programs, scopes and names."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
import fluidnb.distributed  # pytest would create a second module of each that a package imports while it is collected


@pytest.fixture(autouse=True)
def apart(doctest_namespace: dict[str, Any]) -> Iterator[None]:
    """New default programs, scope, name counters and cells for every test and doctest; examples know fluid and np."""
    doctest_namespace.update(fluid=fluid, np=np)
    with fluid.fresh():
        yield
        if (extension := sys.modules.get("fluidnb_magics.extension")) is not None:
            extension.unload()  # the session of cells without a shell, of fluidnb.ui
