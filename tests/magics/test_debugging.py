"""``%fluid debug`` and the words of a debug session."""

from __future__ import annotations

import pytest
from IPython.core.completer import provisionalcompleter

from fluidnb.debug.session import current
from fluidnb.runtime.interpreter import failed_run

NET = """%%fluid net
x = layers.data("x", shape=[2])
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
FEED = "import numpy as np; good = np.ones((1, 2), 'float32'); bad = -good"


@pytest.fixture
def typed(session):
    session.run(FEED)
    session.run(NET)
    yield session
    text = "no debug session" if current() is None else "the debug session has ended"
    assert text in session.run("%fluid debug off")
    assert current() is None


def test_a_walk_through_a_loop_and_back(typed):
    assert "step 0  entry" in typed.run("%fluid debug --feed x=good --fetch total")
    assert "block 1@2" in typed.run("%fluid break block 1@2")
    shown = typed.run("%fluid continue")
    assert "breakpoint block 1@2" in shown and "▶" in shown and "cell net, line 9" in shown
    assert "total  float32[1]  [7]" in typed.run("%fluid edit total = 7")
    shown = typed.run("%fluid who total")
    assert "before total is written" not in shown or "iteration" in shown
    assert "iteration 1" in typed.run("%fluid who total")
    assert "the beginning" in typed.run("%fluid rcontinue")
    typed.run("%fluid clear")
    assert "done" in typed.run("%fluid continue")
    assert "assign" in typed.run("%fluid history total")


def test_a_failed_run_is_opened_where_it_failed(typed):
    typed.run("%fluid nan on")
    typed.fail("%fluid run --feed x=bad --fetch total")
    typed.run("%fluid nan off")
    shown = typed.run("%fluid debug")
    assert "the operator failed" in shown and "log(x)" in shown and "contains NAN/Inf" in shown
    assert "x  float32[1, 2]  [-1, -1]" in typed.run("%fluid print x")
    assert "iteration 0" in shown


def test_the_search_for_nan_names_operator_and_line(typed):
    shown = typed.run("%fluid nan --feed x=bad")
    assert "(log) in block 1, iteration 0  cell net, line 10" in shown and "2 NaN" in shown
    assert "all values are finite" in typed.run("%fluid nan --feed x=good")
    typed.run("%fluid debug --feed x=bad")
    assert "2 NaN" in typed.run("%fluid nan")
    error, shown = typed.fail("%fluid nan maybe")
    assert "the largest absolute value allowed" in str(error)


def test_runs_stop_at_breakpoints_while_it_is_on(typed):
    typed.run("%fluid debug on")
    typed.run("%fluid break op reduce_sum")
    error, shown = typed.fail("%fluid run --feed x=good --fetch total")
    assert "The run is paused: breakpoint op reduce_sum" in str(error)
    assert "reduce_sum" in typed.run("%fluid where")
    typed.run("%fluid clear")
    assert "done" in typed.run("%fluid continue")
    typed.run("%fluid debug off")
    assert "[0]" in typed.run("%fluid run --feed x=good --fetch total")


def test_without_a_session_words_say_how_to_begin_one(typed):
    error, _ = typed.fail("%fluid step")
    assert "%fluid debug --feed" in str(error)
    assert "%fluid who VARIABLE" in typed.run("%fluid who --help")


def test_a_program_by_name_is_begun_and_compared(typed):
    typed.run("%%fluid one --program other\na = layers.fill_constant([2], 'float32', 3.0)")
    typed.run("import fluidnb as fluid; before = a.block.program.clone()")
    typed.run("%%fluid two --program other\nb = layers.relu(a)")
    assert "added: 1 op" in typed.run("%fluid diff before --program other")
    assert "fill_constant" in typed.run("%fluid debug --program other")
    assert "wrote  a  float32[2]  [3, 3]" in typed.run("%fluid step")
    typed.run("mine = np.full(2, 7.0, 'float32')")
    assert "a  float32[2]  [7, 7]" in typed.run("%fluid edit a = mine")


def test_tab_offers_words_variables_and_operators(typed):
    def offered(line):
        with provisionalcompleter():
            return [c.text for c in typed.shell.Completer.completions(line, len(line))]

    assert "rcontinue" in offered("%fluid r")
    assert "flow" in offered("%fluid debug f")
    typed.run("%fluid debug --feed x=good")
    typed.run("%fluid step 4")
    assert "total" in offered("%fluid who t")
    assert "reduce_sum" in offered("%fluid break reduce_s")
    assert "part" in offered("%fluid until var p"), "also what has no value yet"
    typed.run("%%fluid one --program other\nalpha = layers.data('alpha', shape=[2])")
    assert "alpha" in offered("%fluid debug --program other --feed al")
    assert "alpha" not in offered("%fluid debug --feed al")


def test_a_session_shows_its_operator_after_the_program_was_edited(session):
    session.run("%%fluid A\nx = layers.data('x', [4])")
    session.run("%%fluid B\na = layers.relu(x)\nb = layers.relu(a)\nc = layers.relu(b)")
    session.run("%fluid debug --feed x=np.ones((2,4),'float32') --fetch c\n%fluid step")
    session.run("%%fluid A\nx = layers.data('x', [4])\nx = layers.relu(x)")
    shown = session.run("%fluid where")
    assert "▶ b = relu(a)" in shown and "the program was changed since" in shown
    for text in ("%fluid code", "%fluid drop A B\n%fluid code"):
        error, _ = session.fail(text)
        assert "The program was changed since this run began" in str(error) and "b = relu(a)" in str(error)


@pytest.mark.parametrize("line", ["--feed x=good --fetch nowhere", "--feed x=good z=good", "--fetch total"])
def test_a_refused_session_leaves_the_one_that_runs(typed, line):
    typed.run("%fluid debug --feed x=good --fetch total\n%fluid step 2")
    before = typed.run("%fluid where")
    typed.fail(f"%fluid debug {line}")
    assert typed.run("%fluid where") == before


def test_a_session_that_waits_for_runs_needs_no_feeds(session, monkeypatch):
    monkeypatch.setattr(failed_run, "_last", [])  # of an earlier test
    session.run("%%fluid data\nx = layers.data('x', [4])\nh = layers.fc(x, 2)")
    shown = session.run("%fluid debug on")
    assert "idle" in shown and current() is not None
    session.run("%fluid debug off")
