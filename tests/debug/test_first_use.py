"""The first debug session of a user: stop reasons, hints, values that a step wrote, the view in a notebook."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.debug.flow import gradient_flow
from fluidnb.errors import NotFound, OpValueError
from fluidnb.terminal.commands import run_command
from fluidnb.terminal.prompt import Prompt, help_lines
from fluidnb.viz.base.styled_text import plain
from fluidnb.viz.notebook_reprs import repr_html
from fluidnb.viz.session.html import session_html
from fluidnb.viz.session.values import read_values

ROW = np.ones((1, 2), "float32")


@pytest.fixture
def session():
    x = layers.data("x", shape=[2])
    i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)
    total = layers.fill_constant([1], "float32", 0.0)
    more = layers.less_than(i, n)
    with layers.While(more).block():
        layers.increment(i)
        layers.assign(layers.elementwise_add(total, layers.reduce_sum(x)), total)
        layers.less_than(i, n, cond=more)
    with fluid.debug(feed={"x": ROW}, fetch_list=[total]) as d:
        d.total = total.name
        yield d
    d.close()


def say(d, line):
    return plain(run_command(d, line))


def test_reasons_say_how_far_it_went(session):
    assert session.step(3).reason == "after 3 steps"
    assert session.next().reason == "after 1 operator"
    session.step(2)
    assert session.out().reason == "the end"
    session.restart()
    assert session.run_to("op nowhere").reason == "the end; op nowhere was not reached"
    assert session.go(6).reason == "went to step 6"
    assert repr(session.snapshot).startswith("<paused at step 6, went to step 6")


def test_breakpoints_are_counted_by_their_session(session):
    first = session.stop_at("op assign")
    session.run_to("op increment")
    assert (first.number, session.stop_at("nan").number) == (1, 2)
    assert [b.number for b in session.breakpoints] == [1, 2]
    assert repr(first) == "<breakpoint 1: op assign>"


def test_a_breakpoint_that_nothing_comes_to_is_told_at_once(session):
    say(session, "break op assign")
    refused = {
        "op asign": 'Did you mean "assign"?', "block 7": "a block up to 1", "at 0:99": "0:0 to 0:4, 1:0 to 1:4",
        "var increment_0": "names lists those", "var x": "print x shows it",
        "line nowhere.py:3": "a line of test_first_use.py",
        "line test_first_use.py:1": "a line that appends operators: ",
    }  # fmt: skip
    for where, told in refused.items():
        for command in ("break", "until"):
            with pytest.raises(NotFound, match=f'No operator of this program matches "{where}"') as error:
                say(session, f"{command} {where}")
            assert told in str(error.value)
    assert [b.text for b in session.breakpoints] == ["op assign"] and session.snapshot.at == 0
    assert "float32[1, 2]" in say(session, "print x"), "the hint of var x, followed"
    with pytest.raises(OpValueError, match="not a breakpoint"):
        say(session, "until")
    with pytest.raises(OpValueError, match="not a breakpoint"):
        session.stop_at("foo bar")


def test_a_breakpoint_in_another_program_is_set_with_a_note(session):
    other = fluid.Program()
    with fluid.program_guard(other):
        layers.relu(layers.data("z", shape=[2]))
    assert "only another program has such an operator" in say(session, "break relu")
    assert "only another" not in say(session, "break increment")
    assert [b.text for b in session.breakpoints] == ["op relu", "op increment"]


def test_a_step_shows_what_it_wrote_and_the_end_what_was_fetched(session):
    say(session, "until elementwise_add")
    shown = say(session, "step")
    assert "wrote  elementwise_add_0.tmp_0  float32[1]  [2]" in shown
    assert f"fetch  {session.total}  float32[1]  [6]" in say(session, "continue")
    assert read_values(session).fetched[0].values == "[6]"


def test_what_has_no_value_yet_names_who_writes_it(session):
    with pytest.raises(NotFound, match="reduce_sum writes it; until var reduce_sum_0.tmp_0 goes there"):
        say(session, "print reduce_sum_0.tmp_0")
    with pytest.raises(NotFound, match="has no value here"):
        say(session, "print nobody")


def test_expressions_see_the_users_own_names_behind_the_programs(session, monkeypatch):
    session.step(4)
    session.around = {"seven": 7.0, "x": "not this one", "var": fluid.default_main_program().global_block().var("x")}
    say(session, f"edit {session.total} = seven")
    assert session[session.total] == [7.0]
    assert session.evaluate("x.sum()") == 2
    assert session.evaluate("var.sum()") == 2  # a variable of the program, under the user's name for it
    session.around = {"later": fluid.default_main_program().global_block().create_var(name="later_0")}
    with pytest.raises(NotFound, match='"later" has no value'):
        session.evaluate("later + 1")
    session.around = None
    monkeypatch.setattr(sys.modules["__main__"], "five", 5, raising=False)
    assert say(session, "print five + 1") == "five + 1  6"


def test_mistakes_in_expressions_speak_of_the_expression(session):
    with pytest.raises(OpValueError, match="1/0 cannot be evaluated here"):
        say(session, f"edit {session.total} = 1/0")
    with pytest.raises(OpValueError, match="cannot be watched"):
        session.watch("x.sum() +")
    assert session.watches == ()
    session.watch("fill_constant_0.tmp_0@GRAD")
    assert session.snapshot.watches == (
        ("fill_constant_0.tmp_0@GRAD", '"fill_constant_0.tmp_0@GRAD" has no value here.'),
    )


def test_the_face_in_a_notebook_marks_the_next_operator_and_the_error(session):
    session.stop_at("block 1@1")
    session.continue_()
    html = repr_html(session)
    assert html.count("background") == 1 and "iteration 1" in html and "●" in html
    assert ">  reads  <" in html and "<script" not in html
    session.close()
    assert "paused" in session_html(session), "a closed one shows where it stood"


def test_the_prompt_wraps_its_help_and_names_no_line_of_the_run(session):
    rows = plain(help_lines("", 80)).splitlines()
    assert max(map(len, rows)) <= 80 and any(row.startswith(" " * 20) for row in rows)
    out = io.StringIO()
    Prompt(session, io.StringIO("print 1/0\nprint nobody\nquit\n"), out).cmdloop()
    assert "cannot be evaluated here" in out.getvalue() and "nobody" in out.getvalue()
    assert "at: " not in out.getvalue()


def test_history_tells_what_backward_adds_up():
    w = layers.create_parameter([2, 2], "float32", name="w")
    x = layers.data("x", shape=[2])
    s = layers.assign(x)
    s.stop_gradient = False
    i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 2)
    more = layers.less_than(i, n)
    with layers.While(more).block():
        layers.assign(layers.matmul(s, w), s)
        layers.increment(i)
        layers.less_than(i, n, cond=more)
    fluid.append_backward(layers.mean(s))
    fluid.Executor().run(fluid.default_startup_program())
    d = fluid.debug(feed={"x": ROW})
    shown = say(d, "until matmul_grad")
    assert "gradient of matmul" in shown
    d.continue_()
    sums = [t for t in d.history("w") if t.name == "w@GRAD" and t.op.type == "while_grad"]
    parts = [t for t in d.history("w") if t.name == "w@GRAD" and t.op.type == "matmul_grad"]
    assert [t.iterations for t in sums] == [(), (1,), (0,)]
    total = np.zeros((2, 2), "float32")
    for part, whole in zip(parts, sums[1:], strict=True):
        total = total + _at(d, part.at)
        assert np.allclose(_at(d, whole.at), total)
    d.close()


def _at(d, step):
    d.go(step)
    return d["w@GRAD"]


def test_gradient_flow_names_the_forward_line_and_what_stops_it():
    x = layers.data("x", shape=[4])
    low = fluid.ParamAttr(initializer=fluid.initializer.Constant(-50.0))
    shut = layers.fc(x, 4, act="relu", bias_attr=low, name="shut")
    cut = layers.fc(x, 4, act="tanh", name="cut")
    cut.stop_gradient = True
    fluid.append_backward(layers.mean(layers.fc([shut, cut], 1)))
    fluid.Executor().run(fluid.default_startup_program())
    flows = {f.parameter: f for f in gradient_flow(feed={"x": np.ones((3, 4), "float32")})}
    dead, off = flows["shut.w_0"], flows["cut.w_0"]
    assert (dead.verdict, dead.blocker.type, dead.forward.type) == ("dead", "relu_grad", "relu")
    assert dead.forward.line < dead.blocker.line
    assert off.why == f"mul propagates no gradient: {cut.name} has stop_gradient"


def test_a_search_reports_when_the_numbers_were_bad_before():
    x = layers.data("x", shape=[2])
    layers.scale(layers.fc(x, 1, param_attr=fluid.ParamAttr(name="w")), scale=2.0)
    fluid.Executor().run(fluid.default_startup_program())
    bad = np.full((1, 2), np.nan, "float32")
    assert "x was fed with bad numbers" in fluid.debug.find_nan(feed={"x": bad}).text
    tensor = fluid.global_scope().find_var("w").get_tensor()
    tensor.set(np.full((2, 1), np.nan, "float32"))
    assert "w was bad before this run" in fluid.debug.find_nan(feed={"x": ROW}).text
    d = fluid.debug(feed={"x": ROW})
    d.step(2)
    found = d.do(fluid.debug.nan.search_nan)
    assert "was bad before the search began: who" in found.text
    d.close()


def test_a_program_that_lost_its_operators_is_still_told():
    layers.relu(layers.fill_constant([2], "float32", 1.0))
    session = fluid.debug(feed={})
    session.step()
    session.program.desc.block(0).remove_op(0, 2)
    assert "as it ran; the program was changed since" in session_html(session)
    assert session.step().state == "done"
    assert "the end of the block" in session_html(session)
    session.close()
