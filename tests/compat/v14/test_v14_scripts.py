"""Scripts in the manner of versions 1.0 to 1.5, run as they stand through compat.

The folder ``scripts`` is written as people wrote in those days: Paddle's names at the top, unittest cases, decorators
that give a method programs of its own, scripts of the Book's kind. Nothing in it knows of fluidnb.
"""

from __future__ import annotations

import runpy
import sys
import unittest
from collections.abc import Iterator
from pathlib import Path

import pytest

import fluidnb as fluid
from fluidnb import compat

SCRIPTS = Path(__file__).parent / "scripts"
CASES = sorted(path.name for path in SCRIPTS.glob("*_case.py"))
BOOK = sorted(path.name for path in SCRIPTS.glob("*_book.py"))


@pytest.fixture(autouse=True)
def paddle(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Paddle's names, and the folder of the script, for the length of a test."""
    compat.install(force=True)
    monkeypatch.syspath_prepend(SCRIPTS)
    executor = dict(vars(fluid.executor))  # a script of those days reloads it
    with fluid.scope_guard(fluid.Scope()):
        yield
    vars(fluid.executor).update(executor)
    compat.uninstall()
    sys.modules.pop("decorators", None)


def methods(script: str) -> Iterator[unittest.TestCase]:
    """The test methods of a script, once its module has been run."""
    space = runpy.run_path(str(SCRIPTS / script))
    for kind in space.values():
        if isinstance(kind, type) and issubclass(kind, unittest.TestCase):
            yield from (kind(name) for name in unittest.defaultTestLoader.getTestCaseNames(kind))


@pytest.mark.parametrize("script", CASES)
def test_a_module_of_cases(script: str) -> None:
    count, result = 0, unittest.TestResult()
    for method in methods(script):
        with fluid.fresh():  # each process of those days began with empty programs
            method.run(result)
        count += 1
    assert result.testsRun == count >= 5
    assert not result.skipped
    assert result.wasSuccessful(), "\n".join(text for _, text in result.errors + result.failures)


@pytest.mark.parametrize("script", BOOK)
def test_a_chapter(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(SCRIPTS / script), run_name="__main__")
    assert capsys.readouterr().out.splitlines()[-1] == "done"


def test_there_are_eighty_and_more() -> None:
    assert sum(len(list(methods(script))) for script in CASES) >= 80
    assert len(BOOK) >= 2
