"""FLAGS_native=auto: when a segment is compiled, and that a run never waits for it."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.memory import flags
from fluidnb.runtime import native_calls, wait_for_native_code
from fluidnb.runtime.native import compiler, segment_code
from fluidnb.runtime.native.segment_code import OFTEN

FEED = {"x": np.ones((2, 3), "float32")}


def program() -> Any:
    """Two operators."""
    return layers.relu(layers.scale(layers.data("x", [3]), 2.0))


def test_runs_go_on_while_it_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    fluid.set_flags({"FLAGS_native": "auto"})
    finish, real = threading.Event(), compiler.library

    def slow(text: str) -> Any:
        assert finish.wait(60)
        return real(text)

    monkeypatch.setattr(compiler, "library", slow)
    out, exe, main = program(), fluid.Executor(), fluid.default_main_program()
    for _ in range(3 * OFTEN):
        exe.run(main, FEED, [out])
    assert not native_calls(main) and not wait_for_native_code(0.01)
    finish.set()
    assert wait_for_native_code() and native_calls(main)
    assert exe.run(main, FEED, [out])[0].tolist() == [[2.0] * 3] * 2


def test_few_runs_compile_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    fluid.set_flags({"FLAGS_native": "auto"})
    monkeypatch.setattr(compiler, "library", lambda text: pytest.fail("it compiled"))
    out, exe = program(), fluid.Executor()
    for _ in range(OFTEN - 1):
        exe.run(feed=FEED, fetch_list=[out])
    assert wait_for_native_code(0.01)


def test_no_thread_stays() -> None:
    fluid.set_flags({"FLAGS_native": "auto"})
    before = threading.active_count()
    out, exe, main = program(), fluid.Executor(), fluid.default_main_program()
    for _ in range(OFTEN + 1):
        exe.run(main, FEED, [out])
    assert wait_for_native_code() and native_calls(main)
    for thread in threading.enumerate():
        if thread.name == "compiler of native code":
            thread.join(10)
    assert threading.active_count() == before


def test_runs_of_little_time_compile_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    fluid.set_flags({"FLAGS_native": "auto"})
    monkeypatch.setattr(segment_code, "LONG", 60.0)
    monkeypatch.setattr(compiler, "library", lambda text: pytest.fail("it compiled"))
    out, exe = program(), fluid.Executor()
    for _ in range(3 * OFTEN):
        exe.run(feed=FEED, fetch_list=[out])
    assert wait_for_native_code(0.01)


def test_auto_is_the_default() -> None:
    assert flags.FLAGS["native"].default == "auto"


def test_a_stop_in_the_calls_is_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C replaces a call for a moment; native code is made of those that were bound."""
    fluid.set_flags({"FLAGS_native": "auto"})
    out, exe, main = program(), fluid.Executor(), fluid.default_main_program()
    exe.run(main, FEED, [out])
    hot: Any = exe._hot
    code = hot.root.code
    kept = code.plain.calls[-1]
    code.plain.calls[-1] = (lambda: pytest.fail("the stop was compiled"), ())
    code.build()
    code.plain.calls[-1] = kept
    assert code.native[-1].ops[-1].desc.optype == "relu"
    assert exe.run(main, FEED, [out])[0].tolist() == [[2.0] * 3] * 2
