"""`--full` keeps a list of what has passed, so that an interrupted run goes on where it stopped.

The list (`.test-full` in the checkout) belongs to one state of the sources; after any change the next run starts over.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from tests.tools.workers import is_worker, leave_out

ROOT = Path(__file__).parents[2]


def fingerprint(root: Path = ROOT) -> str:
    """A digest of all sources: packages, notebooks, tests and pyproject.toml.

    Args:
        root: the checkout.

    Returns:
        Sixteen hexadecimal digits.

    Example:
        >>> len(fingerprint())
        16
    """
    digest = hashlib.sha256((root / "pyproject.toml").read_bytes())
    for folder in ("fluidnb", "kernels", "magics", "notebooks", "tests"):
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts and ".ipynb_checkpoints" not in path.parts:
                digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


class Resume:
    """The list of passed tests of a `--full` run.

    Args:
        path: the file that holds it: the fingerprint, then a test on each line.
        state: the fingerprint of the sources.

    Attributes:
        before: the tests that passed in runs before this one.

    Example:
        >>> Resume(Path("/nowhere"), "0123456789abcdef").before
        frozenset()
    """

    def __init__(self, path: Path, state: str) -> None:
        self.path = path
        self.state = state
        lines = path.read_text().splitlines() if path.exists() else []
        self.before = frozenset(lines[1:]) if lines[:1] == [state] else frozenset()
        self.passed: set[str] = set()

    def pytest_sessionstart(self) -> None:
        """A list of another state is none."""
        if not self.before:
            self.path.write_text(self.state + "\n")

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker of pytest-xdist what to leave out, one that replaces a crashed one the same as the first."""
        node.workerinput["passed_before"] = sorted(self.before)

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave out what has passed before."""
        leave_out(self.before, config, items)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write down a test when its last phase is over and nothing failed."""
        if report.failed:
            self.passed.discard(report.nodeid)
        elif report.when == "call" and report.passed:
            self.passed.add(report.nodeid)
        elif report.when == "teardown" and report.nodeid in self.passed:
            with self.path.open("a") as file:
                file.write(report.nodeid + "\n")

    def pytest_report_header(self) -> str:
        """Say how much is done."""
        return f"resuming: {len(self.before)} tests passed before ({self.path.name})"

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """When all has passed, the next run is a new one."""
        if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) and not session.testsfailed:
            self.path.unlink(missing_ok=True)


def pytest_configure(config: pytest.Config) -> None:
    """Take part in `--full` runs only."""
    if not is_worker(config) and config.getoption("--full") and not config.getoption("collectonly"):
        config.pluginmanager.register(Resume(ROOT / ".test-full", fingerprint()), "resume")
