"""The debugger panel's Python side: what it tells a page, and what a page may ask of it."""

from __future__ import annotations

import json
import threading

import pytest

from fluidnb.debug.debugger import Debugger
from fluidnb.debug.session import Stopped, current
from fluidnb.viz import plain
from fluidnb.viz.session.panel_buttons import BUTTONS
from fluidnb_magics.widgets.ipywidgets_panel import PlainPanel
from fluidnb_magics.widgets.panel import Panel

NET = """%%fluid net
x = layers.data("x", shape=[2], lod_level=1)
i = layers.fill_constant([1], "int64", 0)
n = layers.fill_constant([1], "int64", 3)
total = layers.fill_constant([1], "float32", 0.0)
more = layers.less_than(i, n)
loop = layers.While(more)
with loop.block():
    layers.increment(i)
    part = layers.reduce_sum(layers.log(x))
    layers.assign(layers.elementwise_add(total, part), total)
    layers.less_than(i, n, cond=more)
"""


@pytest.fixture
def typed(session):
    session.run("import fluidnb as fluid; good, bad = fluid.LoDTensor(), fluid.LoDTensor()")
    session.run("good.set(np.ones((5, 2), 'float32')); bad.set(-np.ones((5, 2), 'float32'))")
    session.run("good.set_lod([[0, 2, 5]]); bad.set_lod([[0, 2, 5]])")
    session.run(NET)
    session.run("%fluid debug --feed x=good --fetch total")
    yield session
    session.run("%fluid debug off")


@pytest.fixture
def panel(typed):
    made = Panel(current(), typed.bench.changes)
    made.problems = []
    made.report = made.problems.append
    yield made
    made.close()


def until(true):
    """Wait for something that other threads do."""
    for _ in range(6000):
        if true():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it did not come")


def settled(panel):
    """The panel when its session has done all that was asked of it."""
    panel.session.do(Debugger.marks)
    return panel


def test_buttons_walk_and_words_follow(panel, typed):
    assert panel.position["state"] == "paused" and panel.position["here"] == (0, 0)
    for word, at in (("step", 1), ("next", 2), ("back", 1), ("continue", 26), ("rcontinue", 0), ("next", 1)):
        panel.controls.do_move(word)
        assert settled(panel).position["at"] == at, word
    assert "step 1 " in typed.run("%fluid where")
    typed.run("%fluid step 4")
    assert panel.position["at"] == 5 and panel.position["here"] == (1, 0) and panel.position["reached"] == 26
    assert [f["title"] for f in panel.position["frames"]] == ["user's scope", "block 0", "block 1, iteration 0"]
    panel.controls.do_move("out")
    assert settled(panel).position["state"] == "done"
    panel.controls.do_go(3)
    assert settled(panel).position["at"] == 3
    panel.controls.do_until(1, 4)
    assert settled(panel).position["here"] == (1, 4) and panel.stops == []
    panel.controls.do_move("restart")
    assert settled(panel).position["at"] == 0 and not panel.position["can_back"]
    assert not panel.problems


def test_the_listing_has_every_operator_and_roles(panel):
    listing = json.loads(panel.listing)
    assert [(row[0], row[1], row[2]) for row in listing["rows"]][4:8] == [(0, 0, 4), (1, 1, 0), (1, 1, 1), (1, 1, 2)]
    assert all(row[3] == "forward" for row in listing["rows"]) and listing["rows"][0][6] == "cell net, line 3"


def test_breakpoints_by_place_and_by_text(panel, typed):
    panel.controls.do_mark(1, 1)
    panel.controls.do_break("when total.mean() > 100")
    stops = settled(panel).stops
    assert [(s["text"], s["spot"]) for s in stops] == [("at 1:1", (1, 1)), ("when total.mean() > 100", None)]
    typed.run("%fluid break op increment")
    assert panel.stops[2]["ops"] == ((1, 0),)
    panel.controls.do_mark(1, 1)
    panel.controls.do_clear(3)
    assert [s["number"] for s in settled(panel).stops] == [2]
    panel.controls.do_clear(7)
    settled(panel)
    assert "There is no breakpoint 7." in panel.problems[-1]


