"""Scripts about evaluators, profiles, drawings, data sets and readers, run as they stand through compat.

The folder ``tools`` is written as people wrote for versions 0.11 to 1.4; nothing in it knows of fluidnb. Each script
checks what it computes, and says that it came to its end.
"""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest

import fluidnb as fluid
from fluidnb import compat
from fluidnb.data import seeding
from fluidnb.data.dataset import common

SCRIPTS = sorted(path for path in (Path(__file__).parent / "tools").glob("*.py") if path.stem != "conftest")


@pytest.fixture(autouse=True)
def paddle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Paddle's names, fresh programs, an empty cache of data sets, and a folder to write in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(common, "DATA_HOME", str(tmp_path / "cache"))
    compat.install(force=True)
    fluid.seed(0)
    with fluid.fresh():
        yield
    seeding.seed(None)
    compat.uninstall()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out.splitlines()[-1] == "done"


def test_there_are_ten() -> None:
    assert len(SCRIPTS) >= 10
