"""Scripts in the manner of versions 0.10 to 0.12, run as they stand through compat.

The folder ``scripts`` is written as people wrote in those days: Paddle's names at the top, unittest cases, operators
made by keywords and run in scopes. Nothing in it knows of fluidnb.
"""

from __future__ import annotations

import ast
import runpy
import sys
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fluidnb as fluid
from fluidnb import compat

SCRIPTS = Path(__file__).parent / "scripts"


def cases() -> list[Any]:
    """Every test method of the unittest cases."""
    return [
        pytest.param(path.name, case.name, method.name, id=f"{path.stem}-{case.name}-{method.name}")
        for path in sorted(SCRIPTS.glob("*.py"))
        for case in ast.parse(path.read_text()).body
        if isinstance(case, ast.ClassDef)
        for method in case.body
        if isinstance(method, ast.FunctionDef) and method.name.startswith("test")
    ]


def programs() -> list[str]:
    """The scripts without unittest cases that are no helpers of others."""
    return [path.name for path in sorted(SCRIPTS.glob("*.py")) if "unittest" not in path.read_text()]


@pytest.fixture(autouse=True)
def paddle(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Paddle's names, and the folder of the script, for the length of a test."""
    compat.install(force=True)
    monkeypatch.syspath_prepend(SCRIPTS)
    before = set(sys.modules)
    with fluid.scope_guard(fluid.Scope()):
        yield
    compat.uninstall()
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and str(SCRIPTS) in str(sys.modules[name].__file__):
            del sys.modules[name]


@pytest.mark.parametrize(("script", "case", "method"), cases())
def test_case(script: str, case: str, method: str) -> None:
    test = runpy.run_path(str(SCRIPTS / script))[case](method)
    result = unittest.TestResult()
    unittest.TestSuite([test]).run(result)
    assert result.testsRun == 1
    assert not result.skipped
    assert result.wasSuccessful(), "\n".join(text for _, text in result.errors + result.failures)


@pytest.mark.parametrize("script", programs())
def test_program(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(SCRIPTS / script), run_name="__main__")
    printed = capsys.readouterr().out.splitlines()
    assert printed
    assert printed[-1] == "done"


def test_there_are_thirty_and_more() -> None:
    assert len(cases()) >= 60
    assert len(programs()) >= 3
