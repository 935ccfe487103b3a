"""A real IPython in a real terminal: typed cells, colours, live progress, Tab; and the demonstration."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.tools.terminals import end

ROOT = Path(__file__).resolve().parents[2]
pexpect = pytest.importorskip("pexpect")


def environment(home: Path) -> dict[str, str]:
    """An environment with this checkout, and a separate home folder."""
    paths = os.pathsep.join(str(ROOT / folder) for folder in ("", "kernels", "magics"))
    return {**os.environ, "PYTHONPATH": paths, "IPYTHONDIR": str(home), "HOME": str(home), "TERM": "xterm-256color"}


class Typed:
    """An IPython that a test types into.

    Args:
        home: where it may write.
        options: its command line.
    """

    def __init__(self, home: Path, *options: str) -> None:
        self.child: Any = pexpect.spawn(
            sys.executable, ["-m", "IPython", "--no-banner", "--no-confirm-exit", *options], env=environment(home),
            dimensions=(50, 130), encoding="utf-8", timeout=90,
        )  # fmt: skip
        self.number = 1
        self.child.expect_exact(f"In [{self.number}]:")

    def cell(self, *lines: str) -> str:
        """Type a cell and wait for the next prompt.

        Returns:
            What was shown, without colours.
        """
        for line in lines:
            self.child.sendline(line)
        if lines[0].startswith("%%"):  # two empty lines end a cell magic
            self.child.sendline("")
            self.child.sendline("")
        self.number += 1
        self.child.expect_exact(f"In [{self.number}]:")
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.child.before)


@pytest.fixture
def simple(tmp_path: Path) -> Iterator[Typed]:
    """IPython with its simple prompt, as in a dumb terminal."""
    typed = Typed(tmp_path, "--simple-prompt")
    yield typed
    end(typed.child)


@pytest.mark.slow
def test_a_session(simple: Typed) -> None:
    simple.cell("%load_ext fluidnb")
    simple.cell("%%fluid data", "x = layers.data('x', shape=[4])", "y = layers.data('y', shape=[1])")
    simple.cell("%%fluid net", "h = layers.fc(x, 8, act='relu')", "pred = layers.fc(h, 1)")
    simple.cell("%%fluid loss", "loss = layers.mean(layers.square_error_cost(pred, y))",
                "ops, grads = fluid.optimizer.SGD(0.1).minimize(loss)")  # fmt: skip
    shown = simple.cell("%fluid show")
    assert "cell net, line 2" in shown
    simple.child.sendline("%fluid show")
    simple.number += 1
    simple.child.expect_exact(f"In [{simple.number}]:")
    assert "\x1b[" in simple.child.before, "no colours in a terminal"
    simple.cell("import numpy as np; X = np.ones((8, 4), 'float32'); Y = np.ones((8, 1), 'float32')")
    assert "loss" in simple.cell("%fluid run --feed x=X y=Y --fetch loss --steps 2000")
    assert "built again: loss" in simple.cell(
        "%%fluid net", "h = layers.fc(x, 9, act='relu')", "pred = layers.fc(h, 1)"
    )
    assert "restored: net, loss" in simple.cell("%fluid undo")
    error = simple.cell("%%fluid net", "h = layers.fc(x, 9, akt='relu')")
    assert "akt" in error
    assert "fluidnb/" not in error


@pytest.mark.slow
def test_a_profile_is_updated_while_training_runs(simple: Typed) -> None:
    simple.cell("%load_ext fluidnb")
    simple.cell("%%fluid data", "x = layers.data('x', shape=[4])")
    simple.cell("%%fluid loss", "loss = layers.mean(layers.fc(x, 8))",
                "ops, grads = fluid.optimizer.SGD(0.1).minimize(loss)")  # fmt: skip
    simple.cell("import numpy as np, time; X = np.ones((8, 4), 'float32'); exe = fluid.Executor()")
    assert "later runs are profiled" in simple.cell("%fluid profile --live")
    shown = simple.cell("for _ in range(5): time.sleep(0.6); r = exe.run(feed={'x': X}, fetch_list=[loss])")
    lines = re.findall(r"profile of run (\d+): .*mul", shown)
    assert lines[0] == "1" and len(lines) >= 2, "a line while it runs, and others later"
    assert shown.rindex("timeline  ") > shown.rindex("profile of run"), "the table comes after the cell"
    assert "timeline" not in simple.cell("1 + 1")
    assert "not profiled any more" in simple.cell("%fluid profile --live")
    assert "profile of run" not in simple.cell("r = exe.run(feed={'x': X}, fetch_list=[loss])")


@pytest.mark.slow
def test_a_block_over_several_cells(simple: Typed) -> None:
    simple.cell("%load_ext fluidnb")
    simple.cell("%%fluid data", "i, n = layers.zeros([1], 'int64'), layers.fill_constant([1], 'int64', 3)",
                "more = layers.less_than(i, n)", "turns = layers.While(more)")  # fmt: skip
    assert "turns  0 ops, open" in simple.cell("%fluid block open turns")
    assert "add  1 op in block 1 of turns" in simple.cell("%%fluid add --in turns", "layers.increment(i, 1);")
    simple.cell("%%fluid test --in turns", "layers.less_than(i, n, cond=more);")
    simple.child.sendline("%fluid block")
    simple.number += 1
    simple.child.expect_exact(f"In [{simple.number}]:")
    assert "└─ " in simple.child.before
    assert re.search(r"\x1b\[1;38[;\d]*mopen\x1b", simple.child.before), "what is open stands out"
    assert "turns  1 op, closed" in simple.cell("%fluid block close turns")
    assert re.search(r"└─ block 1  in block 0 +while  turns  from cells add, test", simple.cell("%fluid block"))
    assert "[3]" in simple.cell("%fluid run --fetch i")
    error = simple.cell("%%fluid add --in turn", "pass")
    assert 'Did you mean "turns"?' in error


@pytest.mark.slow
def test_tab_in_the_terminal(tmp_path: Path) -> None:
    pyte = pytest.importorskip("pyte")
    screen = pyte.Screen(130, 50)
    stream = pyte.Stream(screen)
    child: Any = pexpect.spawn(
        sys.executable, ["-m", "IPython", "--no-banner", "--no-confirm-exit"], env=environment(tmp_path),
        dimensions=(50, 130), encoding="utf-8", timeout=90,
    )  # fmt: skip

    def wait_for(text: str) -> None:
        for _ in range(900):
            try:
                stream.feed(child.read_nonblocking(65536, 0.1))
            except pexpect.TIMEOUT:
                pass
            if any(text in row for row in screen.display):
                return
        raise AssertionError("\n".join(screen.display))

    wait_for("In [1]:")
    child.send("%load_ext fluidnb\r")
    wait_for("In [2]:")
    child.send("%fluid prog\t")
    wait_for("%fluid programs")
    child.send("\r")
    wait_for("In [3]:")
    end(child)


@pytest.mark.slow
def test_the_demonstration(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fluidnb_magics.demo"],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(r"test accuracy (0\.\d+) \(wanted 0.95\), all in ([\d.]+) s", done.stdout)
    assert found is not None
    assert float(found[1]) >= 0.95
    assert float(found[2]) < 60
    assert "Traceback" not in done.stdout + done.stderr
    assert "\x1b" not in done.stdout, "colours in a pipe"


def test_a_failing_cell_fails_the_demonstration(tmp_path: Path) -> None:
    code = (
        "from fluidnb_magics import demo\ndemo.CELLS = (*demo.CELLS[:2], ('', '%%fluid net\\nnope'))\n"
        "raise SystemExit(demo.main([]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(tmp_path), capture_output=True, text=True, timeout=90
    )
    assert done.returncode == 1
    assert "nope" in done.stdout + done.stderr


@pytest.mark.slow
def test_trainers_are_left_joined_attached_to_and_stopped(simple: Typed) -> None:
    simple.cell("%load_ext fluidnb")
    simple.cell("import itertools, numpy as np; batch = {'x': np.ones((4, 4), 'float32')}")
    simple.cell("%%fluid net", "x = layers.data('x', [4])", "loss = layers.mean(layers.fc(x, 3))",
                "fluid.optimizer.SGD(0.1).minimize(loss)")  # fmt: skip
    for line in ("%fluid train itertools.repeat(batch) --trainers 2 --pservers 1", "%fluid train --join"):
        simple.child.sendline(line)
        simple.number += 1
        simple.child.expect("3/3 roles run")
        simple.child.sendintr()
        simple.child.expect_exact("continues in the background")
        simple.child.expect_exact(f"In [{simple.number}]:")
    assert "mul(" in simple.cell("%fluid attach trainer1")
    assert "trainer1  paused" in simple.cell("%fluid roles")
    assert "elementwise_add" in simple.cell("%fluid next")
    assert "listen_and_serv" in simple.cell("%fluid attach pserver0")
    assert "iteration 0" in simple.cell("%fluid step")
    assert "has ended" in simple.cell("%fluid debug off")
    shown = simple.cell("%fluid train --stop")
    assert "its parameters are in the scope" in shown and "trainer0  ended" in shown
