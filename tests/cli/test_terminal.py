"""The command in a real terminal of 80 columns: colours, lines that fit, Ctrl-C."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

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


SCRIPT = """
import numpy as np
import paddle.fluid as fluid
x = fluid.layers.data("x", shape=[4])
loss = fluid.layers.mean(fluid.layers.fc(x, 3))
fluid.optimizer.SGD(0.1).minimize(loss)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
for k in range(2):
    print("loss", exe.run(feed={"x": np.ones((2, 4), "float32")}, fetch_list=[loss])[0].shape)
"""


def typed(terminal: Terminal, line: str, prompt: str = "(fluid) ") -> str:
    """Type a line; what the screen of 80 columns shows until the next prompt."""
    terminal.child.sendline(line)
    terminal.child.expect_exact(prompt)
    terminal.screen.reset()
    pyte.Stream(terminal.screen).feed(terminal.child.before)
    return "\n".join(row.rstrip() for row in terminal.screen.display if row.strip())


def test_a_prompt_for_a_script(folder: Path) -> None:
    (folder / "train.py").write_text(SCRIPT)
    terminal = Terminal(folder, "debug", "--prompt", "train.py")
    terminal.child.expect_exact("(fluid) ")
    assert "entry" in terminal.child.before and "mul" in terminal.child.before
    assert "op mean" in typed(terminal, "b op mean")
    shown = typed(terminal, "c")
    assert "step 2" in shown and "●▶ 2" in shown
    for name in ("elementwise_add(", "mean_grad(", "elementwise_add_grad("):
        assert name in shown, "the operator is never what is cut"
    assert typed(terminal, "x.sum()").splitlines()[1] == "x.sum()  8.0"
    assert 'Did you mean "print"' in typed(terminal, "prnt x")
    for line, step in (("n", 3), ("s", 4), ("rs", 3), ("rc", 2), ("bt", 2), ("l", 2), ("u op sgd", 7)):
        assert f"step {step} " in typed(terminal, line), line
    assert "no breakpoints" in typed(terminal, "d 1")
    terminal.child.sendline("c")
    assert terminal.end()[-1] == "loss (1,)" and terminal.child.exitstatus == 0


def test_enter_begins_a_prompt_while_it_waits_for_an_editor(folder: Path) -> None:
    (folder / "train.py").write_text(SCRIPT)
    terminal = Terminal(folder, "debug", "train.py")
    terminal.child.expect_exact("Enter begins a prompt here")
    assert "entry" in typed(terminal, "")
    terminal.child.sendline("q")
    assert "paused at step 0" in "\n".join(terminal.end()) and terminal.child.exitstatus == 130


FIT = """
import itertools
import numpy as np
import paddle.fluid as fluid
x = fluid.layers.data("x", shape=[4])
loss = fluid.layers.mean(fluid.layers.fc(x, 3))
fluid.optimizer.SGD(0.1).minimize(loss)
train_reader = lambda: itertools.repeat({"x": np.ones((4, 4), "float32")})
"""


def test_trainers_report_each_second_until_ctrl_c_which_leaves_no_process(folder: Path) -> None:
    (folder / "fit.py").write_text(FIT)
    terminal = Terminal(folder, "train", "fit.py", "--trainers", "2", "--pservers", "1")
    terminal.child.expect_exact("3 roles start")
    for _ in range(2):
        terminal.child.expect(r"[0-9.]+ s  trainer0  running  step [0-9,]+  [0-9,]+ samples/s")
        terminal.child.expect("pserver0  running")
    terminal.child.sendintr()
    assert terminal.end()[-1] == "interrupted" and terminal.child.exitstatus == 130
    assert not terminal.child.isalive()


ROLES = """
import numpy as np
import paddle.fluid as fluid
from fluidnb.distributed import LocalEngine
x = fluid.layers.data("x", shape=[4])
loss = fluid.layers.mean(fluid.layers.fc(x, 3))
fluid.optimizer.SGD(0.1).minimize(loss)
t = fluid.DistributeTranspiler()
t.transpile(0, pservers="ps:0,ps:1", trainers=2)
with LocalEngine(t) as engine:
    losses = engine.train(lambda trainer: [{"x": np.ones((4, 4), "float32")}] * 400, [loss])
print("steps", len(losses[0]))
"""


def test_the_prompt_goes_from_a_trainer_into_the_update_of_a_server(folder: Path) -> None:
    (folder / "roles.py").write_text(ROLES)
    child = Terminal(folder, "debug", "--prompt", "roles.py").child
    for line, shown in [
        ("roles", "trainer0.*paused here"), ("next", "elementwise_add"), ("attach pserver1", "listen_and_serv"),
        ("step", "iteration 0"), ("step", "wrote"), ("attach trainer9", "There is no role trainer9"),
        ("attach trainer1", "entry"), ("continue", "entry"),
    ]:  # fmt: skip
        child.expect_exact("(fluid) ")
        child.sendline(line)
        child.expect(shown)
    child.expect_exact("(fluid) ")
    child.sendline("detach")
    child.expect_exact("steps 400")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


def test_quit_at_the_prompt_in_a_role_ends_all_roles(folder: Path) -> None:
    (folder / "roles.py").write_text(ROLES)
    child = Terminal(folder, "debug", "--prompt", "roles.py").child
    child.expect_exact("(fluid) ")
    child.sendline("quit")
    child.expect_exact("left paused")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130
