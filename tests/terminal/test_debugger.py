"""The debugger in a real IPython on a screen of 110 characters: a loop, a failed RNN step, training that diverges."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.magics.test_terminal import environment
from tests.tools.terminals import end

pexpect = pytest.importorskip("pexpect")
pyte = pytest.importorskip("pyte")

PROGRAMS = """
import numpy as np
import fluidnb as fluid
from fluidnb import layers
exe = fluid.Executor()
ones = np.ones((1, 2), "float32")

loop = fluid.Program()
with fluid.program_guard(loop):
    x = layers.data("x", shape=[2])
    i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)
    total = layers.fill_constant([1], "float32", 0.0)
    more = layers.less_than(i, n)
    with layers.While(more).block():
        layers.increment(i)
        layers.assign(layers.elementwise_add(total, layers.reduce_sum(x)), total)
        layers.less_than(i, n, cond=more)

def refuse(a):
    if np.asarray(a).max() > 15: raise ValueError("more than 15")
    return np.asarray(a)

rnn = fluid.Program()
with fluid.program_guard(rnn):
    steps = layers.data("steps", shape=[3, 2, 2], append_batch_size=False)
    net = layers.StaticRNN()
    with net.step():
        one = net.step_input(steps)
        memory = net.memory(shape=[-1, 2], batch_ref=one)
        added = layers.elementwise_add(one, memory)
        out = layers.py_func(refuse, added, rnn.current_block().create_var(name="out", dtype="float32", shape=[-1, 2]))
        net.update_memory(memory, out)
        net.output(out)
    outs = net()

train, start = fluid.Program(), fluid.Program()
with fluid.program_guard(train, start):
    a = layers.data("a", shape=[2])
    h = layers.fc(a, 1, param_attr=fluid.initializer.Constant(2.0))
    loss = layers.mean(layers.square(layers.square(h)))
    fluid.optimizer.SGD(5.0).minimize(loss)
exe.run(start)
"""


class Screen:
    """An IPython in a terminal, as it looks.

    Args:
        home: where it may write.
    """

    def __init__(self, home: Path) -> None:
        self.screen = pyte.Screen(110, 60)
        self._stream = pyte.Stream(self.screen)
        self.child: Any = pexpect.spawn(
            sys.executable, ["-m", "IPython", "--no-banner", "--no-confirm-exit", "--simple-prompt", "--colors=Linux"],
            env=environment(home), dimensions=(60, 110), encoding="utf-8", timeout=90, cwd=str(home),
        )  # fmt: skip
        self.wait("In [1]:")

    def wait(self, text: str) -> str:
        """Read until a text is the last thing on the screen; what the screen shows."""
        for _ in range(600):
            try:
                self._stream.feed(self.child.read_nonblocking(65536, 0.05))
            except pexpect.TIMEOUT:
                rows = [row.rstrip() for row in self.screen.display if row.strip()]
                if rows and rows[-1].strip() == text:
                    return "\n".join(rows)
        raise AssertionError("\n".join(self.screen.display))

    def type(self, line: str, then: str = "(fluid)") -> str:
        """Type a line on a clean screen; what is shown until the next prompt."""
        self.screen.reset()
        self.child.sendline(line)
        return self.wait(then)


@pytest.fixture(scope="module")
def ipython(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Screen]:
    """An IPython with three programs, and the prompt's number in ``number``."""
    home = tmp_path_factory.mktemp("home")
    (home / "programs.py").write_text(PROGRAMS)
    screen = Screen(home)
    screen.type("%load_ext fluidnb", "In [2]:")
    screen.type("from programs import *", "In [3]:")
    yield screen
    end(screen.child)


@pytest.mark.slow
def test_a_loop_a_failed_step_and_a_search_for_nan(ipython: Screen) -> None:
    ipython.type("with fluid.debug(loop) as d:", "...:")
    ipython.type("    mark = d.stop_at('block 1@2')", "...:")
    ipython.type("    got = exe.run(loop, {'x': ones}, [total])", "...:")
    shown = ipython.type("")
    assert "breakpoint block 1@2" in shown and "while  ›  block 1, iteration 2" in shown and "●▶ 0" in shown
    assert "[4]" in ipython.type("print fill_constant_2.tmp_0")
    assert "[40]" in ipython.type("edit fill_constant_2.tmp_0 = 40")
    shown = ipython.type("back 2")
    assert "after 2 steps back" in shown and "iteration 1" in shown
    assert "[4]" in ipython.type("p fill_constant_2.tmp_0"), "the edit is gone"
    shown = ipython.type("who fill_constant_2.tmp_0")
    assert "before fill_constant_2.tmp_0 is written" in shown and "▶ 3" in shown and "iteration 1" in shown
    ipython.type("break at 1:1")
    assert "breakpoint at 1:1, backwards" in ipython.type("rcontinue")
    ipython.type("clear")
    ipython.type("continue", "In [4]:")
    assert "[6.]" in ipython.type("got", "In [5]:")

    shown = ipython.type("exe.run(rnn, {'steps': np.arange(12, dtype='float32').reshape(3, 2, 2)}, [outs])", "In [6]:")
    assert "more than 15" in shown and "iteration 2" in shown
    shown = ipython.type("%fluid debug", "In [7]:")
    assert "the operator failed" in shown and "iteration 2" in shown and "more than 15" in shown
    assert "[12, 15, 18, 21]" in ipython.type("%fluid print elementwise_add_1.tmp_0", "In [8]:")
    shown = ipython.type("%fluid back 4", "In [9]:")
    assert "iteration 1" in shown
    ipython.type("%fluid debug off", "In [10]:")

    ipython.type("%fluid nan on", "In [11]:")
    shown = ipython.type("for k in range(9): exe.run(train, {'a': ones}, [loss])", "In [12]:")
    assert "contains NAN/Inf" in shown
    shown = ipython.type("%fluid debug", "In [13]:")
    assert "the operator failed" in shown and "square" in shown
    shown = ipython.type("%fluid history fc_0.w_0", "In [14]:")
    assert "reads" in shown
    ipython.type("%fluid debug off", "In [15]:")
    ipython.type("%fluid nan off", "In [16]:")
