"""Debug sessions: steps forwards and backwards, breakpoints, edits, several runs on one tape."""

from __future__ import annotations

import functools
import gc
import random
import signal
import sys
import threading
import time

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.debug import Session, Stopped
from fluidnb.debug.debugger import Debugger
from fluidnb.debug.view import View
from fluidnb.debug.worker import Request
from fluidnb.errors import EnforceNotMet, FluidError, NotFound, OpTypeError, OpValueError
from fluidnb.runtime.replay import specialization
from fluidnb.terminal.commands import run_command
from fluidnb.viz.base.styled_text import plain
from fluidnb.viz.session.panel_model import read_listing
from tests.debug.programs import FEED, held, looping, started
from tests.tools.refused import refused


@pytest.fixture
def looked():
    """A session at the beginning of a run, its program and its scope."""
    main, startup, loss, total = looping()
    scope = started(startup)
    session = fluid.debug(main, FEED, [loss, total], scope)
    yield session, scope, total.name
    session.close()


def test_it_gives_the_same_bits_as_the_executor():
    main, startup, loss, total = looping()
    main.random_seed = 3
    one, two = started(startup), started(startup)
    plain = [fluid.Executor().run(main, FEED, [loss, total], scope=one) for _ in range(3)]
    with fluid.debug(main) as d:
        walked = [fluid.Executor().run(main, FEED, [loss, total], scope=two) for _ in range(3)]
    d.close()
    assert [[a.tobytes() for a in run] for run in plain] == [[a.tobytes() for a in run] for run in walked]
    assert held(one) == held(two)


def test_a_breakpoint_in_a_loop_an_edit_and_back(looked):
    d, _, total = looked
    d.stop_at("block 1@2")
    assert d.continue_().reason == "breakpoint block 1@2"
    assert [(f.block, f.iteration) for f in d.snapshot.frames] == [(0, 0), (1, 2)]
    twice = d[total].item()
    d.edit(total, 100.0)
    assert d[total].item() == 100.0
    loss = d.continue_().state == "done" and d.results[0].item()
    assert d.results[1].item() == pytest.approx(100 + loss)
    assert twice == pytest.approx(2 * loss)
    d.clear()
    assert d.reverse_continue().reason == "the beginning"
    assert d.continue_().state == "done"
    assert d.results[1].item() == pytest.approx(3 * loss), "the edit went when it was gone back over"


def test_the_last_writer_of_a_variable_is_found_inside_the_loop(looked):
    d, _, total = looked
    d.continue_()
    for k in (2, 1, 0):
        stood = d.last_write(total)
        assert (stood.op.type, stood.frames[-1].iteration) == ("assign", k)
        d.back()
    assert d.last_write(total).op.type == "fill_constant"
    assert d.last_write("x").reason == "no recorded step wrote x"
    with pytest.raises(NotFound, match="not visible in this scope"):
        d.last_write("nowhere")


def test_next_out_and_back_over_treat_a_loop_as_one(looked):
    d, _, _ = looked
    d.run_to("op while")
    assert d.snapshot.op.type == "while"
    at = d.snapshot.at
    after = d.next()
    assert len(after.frames) == 1 and after.op.type != "while"
    assert d.step_back_over().at == at
    d.step()
    assert len(d.snapshot.frames) == 2
    assert d.out().op == after.op


def test_stops_on_lines_variables_values_and_functions(looked):
    d, _, total = looked
    stops = {
        f"var {total}": "fill_constant", f"var {total}, after 2": "assign", "when v['mean_0.tmp_0'].max() > 0": "mean",
        "op sgd": None, "op *_grad": "mean_grad", "line programs.py:99": None, "block 1": "increment",
    }  # fmt: skip
    for text, kind in stops.items():
        d.restart()
        d.clear()
        d.stop_at(text)
        snapshot = d.continue_()
        assert (snapshot.state == "done") == (kind is None), text
        if kind is not None and not text.startswith(("var", "when")):
            assert snapshot.op.type == kind, text
        elif kind is not None:
            assert d.back().op.type == kind, text
    d.restart()
    d.clear()
    seen = []
    d.stop_at(lambda v: seen.append(v[total].item()) or v[total].item() > 0)
    assert d.continue_().frames[-1].block == 1
    assert seen[0] == 0