def test_watches_and_what_they_refuse(panel, typed):
    panel.controls.do_watch("total + 1")
    typed.run("%fluid watch i")
    typed.run("%fluid step 3")
    assert [w[0] for w in panel.watches] == ["total + 1", "i"] and panel.watches[0][1] == "[1.]"
    panel.controls.do_unwatch("i")
    assert [w[0] for w in settled(panel).watches] == ["total + 1"]
    with pytest.raises(Exception, match="cannot be watched"):
        panel.controls.do_watch("total +")


def test_scopes_tensors_and_sequences(panel):
    panel.do_open("x", -1)
    opened = settled(panel).opened
    assert opened["line"]["facts"] == "float32[5, 2]" and opened["sequences"].count("inline-block") == 2
    assert opened["page"]["cells"][0] == ("1", "1") and opened["picture"].startswith("data:image/png")
    panel.do_view([0, 0], 2, 1, 12, 8)
    assert settled(panel).opened["page"]["cells"] == (("1",),) * 3
    panel.controls.do_move("continue")
    panel.do_window(0, 2, "o")
    assert [r["name"] for r in settled(panel).scope["rows"]] == ["total", "more"] and panel.scope["count"] == 2
    panel.do_frame(0)
    assert settled(panel).scope["frame"] == 0
    panel.do_open("")
    assert settled(panel).opened is None


def test_edits_are_undone_by_going_back(panel, typed):
    typed.run("%fluid step 5")
    panel.do_frame(1)
    panel.do_open("total", 1)
    panel.controls.do_edit("total", "total + 7", 1)
    assert settled(panel).opened["page"]["cells"] == (("7",),) and panel.position["reason"] == "set total"
    assert "total  float32[1]  [7]" in typed.run("%fluid print total")
    panel.controls.do_move("back")
    assert settled(panel).opened["page"]["cells"] == (("0",),)
    panel.controls.do_edit("total", "nothing_of_that_name")
    panel.controls.do_edit("total", "np.zeros((2, 3))")
    settled(panel)
    assert "has no value here" in panel.problems[0] and "another shape" in panel.problems[1]
    assert panel.position["at"] == 5
    with pytest.raises(Exception, match="There is no value"):
        panel.controls.do_edit("total", " ")


def test_a_tensor_of_another_shape_keeps_the_panel_alive(panel, typed):
    panel.do_open("x", -1)
    panel.do_view([0, 0], 4, 1, 12, 8)
    typed.run("%fluid continue")
    panel.do_open("total", 1)
    assert settled(panel).opened["page"]["shape"] == (1, 1)
    typed.run("%fluid restart")
    assert panel.opened["gone"]


def test_a_failed_operator_is_told_in_words(typed):
    typed.run("%fluid debug off")
    typed.run("%fluid nan on")
    error, _ = typed.fail("%fluid run --feed x=bad --fetch total")
    assert "NAN" in str(error), error
    typed.run("%fluid nan off")
    typed.run("%fluid debug")
    made = Panel(current())
    said = "".join(text for line in made.position["error"] for text, _ in line)
    assert made.position["here"] == (1, 1) and "NAN/Inf" in said and "File" not in said
    made.close()


def test_cells_that_change_the_program_are_told(panel, typed):
    before = panel.listing
    typed.run("%fluid step 2")
    typed.run(NET.replace('"float32", 0.0', '"float32", 1.0'))
    assert panel.note.startswith("The program has changed since this run began") and panel.listing == before
    panel.controls.do_move("step")
    assert settled(panel).position["at"] == 3 and panel.position["state"] == "paused"
    typed.run("%fluid drop net")
    panel.controls.do_move("next")
    panel.controls.do_move("continue")
    assert settled(panel).position["state"] == "done" and panel.listing == before
    assert panel.html() and not panel.problems
    late = Panel(panel.session, typed.bench.changes)
    assert len(json.loads(late.listing)["rows"]) == 12 and late.note == panel.note
    late.close()


def test_a_session_that_ended_says_so(panel, typed):
    panel.controls.do_move("step")
    typed.run("%fluid debug --feed x=good --fetch total")
    assert panel.ended and "%fluid panel shows the one that was begun since." in panel.note
    assert panel.position["at"] == 1
    with pytest.raises(Exception, match="This session is closed"):
        panel.controls.do_move("step")
    assert panel.session.closed and "step 1  " in plain(panel.lines())


