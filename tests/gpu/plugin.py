"""The pytest plugin of `make test-gpu`: CUDA kernels run on a GPU beside their numpy twins.

It needs numpy, protobuf, pytest and cupy, and runs in a checkout where nothing is installed; modules of tests that ask
for more are left out, and told.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

pytest_plugins = ["tests.tools.sampling", "tests.tools.apart"]

_REPORT = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Choose the device; without one there is nothing to run."""
    os.environ.setdefault("FLAGS_cuda_backend", "cupy")
    from fluidnb_kernels.cuda import backend
    from tests.cuda import twins
    from tests.cuda.devices import OnCupy

    missing = backend.missing()
    if missing:
        pytest.exit(f"make test-gpu: {missing}", 2)
    twins.device = OnCupy
    config.stash[_REPORT] = [f"device: {backend.device_name()}"]


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Name the device."""
    return config.stash[_REPORT]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out modules that need packages which are not there."""
    if collection_path.suffix != ".py":
        return None
    lines = collection_path.read_text().splitlines()
    words = [line.split() for line in lines if line.startswith(("import ", "from "))]
    missing = [w[1].split(".")[0] for w in words if importlib.util.find_spec(w[1].split(".")[0]) is None]
    if missing:
        config.stash[_REPORT].append(f"left out: {collection_path.name} (needs {', '.join(missing)})")
        return True
    return None