def test_a_line_of_the_user_is_a_breakpoint():
    x = layers.data("x", shape=[2])
    layers.relu(x)
    layers.tanh(x)
    op = fluid.default_main_program().global_block().ops[1]
    line = op.where.line
    with fluid.debug() as d:
        d.begin({"x": np.ones((1, 2), "float32")})
        for text in (f"line {line}", f"test_session.py:{line}"):
            d.restart()
            d.clear()
            d.stop_at(text)
            assert d.continue_().op.type == "tanh"
    d.close()


def test_watches_show_values_and_what_is_not_there_yet(looked):
    d, _, total = looked
    d.watch(total)
    d.watch("np.abs(v['mean_0.tmp_0']).sum() > 1e9")
    d.watch("totl + 1")
    seen = [v for _, v in d.snapshot.watches]
    assert seen[0] == f'"{total}" has no value here.' and "mean_0.tmp_0" in seen[1] and '"totl" has no value' in seen[2]
    d.run_to("op while")
    assert [v for _, v in d.snapshot.watches][:2] == ["[0.]", "False"]
    d.unwatch(total)
    assert len(d.snapshot.watches) == 2


def test_going_to_any_step_shows_the_same_values(looked):
    d, scope, _ = looked
    seen = [(held(scope), d.snapshot.op)]
    while d.step().state != "done":
        seen.append((held(scope), d.snapshot.op))
    dice = random.Random(1)
    for _ in range(40):
        at = dice.randrange(len(seen))
        d.go(at)
        assert (held(scope), d.snapshot.op) == seen[at], at


@pytest.mark.parametrize("budget", [1, 6000, 1 << 20])
def test_a_small_journal_is_made_up_for_by_walking_again(budget):
    main, startup, loss, total = looping()
    scope = started(startup)
    d = fluid.debug(main, FEED, [loss, total], scope, budget=budget)
    seen = [held(scope)]
    while d.step().state != "done":
        seen.append(held(scope))
    result = [a.tobytes() for a in d.results]
    assert d.snapshot.kept <= max(budget, 4000)
    for before in reversed(seen):
        d.back()
        assert held(scope) == before
    assert not d.snapshot.can_back and d.back().reason == "the beginning"
    d.continue_()
    assert [a.tobytes() for a in d.results] == result
    d.close()