def test_a_run_waits_for_the_panel_that_hears(panel, typed):
    typed.run("%fluid debug off")
    typed.run("%fluid debug on")
    session = current()
    session.stop_at("op increment")
    waiting = Panel(session)
    asked = threading.Event()
    waiting.ask_page = lambda: (waiting.do_answer(), asked.set())
    done = []
    run = "fluid.Executor().run(feed={'x': good}, fetch_list=[total])"

    def page():
        asked.wait(60)
        for _ in range(3):
            until(lambda: waiting.waits and waiting.position["state"] == "paused")
            waiting.controls.do_move("continue")
            waiting.session.do(Debugger.marks)
        done.append(waiting.position["state"])

    threading.Thread(target=page, daemon=True).start()
    typed.run(f"out = {run}")
    assert typed.names["out"][0].tolist() == [0.0] and not waiting.waits

    def leave():
        until(lambda: waiting.waits)
        waiting.do_leave()

    threading.Thread(target=leave, daemon=True).start()
    error, _ = typed.fail(run)
    assert isinstance(error, Stopped) and not waiting.waits
    waiting.close()
    assert session.on_stop is None


def test_a_page_that_does_not_hear_is_not_waited_for(typed, monkeypatch):
    monkeypatch.setattr("fluidnb_magics.widgets.panel_stop_handler._ANSWER", 0.01)
    typed.run("%fluid debug off")
    typed.run("%fluid debug on")
    current().stop_at("op increment")
    unanswered = Panel(current())
    error, _ = typed.fail("fluid.Executor().run(feed={'x': good}, fetch_list=[total])")
    assert isinstance(error, Stopped) and "handles the panel only between two cells" in unanswered.unanswered
    unanswered.close()


def test_stock_widgets_do_the_same(typed):
    stock = PlainPanel(current())
    current().do(Debugger.marks)
    assert set(stock.buttons) == {move.word for move in BUTTONS} and stock.buttons["back"].disabled
    stock.buttons["step"].click()
    assert "step 1 " in typed.run("%fluid where") and stock.time.value == 1 and not stock.buttons["back"].disabled
    stock.time.value = 0
    assert "step 0 " in typed.run("%fluid where")
    said = threading.Event()
    stock.output.observe(lambda change: said.set(), "value")
    stock.line.value = "print x"
    assert said.wait(60) and "float32[5, 2]" in stock.output.value and stock.line.value == ""


def test_in_a_terminal_it_is_text(typed):
    typed.run("%fluid break op increment")
    shown = typed.run("%fluid panel")
    assert (
        "paused  step 0" in shown and "op increment  hit 0 times" in shown and "scope of block 0  1 variable" in shown
    )
    assert "step 0" in typed.run("%fluid debug --feed x=good --panel")
    typed.run("%fluid debug off")
    error, _ = typed.fail("%fluid panel")
    assert "--panel starts one" in str(error)
    assert "--plain" in typed.run("%fluid panel --help")


def test_dragging_goes_to_the_last_place_and_panels_agree(panel, typed):
    typed.run("%fluid continue")
    other = Panel(current())
    stood = []
    other.observe(lambda change: stood.append(change["new"]["at"]), "position")
    for at in range(25, 2, -1):
        panel.controls.do_go(at)
    until(lambda: panel.position["at"] == 3)
    assert settled(other).position == panel.position and stood[-1] == 3 and len(stood) <= 23
    assert panel.scope == other.scope and not panel.problems
    other.close()


def test_nothing_is_read_while_no_page_shows_it(panel):
    panel.do_shown()
    panel.do_hidden()
    panel.controls.do_move("step")
    assert settled(panel).position["at"] == 0
    panel.do_shown()
    assert settled(panel).position["at"] == 1


def test_the_next_operator_in_c(panel):
    assert panel.code == ""
    panel.do_code(True)
    until(lambda: "static void op_fill_constant" in panel.code)
    panel.controls.do_move("step")
    until(lambda: panel.position["at"] == 1)
    panel.session.run_to("op log")
    until(lambda: "op_log(" in panel.code)
    panel.do_code(False)
    until(lambda: panel.code == "")
