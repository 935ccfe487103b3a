"""The command in a real terminal of 80 columns: colours, lines that fit, Ctrl-C."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.live

pexpect = pytest.importorskip("pexpect")
pyte = pytest.importorskip("pyte")

LOOP = """
import paddle.fluid as fluid
i, n = fluid.layers.zeros([1], "int64"), fluid.layers.fill_constant([1], "int64", 10**12)
more = fluid.layers.less_than(i, n)
with fluid.layers.While(more).block():
    fluid.layers.increment(i)
    fluid.layers.less_than(i, n, cond=more)
fluid.Executor().run()
"""


class Terminal:
    """A command in a terminal.

    Args:
        folder: where it runs.
        *words: its command line.
    """

    def __init__(self, folder: Path, *words: str) -> None:
        self.screen = pyte.Screen(80, 24)
        self.child: Any = pexpect.spawn(
            sys.executable, ["-m", "fluidnb", *words], cwd=str(folder), dimensions=(24, 80), encoding="utf-8",
            timeout=60, env={**os.environ, "TERM": "xterm-256color"},
        )  # fmt: skip

    def end(self) -> list[str]:
        """Wait for its end; the lines on the screen."""
        self.child.expect(pexpect.EOF)
        pyte.Stream(self.screen).feed(self.child.before)
        self.child.close()
        return [line.rstrip() for line in self.screen.display if line.strip()]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with a script that runs for ever."""
    (tmp_path / "loop.py").write_text(LOOP)
    yield tmp_path


def test_a_listing_has_colours_and_fits(folder: Path) -> None:
    terminal = Terminal(folder, "show", "loop.py")
    lines = terminal.end()
    assert lines[0] == "program  2 blocks, 6 ops" and terminal.child.exitstatus == 0
    assert any(line.endswith("loop.py:6") for line in lines) and "…" in lines[4], "long ones are cut, none is broken"
    row = terminal.screen.buffer[1]
    assert "".join(row[x].data for x in range(7)) == "forward" and row[0].fg == "5f87ff"


def test_ctrl_c_ends_a_run_and_names_the_line(folder: Path) -> None:
    (folder / "loop.py").write_text(LOOP.replace("fluid.Executor()", "print('go', flush=True); fluid.Executor()"))
    terminal = Terminal(folder, "run", "loop.py")
    terminal.child.expect_exact("go")
    terminal.child.sendintr()
    assert terminal.end()[-1] == "interrupted at loop.py:8" and terminal.child.exitstatus == 130