@pytest.mark.parametrize("budget", [3000, 1 << 22])
def test_a_training_loop_is_one_tape(budget):
    main, startup, loss, _ = looping()
    scope, exe = started(startup), fluid.Executor()
    with fluid.debug(main, budget=budget) as d:
        losses = [exe.run(main, FEED, [loss], scope=scope)[0].item() for _ in range(5)]
        end, at = held(scope), d.snapshot.at
        assert d.snapshot.run == 4
        middle = d.go(max(at // 2, d.inspect(lambda w: w.tape.forgotten)))
        assert middle.run < 4 or budget == 3000
        assert d.continue_().state == "done"
        assert (held(scope), d.snapshot.at) == (end, at)
        assert d.results[0].item() == losses[-1]
    d.close()
    assert scope.kids == []


def test_a_session_that_nobody_closes_leaves_no_scope():
    main, startup, loss, _ = looping()
    scope = started(startup)
    d = fluid.debug(main, FEED, [loss], scope)
    d.step(5)
    assert len(scope.kids) == 1
    del d
    gc.collect()
    assert scope.kids == []


def test_an_edit_survives_walking_again():
    main, startup, loss, total = looping()
    scope = started(startup)
    d = fluid.debug(main, FEED, [loss, total], scope, budget=1)
    d.stop_at("op while")
    d.continue_()
    d.edit(total.name, 5.0)
    d.step(6)
    d.back(2)
    d.step(2)
    assert d[total.name].item() > 5
    d.back(6)
    assert d[total.name].item() == 5
    d.back()
    assert d[total.name].item() == 0
    d.close()


def test_attributes_of_an_operator_can_be_changed_and_changed_back(looked):
    d, _, _ = looked
    program = d.program
    before = program.desc.serialize_to_string()
    d.run_to("op dropout")
    at = d.snapshot.op
    d.change_op(at.block, at.index, dropout_prob=1.0)
    d.next()
    assert not d["dropout_0.tmp_0"].any()
    d.back(2)
    assert program.desc.serialize_to_string() == before
    d.next()
    assert d["dropout_0.tmp_0"].any()
    with pytest.raises(NotFound, match="no attribute probability"):
        d.change_op(at.block, at.index, probability=1.0)
    with pytest.raises(FluidError):
        d.change_op(at.block, at.index, dropout_prob=2.0)
    with pytest.raises(NotFound, match="9:9"):
        d.change_op(9, 9)
    assert program.desc.serialize_to_string() == before


def test_a_change_is_checked_stays_in_its_session_and_blames_no_line():
    x = layers.data("x", shape=[4])
    h = layers.reshape(x, [-1, 2])
    y = layers.elementwise_add(h, layers.fill_constant([2], "float32", 1.0))
    program, exe = fluid.default_main_program(), fluid.Executor(fluid.CPUPlace())
    before, feed = program.desc.serialize_to_string(), {"x": np.ones((3, 4), "float32")}
    d = fluid.debug(feed=feed, fetch_list=[y])
    with pytest.raises(FluidError, match="reshape") as refused:
        d.change_op(0, 0, shape=[-1, -1])
    assert refused.value.where is None and d.snapshot.at == 0
    d.change_op(0, 0, shape=[-1, 4])  # the program's shapes allow it; the next operator does not
    assert "shape=[-1, 4]" in plain(run_command(d, "where"))
    changed = d.inspect(lambda debugger: debugger.tape.interpreter.lowered.changed)
    first, *_ = read_listing(program, changed).rows
    assert "[-1, 4]" in "".join(text for text, _ in first.pieces)
    failed = d.continue_()
    assert failed.error is not None and failed.error.where is None
    assert failed.error.hint == "back 3 undoes: set shape=[-1, 4] of reshape."
    assert program.desc.serialize_to_string() == before
    assert exe.run(feed=feed, fetch_list=[y])[0].shape == (6, 2), "another run has nothing of it"
    run_command(d, "back 3")
    assert d.continue_().state == "done"
    d.close()
    assert exe.run(feed=feed, fetch_list=[y])[0].shape == (6, 2)


def test_the_way_of_a_parameter_through_forward_backward_and_optimizer(looked):
    d, _, _ = looked
    d.continue_()
    ways = [(t.role, t.op.type, t.name.partition("@")[2], t.how) for t in d.history("fc_0.w_0")]
    assert ways == [
        ("forward", "mul", "", "reads"),
        ("backward", "mul_grad", "", "reads"),
        ("backward", "mul_grad", "GRAD", "writes"),
        ("optimizer", "adam", "", "changes"),
        ("optimizer", "adam", "GRAD", "reads"),
    ]
    assert d.snapshot.state == "done"


def test_a_stop_inside_exe_run_asks_and_goes_on():
    main, startup, loss, _ = looping()
    scope, exe, stops = started(startup), fluid.Executor(), []
    with fluid.debug(main) as d:
        d.stop_at("op adam")
        with pytest.raises(Stopped, match="breakpoint op adam"):
            exe.run(main, FEED, [loss], scope=scope)
        d.on_stop = lambda d: stops.append(d.snapshot.op.type)
        out = exe.run(main, FEED, [loss], scope=scope)
    d.close()
    assert stops == ["adam"] * 4 and out[0].shape == (1,)
    exe.run(main, FEED, [loss], scope=scope)
    assert len(stops) == 4


@pytest.mark.parametrize("during", range(3))
def test_a_session_that_attaches_during_a_run_gets_the_next(during, monkeypatch):
    loss = layers.mean(layers.scale(layers.data("x", [2]), 2.0))
    main, exe, stops, runs = fluid.default_main_program(), fluid.Executor(), [], []
    session = Session(main)
    session.stop_at_entry, session.on_stop = True, lambda s: stops.append(len(runs)) or s.continue_()
    original = specialization.run_segments

    def attach_meanwhile(root):
        out = original(root)
        if len(runs) == during:  # the first run binds, the second is checked, the third just repeats its calls
            other = threading.Thread(target=session.attach, args=(main,))
            other.start()
            other.join()
        return out

    monkeypatch.setattr(specialization, "run_segments", attach_meanwhile)
    feed, fetch_list = {"x": np.ones((2, 2), "float32")}, [loss]
    for _ in range(5):
        runs.append(exe.run(feed=feed, fetch_list=fetch_list))
    session.close()
    assert stops == [during + 1]


def test_an_observer_that_raises_is_shown_and_others_go_on(looked, capfd):
    d, _, _ = looked
    seen = []

    def bad(snapshot):
        raise ZeroDivisionError("mine")

    d.observe(bad)
    d.observe(seen.append)
    d.step()
    assert "ZeroDivisionError: mine" in capfd.readouterr().err
    assert len(seen) == 2 and "mine" in d.step().problems[0]
    d.forget(bad)
    capfd.readouterr()
    d.step()
    assert capfd.readouterr().err == ""


def test_two_sessions_do_not_disturb_each_other():
    sessions = []
    for _ in range(2):
        main, startup, loss, total = looping()
        main.random_seed = 5
        sessions.append(fluid.debug(main, FEED, [loss, total], started(startup)))
    posted = [s.post(Debugger.continue_) for s in sessions]
    assert [p.result(timeout=60).state for p in posted] == ["done", "done"]
    ends = [[a.tobytes() for a in s.results] for s in sessions]
    assert ends[0] == ends[1]
    for s in sessions:
        s.close()
    with pytest.raises(EnforceNotMet, match="closed"):
        sessions[0].step()


def test_pausing_at_random_places_changes_nothing(request):
    main, startup, loss, total = looping()
    scope = started(startup)
    d = fluid.debug(main, FEED, [loss, total], scope)
    d.continue_()
    end, result = held(scope), [a.tobytes() for a in d.results]
    dice = random.Random(2)
    for _ in range(500 if request.config.getoption("--full") else 60):
        if d.snapshot.state == "done":
            d.restart()
        going = d.post(Debugger.continue_)
        time.sleep(dice.random() * 0.004)
        d.pause()
        going.result(timeout=60)
        if dice.random() < 0.3:
            d.back(dice.randrange(4))
    while d.continue_().state != "done":
        pass
    assert (held(scope), [a.tobytes() for a in d.results]) == (end, result)
    d.close()


def endless():
    """Build an endless loop and give its counter."""
    i = layers.fill_constant([1], "int64", 0)
    n = layers.fill_constant([1], "int64", 1 << 40)
    more = layers.less_than(i, n)
    with layers.While(more, is_test=True).block():
        layers.increment(i)
        layers.less_than(i, n, cond=more)
    return i


def interrupt_main() -> None:
    """Press Ctrl-C when the main thread waits for the session's thread."""
    main = threading.main_thread().ident
    assert main is not None
    while sys._current_frames()[main].f_code is not Request.wait.__code__:
        time.sleep(0.001)
    signal.pthread_kill(main, signal.SIGINT)


def test_ctrl_c_pauses_and_the_program_goes_on_from_there():
    i = endless()
    d = fluid.debug(feed={}, budget=1 << 20)
    for _ in range(2):
        before = d[i.name].item() if i.name in d.names() else 0
        running = threading.Event()
        look = d.observe(lambda s, running=running: running.set() if s.state == "running" else None)
        press = threading.Thread(target=lambda running=running: running.wait() and interrupt_main())
        press.start()
        assert d.continue_().reason == "paused"
        press.join()
        d.forget(look)
        assert d[i.name].item() > before
    d.close()


def test_ctrl_c_before_the_wait_begins_pauses_too(monkeypatch):
    endless()
    d = fluid.debug(feed={}, budget=1 << 20)
    post = d._posted

    def posted(command, *args):
        post(command, *args)
        raise KeyboardInterrupt

    monkeypatch.setattr(d, "_posted", posted)
    with pytest.raises(KeyboardInterrupt):
        d.continue_()
    monkeypatch.undo()
    assert d._pause.last.result(timeout=60).reason == "paused"
    d.close()


def test_ctrl_c_waits_until_something_done_between_steps_is_done():
    fluid.layers.fill_constant([1], "float32", 1.0)
    session = fluid.debug(feed={})
    done = []

    def slow(debugger):
        interrupt_main()
        time.sleep(0.1)
        done.append(debugger)

    with pytest.raises(KeyboardInterrupt):
        session.do_between_steps(slow)
    assert len(done) == 1
    session.close()


def test_a_running_program_is_told_about_and_can_be_paused():
    i = endless()
    d = fluid.debug(feed={}, budget=1 << 20)
    seen = threading.Event()
    d.observe(lambda s: seen.set() if s.state == "running" else None)
    going = d.post(Debugger.continue_)
    assert seen.wait(60)
    d.pause()
    assert going.result(timeout=60).reason == "paused"
    assert d[i.name].item() > 0 and d.snapshot.kept <= 1 << 20
    d.close()


def test_a_pause_is_for_what_waits_to_run_too():
    endless()
    d = fluid.debug(feed={}, budget=1 << 20)
    inside, over = threading.Event(), threading.Event()

    def slow(debugger):
        inside.set()
        over.wait(60)

    d.post(slow)
    going = d.post(Debugger.continue_)
    assert inside.wait(60)
    d.pause()
    over.set()
    assert going.result(timeout=60).reason == "paused"
    d.close()


BAD_CALLS = [
    (lambda d: d.step("a"), "count of debug.step must be an int from 1 on"),
    (lambda d: d.step(1.5), "count of debug.step"),
    (lambda d: d.step(0), "count of debug.step"),
    (lambda d: d.step(-1), "count of debug.step"),
    (lambda d: d.back(None), "count of debug.back"),
    (lambda d: d.back(-1), "count of debug.back must be an int from 0 on"),
    (lambda d: d.go("a"), "at of debug.go must be an int"),
    (lambda d: d.go(1.5), "at of debug.go"),
    (lambda d: d[5], "name of debug.__getitem__ must be a text"),
    (lambda d: d.history(5), "name of debug.history"),
    (lambda d: d.clear("a"), "number of debug.clear must be an int or None"),
    (lambda d: d.watch(5), "text of debug.watch"),
    (lambda d: d.stop_at(5), "where of debug.stop_at must be a text or a function"),
    (lambda d: d.run_to(5), "where of debug.run_to"),
    (lambda d: d.change_op("a", 0), "block of debug.change_op"),
    (lambda d: d.forget(print), "This does not observe the session"),
    (lambda d: d.save(None), "file of debug.save"),
    (lambda d: d.save("a.html", last="x"), "last of debug.save"),
    (lambda d: d.save("a.html", last=-1), "last of debug.save"),
    (lambda d: d.attach(5), "program of debug.attach must be a Program"),
]


@pytest.mark.parametrize(("call", "message"), BAD_CALLS, ids=range(len(BAD_CALLS)))
def test_arguments_that_a_session_refuses(looked, call, message):
    d, _, _ = looked
    with refused(FluidError, message):
        call(d)
    assert d.snapshot.at == 0 and not d.breakpoints and not d.watches


def test_a_condition_may_be_any_object_that_can_be_called(looked):
    d, _, total = looked

    class Positive:
        def __call__(self, view, name):
            return view[name].item() > 0

    point = d.stop_at(functools.partial(Positive(), name=total))
    assert d.continue_().stop.breakpoint is not None and d[total].item() > 0
    assert "functools.partial" in point.text


def test_a_condition_that_is_neither_true_nor_false(looked):
    d, _, _ = looked
    for limit in ("1e-3", "+.5", "2.", "1e+6"):
        d.stop_at(f"nan {limit}").enabled = False
    point = d.stop_at("when v['fc_0.w_0']")
    with refused(OpValueError, f"The condition .* is neither true nor false here(.|\n)*clear {point.number} removes"):
        d.continue_()
    assert d.snapshot.reason == "a breakpoint raised ValueError"
    d.clear(point.number)
    with refused(OpValueError, "ZeroDivisionError"):
        d.run_to("when 1 / 0")
    assert d.continue_().state == "done"


def test_what_cannot_be_is_refused_and_nothing_changes(looked):
    d, scope, total = looked
    d.run_to("op while")
    before, at = held(scope), d.snapshot.at
    for bad, error in (
        (lambda: d.edit("nowhere", 1), NotFound),
        (lambda: d.edit(total, [1.0, 2.0]), OpValueError),
        (lambda: d.edit("fill_constant_0.tmp_0", 1.5), OpTypeError),
        (lambda: d.edit("fill_constant_0.tmp_0", 2.0**70), OpTypeError),
        (lambda: d.edit("fill_constant_0.tmp_0", 2**70), OpTypeError),
        (lambda: d.edit("less_than_0.tmp_0", 2), OpTypeError),
        (lambda: d.edit(total, 1 + 2j), OpTypeError),
        (lambda: d.edit(total, 1e300), OpTypeError),
        (lambda: d.edit(total, [[1], [2, 3]]), OpTypeError),
        (lambda: d.edit(total, None), OpTypeError),
        (lambda: d.stop_at("block x"), OpValueError),
        *((lambda b=b: d.stop_at(b), OpValueError) for b in ("nan 1.2.3", "nan e", "nan 1e", "nan ++", "when (")),
        (lambda: d.clear(99), NotFound),
        (lambda: d["nowhere"], NotFound),
        (lambda: d.go(-1), OpValueError),
        (lambda: d.results, EnforceNotMet),
    ):
        with pytest.raises(error):
            bad()
    assert (held(scope), d.snapshot.at) == (before, at)
    idle = Session(fluid.Program())
    for bad in (idle.step, idle.back, idle.names, idle.restart):
        with pytest.raises(EnforceNotMet, match="No run was begun"):
            bad()
    idle.close()


@pytest.mark.parametrize("way", ("do", "do_between_steps"))
def test_an_interrupt_at_any_line_of_waiting_is_an_interrupt(way, looked):
    d, _, _ = looked

    def slow(_: Debugger) -> int:
        """Takes longer than a wait needs to begin."""
        time.sleep(0.03)
        return 7

    def interrupt_at(line: int) -> bool:
        """Wait with a KeyboardInterrupt at that line of the wait and of what it calls; whether there is such a line."""
        left = line

        def trace(frame, event, _):
            nonlocal left
            if event == "call" and frame.f_code.co_name not in ("wait", "result"):
                return trace if frame.f_back.f_trace is trace else None
            if event == "line":
                left -= 1
                if left == -1:
                    raise KeyboardInterrupt
            return trace

        outer = sys.gettrace()
        sys.settrace(trace)
        try:
            assert getattr(d, way)(slow) == 7
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(outer)
        return left < 0

    lines = next(line for line in range(200) if not interrupt_at(line))
    assert lines > 1


def test_closing_leaves_no_thread_and_no_scope():
    main, startup, loss, _ = looping()
    scope = started(startup)
    before = set(threading.enumerate())  # some of them may end meanwhile

    def left() -> set[threading.Thread]:
        """Threads of sessions that still live after a minute."""
        deadline = time.monotonic() + 60
        while set(threading.enumerate()) - before and time.monotonic() < deadline:
            time.sleep(0.01)
        return set(threading.enumerate()) - before

    d = fluid.debug(main, FEED, [loss], scope)
    d.step(3)
    d.close()
    assert not left() and scope.kids == []
    d = fluid.debug(main, FEED, [loss], scope)
    del d
    assert not left()


@pytest.mark.parametrize("budget", [1 << 30, 30_000])
def test_a_visit_to_another_step_returns_with_runs_and_edits(budget):
    main, startup, loss, _ = looping()
    scope, exe = started(startup), fluid.Executor()
    with fluid.debug(main, budget=budget) as d:
        for _ in range(3):
            exe.run(main, FEED, [loss], scope=scope)

    def state(debugger):
        tape = debugger.tape
        view = View(tape.interpreter.stack[-1].scope)
        values = {name: np.asarray(view[name]).tobytes() for name in view if hasattr(view[name], "tobytes")}
        return tape.at, tape.runs[-1].first, tape.interpreter.done, values

    def visit(at):
        return d.inspect(lambda debugger: debugger.tape.visit(at, lambda: state(debugger)))

    last, first = d.snapshot.at, d.inspect(lambda w: w.tape.forgotten)
    begins = d.inspect(lambda w: [run.first for run in w.tape.runs])
    seen = {}
    for at in range(last, first - 1, -1):
        d.go(at)
        seen[at] = d.inspect(state)
    middle = begins[-1] + 8
    d.go(middle)
    d.edit(main.all_parameters()[0].name, 100.0)
    d.step(2)
    here = d.inspect(state)
    for at in {first, first + 3, *begins, begins[-1] + 1, middle}:
        assert visit(at) == seen[at]
        assert d.inspect(state) == here
    assert visit(middle + 6)[0] == middle + 6 and d.inspect(state) == here
    for at in begins[1:]:  # the end of a run and the beginning of the next are one step
        for moves in ((at,), (at + 1, at)):
            for to in moves:
                d.go(to)
            here = d.inspect(state)
            assert visit(at - 1) == seen[at - 1] and visit(at + 1)[0] == at + 1
            assert d.inspect(state) == here
    d.close()


def test_earlier_names_of_methods_still_work():
    names = {"go_on": "continue_", "back_over": "step_back_over", "back_on": "reverse_continue", "join": "attach"}
    assert all(getattr(Session, old) is getattr(Session, new) for old, new in names.items())
