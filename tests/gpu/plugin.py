"""The pytest plugin of `make test-gpu`: CUDAPlace is a GPU, and CUDA kernels run there beside their numpy twins.

It needs numpy, protobuf, pytest and cupy, and runs in a checkout where nothing is installed. What is left out is told:
modules of tests that need other packages, or no device, and tests that are about the CUDA emulator backend.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.gpu.emulator_backend_tests import is_about_the_emulator_backend

pytest_plugins = ["tests.tools.sampling", "tests.tools.apart", "tests.tools.shells"]

#: Modules of tests/cuda that compile for every architecture, or emulate: a device adds nothing to them.
_NO_DEVICE = ("test_compile", "test_mutants", "test_sanitized")
_REPORT = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Choose the device; without one there is nothing to run."""
    os.environ.setdefault("FLAGS_cuda_backend", "cupy")
    os.environ["CUDA_VISIBLE_DEVICES"] = os.environ.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0]  # tests know one
    from fluidnb.memory import flags
    from fluidnb_kernels import emulator
    from fluidnb_kernels.cuda import backend
    from tests.cuda import twins
    from tests.cuda.devices import OnCupy

    missing = backend.missing()
    if missing:
        pytest.exit(f"make test-gpu: {missing}", 2)
    twins.device = OnCupy
    share = "fraction_of_gpu_memory_to_use"
    if f"FLAGS_{share}" not in os.environ:  # arrays of single operators are cupy's own, and workers share the device
        flags.set_flags({share: 0.5 / int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))})
    config.stash[_REPORT] = [f"device: {backend.device_name()}, {backend.named()}"]
    if emulator.missing():
        config.stash[_REPORT].append(f"skipped: tests of kernels beside OpTests ({emulator.missing()})")


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Name the device."""
    return config.stash[_REPORT]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out modules that need no device, or packages which are not there."""
    if collection_path.suffix != ".py" or not collection_path.name.startswith("test_"):
        return None
    path = collection_path.relative_to(config.rootpath)
    if path.stem in _NO_DEVICE:
        return _left_out(config, f"{path} (needs no device)")
    try:
        importlib.import_module(".".join(path.with_suffix("").parts))
    except ModuleNotFoundError as error:
        return _left_out(config, f"{path} (needs {error.name})")
    return None


def _left_out(config: pytest.Config, what: str) -> bool:
    said = config.stash[_REPORT]
    if f"left out: {what}" not in said:
        said.append(f"left out: {what}")
    return True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out, on a GPU, tests that are about its emulator backend."""
    from fluidnb.memory import flags

    if flags.values["cuda_backend"] == "emulator":
        return
    left = [item for item in items if isinstance(item, pytest.Function) and is_about_the_emulator_backend(item)]
    if left:
        config.stash[_REPORT].append(f"left out: {len(left)} tests that are about the CUDA emulator backend")
        config.hook.pytest_deselected(items=left)
        gone = set(left)
        items[:] = [item for item in items if item not in gone]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Skip a test that finds out by itself that a package is not there."""
    report = yield
    value = call.excinfo.value if call.excinfo else None
    for error in (value, getattr(value, "__context__", None)):
        if isinstance(error, ModuleNotFoundError) and error.name and not _is_there(error.name):
            report.outcome, report.longrepr = "skipped", (str(item.path), 0, f"Skipped: needs {error.name}")
    return report


def _is_there(module: str) -> bool:
    return find_spec(module.partition(".")[0]) is not None


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of pytest-xdist hands on what it left out."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["left_out"] = session.config.stash[_REPORT]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take what a worker left out; all leave out the same."""
    node.config.stash[_REPORT] = getattr(node, "workeroutput", {}).get("left_out", node.config.stash[_REPORT])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Tell the device, and what was left out."""
    for line in config.stash[_REPORT]:
        terminalreporter.write_line(line)
