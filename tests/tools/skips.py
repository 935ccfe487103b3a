"""In continuous integration a skipped test is a failed one: what a test needs, the project's own files install."""

from __future__ import annotations

import os
import re
from collections.abc import Generator

import pytest

#: The only reasons for which a test may be skipped in CI (regular expressions), each with why that is right.
ALLOWED: dict[str, str] = {
    r"no CUDA device": "the machines of CI have no GPU; the same kernels run on the emulator there",
    r"only root can give files away": "who runs the tests as a user cannot make files of another one",
    r"no clang": "gcc builds the same source with the same warnings; clang would be half a gigabyte more to install",
    r"needs a processor with AVX-512": "products of matrices in C are for those; elsewhere numpy computes them",
    r"no PyTorch": "`make bench` installs it, which takes longer than the one test that would use it",
}


def refused(report: pytest.TestReport | pytest.CollectReport) -> str | None:
    """The reason why a report must not be a skip.

    Args:
        report: what pytest made of a test, or of a module.

    Returns:
        The skip's reason when nothing in `ALLOWED` allows it, else None.

    Example:
        >>> refused(pytest.CollectReport("a.py", "skipped", ("a.py", 1, "Skipped: no Chromium"), []))
        'no Chromium'
    """
    if not report.skipped or hasattr(report, "wasxfail"):
        return None
    why = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    why = why.removeprefix("Skipped: ")
    return None if any(re.search(pattern, why) for pattern in ALLOWED) else why


def _judge(report: pytest.TestReport | pytest.CollectReport) -> None:
    why = refused(report) if os.environ.get("FLUIDNB_CI") else None
    if why is not None:
        report.outcome = "failed"
        report.longrepr = f"skipped in CI, which must have what its tests need: {why}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skipped test into a failed one."""
    report = yield
    _judge(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Turn a skipped module into a failed one."""
    report = yield
    _judge(report)
    return report
