"""No code reads the sentence that says why a session stopped: random texts in its place change nothing."""

from __future__ import annotations

import random

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.dap import ScriptSources
from fluidnb.debug import stop as stops
from fluidnb.debug.breakpoints import Breakpoint
from fluidnb.debug.debugger import Debugger
from fluidnb.debug.stop import Direction, Stop, StopKind, stop_text
from tests.dap import programs
from tests.dap.client import Direct
from tests.dap.programs import ROW, line_of

WORDS = ("breakpoint op mul", "the end", "paused", "entry", "after 1 step", ", backwards", "NaN", "it failed", "")


@pytest.fixture(params=range(3))
def texts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each stop is worded by words that mean something else, another time otherwise."""
    dice = random.Random(request.param)

    def text(stop: Stop) -> str:
        return " ".join(dice.choices(WORDS, k=dice.randrange(4)))

    monkeypatch.setattr(stops, "stop_text", text)


def test_every_kind_of_stop_has_a_sentence_of_its_own() -> None:
    facts = {"breakpoint": Breakpoint("op", "mul"), "names": ("x",), "error": "TypeError"}
    rows = {kind: stop_text(Stop(kind, **facts)) for kind in StopKind}
    at = (StopKind.BREAKPOINT, StopKind.WATCHPOINT, StopKind.NAN)
    assert all(rows.values()) and len({text for kind, text in rows.items() if kind not in at}) == len(rows) - len(at)
    turning = (StopKind.RUNNING, StopKind.STEP, StopKind.NEXT, *at)
    both = {kind: stop_text(Stop(kind, Direction.BACKWARD, **facts)) for kind in turning}
    assert all(rows[kind] != both[kind] for kind in turning)


def test_a_snapshot_keeps_its_breakpoint_when_that_one_moves() -> None:
    layers.relu(layers.data("x", shape=[2]))
    d = fluid.debug(feed={"x": ROW})
    d.back()
    set_here = d.stop_at("op relu")
    assert d.continue_().stop.kind is StopKind.END and d.reverse_continue().stop.breakpoint.what == "relu"
    before = d.snapshot
    set_here.what = "mul"
    assert before.stop.breakpoint.what == "relu" and before.reason == "breakpoint op relu, backwards"
    d.close()


def test_an_editor_is_told_the_same(texts: None) -> None:
    loss = programs.counting()
    d = fluid.debug(feed={"x": ROW}, fetch_list=[loss])
    c = Direct(d, ScriptSources(lambda: d.program))
    assert c.start()["reason"] == "entry"
    line = line_of("layers.increment(i)")
    made = c.ask("setBreakpoints", source={"path": programs.__file__}, breakpoints=[{"line": line}])["breakpoints"]
    stopped = c.move("continue")
    assert (stopped["reason"], stopped["hitBreakpointIds"]) == ("breakpoint", [made[0]["id"]])
    c.ask("setBreakpoints", source={"path": programs.__file__}, breakpoints=[])
    made = c.ask("setFunctionBreakpoints", breakpoints=[{"name": "reduce_*"}])["breakpoints"]
    stopped = c.move("continue")
    assert (stopped["reason"], stopped["hitBreakpointIds"]) == ("function breakpoint", [made[0]["id"]])
    c.ask("setFunctionBreakpoints", breakpoints=[])
    total = d.program.desc.blocks[0].ops[3].outs["Out"][0]
    made = c.ask("setDataBreakpoints", breakpoints=[{"dataId": total}])["breakpoints"]
    for move in ("continue", "reverseContinue"):
        stopped = c.move(move)
        assert (stopped["reason"], stopped["hitBreakpointIds"]) == ("data breakpoint", [made[0]["id"]])
    c.ask("setDataBreakpoints", breakpoints=[])
    for move in ("next", "stepIn", "stepBack", "stepOut", "restart", "continue"):
        stopped = c.move(move)
        assert stopped["reason"] == "step" and "hitBreakpointIds" not in stopped
    assert d.results[0] == [3.0]
    d.close()


def test_an_editor_stops_at_entry_nan_and_errors_the_same(texts: None) -> None:
    x = layers.data("x", shape=[2])
    layers.reshape(layers.relu(layers.log(x)), [-1, 3])  # two operators write NaN, the third one fails
    with fluid.debug() as d:
        c = Direct(d, ScriptSources(lambda: d.program))
        c.ask("attach", stopOnEntry=True)
        c.ask("setExceptionBreakpoints", filters=["nan"])
        c.ask("configurationDone")
        seen = []

        def answer(session: fluid.debug.Session) -> None:
            seen.append(c.event("stopped")["reason"])
            if session.snapshot.error is None:
                session.post(Debugger.continue_).result(60)
                seen.append(c.event("stopped")["reason"])

        d.on_stop = answer
        with pytest.raises(fluid.errors.FluidError):
            fluid.Executor().run(feed={"x": ROW})
    d.close()
    assert seen == ["entry", "exception", "exception", "exception"]


def test_the_first_nan_is_found_behind_the_users_own_breakpoints(texts: None) -> None:
    x = layers.data("x", shape=[2])
    layers.relu(layers.log(layers.relu(x)))
    found = fluid.debug.find_nan(feed={"x": np.array([[1.0, -1.0]], "float32")})
    assert found is not None and found.op.type == "log"
    assert fluid.debug.find_nan(feed={"x": np.ones((1, 2), "float32")}) is None
    d = fluid.debug(feed={"x": ROW})
    d.stop_at("op log")
    found = d.do(fluid.debug.nan.search_nan)
    assert found is not None and found.op.type == "log" and d.snapshot.stop.kind is StopKind.NAN
    d.close()


def test_a_session_steps_and_stops_the_same(texts: None) -> None:
    loss = programs.counting()
    d = fluid.debug(feed={"x": ROW}, fetch_list=[loss])
    d.stop_at("var relu_0.tmp_0")
    went = [
        d.snapshot, d.continue_(), d.step(2), d.next(), d.run_to("block 1@2"), d.out(), d.run_to("op nowhere"),
        d.back(3), d.reverse_continue(), d.back(9), d.go(4), d.restart(), d.last_write("x"),
    ]  # fmt: skip
    kinds = [snapshot.stop.kind.name for snapshot in went]
    assert kinds == [
        "ENTRY", "WATCHPOINT", "STEP", "NEXT", "BREAKPOINT", "OUT", "END", "STEP", "WATCHPOINT", "START", "GOTO",
        "RESTART", "NO_WRITE",
    ]  # fmt: skip
    back = [s.stop.kind.name for s in went if s.stop.direction is Direction.BACKWARD]
    assert back == ["STEP", "WATCHPOINT", "START", "RESTART", "NO_WRITE"]
    d.go(2)
    d.edit("relu_0.tmp_0", 1.0)
    assert (d.snapshot.stop.kind, d.snapshot.stop.names) == (StopKind.EDIT, ("relu_0.tmp_0",))
    d.change_op(0, 3, value=2.0)
    assert (d.snapshot.stop.op, d.snapshot.stop.attrs) == ("fill_constant", (("value", "2.0"),))
    assert d.continue_().state == "done"
    d.close()


def test_a_failed_run_is_replayed_the_same(texts: None) -> None:
    x = layers.data("x", shape=[2])
    y = layers.reshape(layers.relu(x), [-1, 3])
    exe = fluid.Executor()
    with pytest.raises(fluid.errors.FluidError):
        exe.run(feed={"x": np.ones((1, 2), "float32")}, fetch_list=[y])
    d = fluid.debug.post_mortem()
    assert d.snapshot.stop.kind is StopKind.POST_MORTEM and d.snapshot.op.type == "reshape"
    d.close()
