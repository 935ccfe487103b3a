"""Sessions without a worker thread: the same as with one, Ctrl-C included."""

from __future__ import annotations

import signal
import threading
from typing import Any

import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.debug import session as session_module
from fluidnb.debug.debugger import Debugger
from fluidnb.debug.worker import InlineWorker, worker_of
from fluidnb.errors import EnforceNotMet
from tests.debug.test_observers import (  # noqa: F401
    test_a_breakpoint_that_raises_leaves_the_session_standing,
    test_how_far_a_walk_came_is_known_and_that_it_is_closed,
)
from tests.debug.test_session import (  # noqa: F401
    looked,
    test_a_breakpoint_in_a_loop_an_edit_and_back,
    test_a_session_that_nobody_closes_leaves_no_scope,
    test_a_stop_inside_exe_run_asks_and_goes_on,
    test_a_training_loop_is_one_tape,
    test_an_edit_survives_walking_again,
    test_an_observer_that_raises_is_shown_and_others_go_on,
    test_attributes_of_an_operator_can_be_changed_and_changed_back,
    test_it_gives_the_same_bits_as_the_executor,
    test_next_out_and_back_over_treat_a_loop_as_one,
    test_stops_on_lines_variables_values_and_functions,
    test_the_last_writer_of_a_variable_is_found_inside_the_loop,
    test_two_sessions_do_not_disturb_each_other,
)


@pytest.fixture(autouse=True)
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every session is inline, those of the imported tests too."""
    monkeypatch.setattr(session_module, "worker_of", lambda pause, inline: InlineWorker(pause))


@pytest.fixture
def session():
    x = layers.data("x", [2], append_batch_size=False)
    layers.mean(layers.relu(x))
    begun = fluid.debug(feed={"x": [1.0, 3.0]}, inline=True)
    yield begun
    begun.close()


def test_it_is_chosen_where_no_thread_can_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(session_module, "worker_of", worker_of)
    assert not fluid.debug().inline
    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert fluid.debug().inline


def test_an_observer_may_look_and_posts_what_follows(session: Any) -> None:
    seen: list[Any] = []

    def look(snapshot: Any) -> None:
        seen.append((snapshot.at, session["x"].tolist()))
        if snapshot.at == 1 and len(seen) == 2:
            with pytest.raises(EnforceNotMet, match="only inspect"):
                session.step()
            session.post(Debugger.step)

    session.observe(look)
    assert session.step().at == 1
    assert session.snapshot.at == 2, "what the observer posted is done before step returns"
    assert [at for at, _ in seen] == [0, 1, 2] and seen[-1][1] == [1.0, 3.0]


def test_an_error_of_a_request_leaves_the_session_working(session: Any) -> None:
    with pytest.raises(fluid.errors.NotFound):
        session["nothing"]
    with pytest.raises(KeyboardInterrupt):
        session.do(lambda debugger: _raise(KeyboardInterrupt()))
    assert session.step().at == 1


def _raise(error: BaseException) -> None:
    raise error


def test_requests_of_other_threads_wait_for_the_one_under_way(session: Any) -> None:
    order: list[str] = []
    inside, go_on = threading.Event(), threading.Event()

    def long(debugger: Debugger) -> None:
        inside.set()
        assert go_on.wait(60)
        order.append("long")

    first = threading.Thread(target=session.do, args=(long,))
    first.start()
    assert inside.wait(60)
    second = threading.Thread(target=session.do, args=(lambda debugger: order.append("short"),))
    second.start()
    go_on.set()
    first.join(60)
    second.join(60)
    assert order == ["long", "short"]


def test_ctrl_c_pauses_a_running_program_and_it_continues_from_there() -> None:
    i = layers.fill_constant([1], "int64", 0)
    n = layers.fill_constant([1], "int64", 1 << 40)
    more = layers.less_than(i, n)
    with layers.While(more, is_test=True).block():
        layers.increment(i)
        layers.less_than(i, n, cond=more)
    session = fluid.debug(feed={}, budget=1 << 20, inline=True)
    before = signal.getsignal(signal.SIGINT)
    count = -1
    for _ in range(2):
        press = session.observe(lambda s: signal.raise_signal(signal.SIGINT) if s.state == "running" else None)
        assert session.continue_().reason == "paused"
        session.forget(press)
        assert session[i.name].item() > count
        count = session[i.name].item()
    session.close()
    with pytest.raises(KeyboardInterrupt):  # outside of a request it is Python's again
        signal.raise_signal(signal.SIGINT)
    assert callable(before)
