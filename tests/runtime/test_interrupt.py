"""Ctrl-C is held while an operator runs: each parameter is as before or as after its update, never in between."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.memory import flags
from fluidnb.runtime import interrupt, interrupt_all
from fluidnb.values import LoDTensor

STATE = ("Param", "Moment1", "Moment2", "Beta1Pow", "Beta2Pow")
Values = dict[str, bytes]


class Training:
    """An Adam over several matrices, so that most of a step's time is spent between calls of one update.

    Attributes:
        exe: the executor.
        scope: its parameters and moments.
        groups: for each adam operator, in order, the names of what it updates.
    """

    def __init__(self, layers: int = 6, width: int = 256) -> None:
        self.main, self.startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(self.main, self.startup):
            h = fluid.layers.data("x", shape=[width])
            for _ in range(layers):
                h = fluid.layers.fc(h, size=width, bias_attr=False)
            self.loss = fluid.layers.mean(fluid.layers.square(h))
            fluid.optimizer.Adam(1e-3).minimize(self.loss)
        adams = [op for op in self.main.global_block().ops if op.type == "adam"]
        self.groups = [[op.input(slot)[0] for slot in STATE] for op in adams]
        self.feed = {"x": np.random.default_rng(0).normal(size=(4, width)).astype("float32")}
        self.exe, self.scope, self.twin = fluid.Executor(fluid.CPUPlace()), fluid.Scope(), fluid.Scope()
        self.exe.run(self.startup, scope=self.scope)

    def step(self, scope: fluid.Scope | None = None) -> None:
        """One step of training."""
        self.exe.run(self.main, feed=self.feed, fetch_list=[self.loss], scope=scope or self.scope)

    def values(self, scope: fluid.Scope | None = None) -> Values:
        """The held values by name."""
        held = {n: v.value for n, v in (scope or self.scope).vars.items()}
        return {n: np.asarray(t).tobytes() for n, t in held.items() if isinstance(t, LoDTensor) and t.array is not None}

    def after(self) -> Values:
        """The values after one whole step from the present ones."""
        for name, variable in self.scope.vars.items():
            if isinstance(variable.value, LoDTensor) and variable.value.array is not None:
                self.twin.var(name).get_tensor().set(np.asarray(variable.value), fluid.CPUPlace())
        self.step(self.twin)
        return self.values(self.twin)

    def check(self, before: Values, after: Values) -> int:
        """Every update happened whole or not at all, in order; how many did."""
        now = self.values()
        assert set(now) == set(before) and self.scope.kids == []
        done = []
        for group in self.groups:
            unchanged, updated = ({n: v[n] for n in group} for v in (before, after))
            found = {n: now[n] for n in group}
            assert unchanged != updated and found in (unchanged, updated), group
            done.append(found == updated)
        assert done == sorted(done, reverse=True)
        others = set(now) - {n for group in self.groups for n in group}
        assert all(now[n] == before[n] for n in others)
        return sum(done)


@pytest.fixture
def training() -> Iterator[Training]:
    """A training that has run once, so that it is bound; native code would make all updates in one call."""
    before = flags.values["native"]
    fluid.set_flags({"FLAGS_native": "off"})
    made = Training()
    made.step()
    yield made
    flags.values["native"] = before


@contextmanager
def ctrl_c_after(seconds: float, when: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """SIGINT for this process after a time, unless the ``with`` is over by then; it is felt inside the ``with``.

    Args:
        when: it is sent as soon as this holds, too: a busy machine takes its time.
    """
    sent: list[int] = []

    def send(number: int, frame: object) -> None:
        if not when():
            signal.setitimer(signal.ITIMER_REAL, 0.001)
            return
        sent.append(number)
        os.kill(os.getpid(), signal.SIGINT)

    old = signal.signal(signal.SIGALRM, send)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
        signal.setitimer(signal.ITIMER_REAL, 0)
        if sent:  # held for a moment, because it came just before or after the run
            time.sleep(5)
            raise AssertionError("an interrupt was lost")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def seconds_of(training: Training) -> float:
    """Seconds that a step takes."""
    start = time.perf_counter()
    for _ in range(10):
        training.step()
    return (time.perf_counter() - start) / 10


def test_200_interrupts_in_the_middle_of_adam(
    training: Training, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(flags.values, "native", "off")  # native code updates all parameters in one call
    assert len(training.groups) == 6
    length, interrupts, inside = seconds_of(training), 0, 0
    while interrupts < 200:
        before, after = training.values(), training.after()
        try:
            with ctrl_c_after(max(1e-5, float(rng.uniform(0, 1.2 * length)))):
                training.step()
        except KeyboardInterrupt:
            interrupts += 1
            inside += 0 < training.check(before, after) < len(training.groups)
            training.step()  # what was bound is gone after an interrupt
        else:
            assert training.check(before, after) == len(training.groups)
    assert inside > 20, "hardly any interrupt came while parameters were updated"
    before, after = training.values(), training.after()
    training.step()
    assert training.values() == after != before


def test_interrupts_of_updates_in_parts(training: Training, rng: np.random.Generator) -> None:
    training = Training(4, 600)  # parameters of 1.4 MB: one call updates several
    training.step()
    length, interrupts = seconds_of(training), 0
    while interrupts < 30:
        before, after = training.values(), training.after()
        try:
            with ctrl_c_after(float(rng.uniform(0, 1.2 * length))):
                training.step()
        except KeyboardInterrupt:
            interrupts += 1
            training.check(before, after)
            training.step()
        else:
            assert training.check(before, after) == len(training.groups)


def test_interrupts_of_a_run_on_another_thread(training: Training, rng: np.random.Generator) -> None:
    length, interrupts, inside = seconds_of(training), 0, 0
    while interrupts < 50:
        before, after = training.values(), training.after()
        ended: list[type[BaseException] | None] = []

        def run(ended: list[type[BaseException] | None] = ended) -> None:
            try:
                training.step()
            except BaseException as e:
                ended.append(type(e))
            else:
                ended.append(None)

        worker = threading.Thread(target=run)
        worker.start()
        time.sleep(float(rng.uniform(0, 1.2 * length)))
        interrupt_all()
        worker.join()
        if ended == [KeyboardInterrupt]:
            interrupts += 1
            inside += 0 < training.check(before, after) < len(training.groups)
            training.step()
        else:
            assert ended == [None] and training.check(before, after) == len(training.groups)
    assert inside > 2 and interrupt.runs == []


def test_ctrl_c_reaches_a_run_on_another_thread_and_the_main_thread() -> None:
    exe = endless()
    interrupted, main, scope = threading.Event(), fluid.default_main_program(), fluid.global_scope()

    def run() -> None:
        try:
            exe.run(main, scope=scope)
        except KeyboardInterrupt:
            interrupted.set()

    worker = threading.Thread(target=run)
    worker.start()
    with pytest.raises(KeyboardInterrupt):  # the main thread is doing something else, so it is interrupted as ever
        with ctrl_c_after(0.05, looping):
            interrupted.wait(30)
    assert interrupted.wait(30)
    worker.join()


def test_an_interrupt_between_runs_goes_where_it_always_went(training: Training) -> None:
    before = training.values()
    with pytest.raises(KeyboardInterrupt):
        with ctrl_c_after(0.001):
            time.sleep(5)
    assert training.values() == before
    training.step()


def test_the_first_run_is_held_too(rng: np.random.Generator) -> None:
    interrupts = 0
    while interrupts < 20:
        training = Training(layers=3, width=60)
        before, after = training.values(), training.after()
        try:
            with ctrl_c_after(float(rng.uniform(1e-5, 4e-3))):
                training.step()
        except KeyboardInterrupt:
            interrupts += 1
            training.check(before, after)
            training.step()


def endless() -> fluid.Executor:
    """A loop that counts in ones and in twos, practically for ever; initialised."""
    i, n = fluid.layers.zeros([1], "int64"), fluid.layers.fill_constant([1], "int64", 10**12)
    for name in ("ones", "twos"):
        fluid.layers.create_global_var(shape=[1], value=0.0, dtype="float64", persistable=True, name=name)
    block = fluid.default_main_program().global_block()
    cond = fluid.layers.less_than(i, n)
    with fluid.layers.While(cond).block():
        fluid.layers.increment(block.var("ones"), 1.0)
        fluid.layers.increment(block.var("twos"), 2.0)
        fluid.layers.increment(i)
        fluid.layers.less_than(i, n, cond=cond)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe


def counted(name: str) -> float:
    """The number that the endless loop has added up in a variable."""
    return float(np.array(fluid.global_scope().find_var(name).get_tensor())[0])


def looping() -> bool:
    """Whether the endless loop has begun."""
    return counted("ones") > 1


@pytest.mark.parametrize("machine", [False, True])
def test_a_loop_stops_in_the_middle(rng: np.random.Generator, machine: bool) -> None:
    exe = endless()
    for _ in range(5):
        exe.run(fluid.default_startup_program())
        with pytest.raises(KeyboardInterrupt) as caught:
            with ctrl_c_after(float(rng.uniform(0.01, 0.03)), looping):
                exe.run(keep_scopes=machine)
        notes = " ".join(caught.value.__notes__)
        found = re.search(r"In iteration (\d+) of while \(op \d in block 0\), test_interrupt.py:\d+\.", notes)
        assert found is not None, notes
        ones, twos = counted("ones"), counted("twos")
        assert int(found[1]) in (ones, ones - 1)
        assert ones > 0 and twos in (2 * ones, 2 * (ones - 1)) and fluid.global_scope().kids == []


def test_a_run_ends_whole_before_an_interrupt_takes_effect(training: Training) -> None:
    for delay in (1e-4, 5e-4, 1e-3, 3e-3):
        before, after = training.values(), training.after()
        with pytest.raises(KeyboardInterrupt), interrupt.whole_runs(60.0) as patience, ctrl_c_after(delay):
            while True:
                training.step()
                patience.check()
                assert training.check(before, after) == len(training.groups)
                before, after = training.values(), training.after()
        assert training.check(before, after) in (0, len(training.groups))
    assert interrupt._patient == []


def test_an_endless_run_is_not_waited_for() -> None:
    exe = endless()
    with pytest.raises(KeyboardInterrupt) as caught, interrupt.whole_runs(0.05), ctrl_c_after(0.02, looping):
        exe.run()
    assert "of while" in caught.value.__notes__[-1]


def test_a_second_interrupt_is_not_waited_for() -> None:
    exe = endless()

    def press_twice(patience: interrupt.Patience) -> None:
        for pressed in (lambda: bool(interrupt.runs), lambda: patience._requested):
            while not pressed():
                time.sleep(0.001)
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt) as caught, interrupt.whole_runs(60.0) as patience:
        threading.Thread(target=press_twice, args=(patience,), daemon=True).start()
        exe.run()
    assert "of while" in caught.value.__notes__[-1]


def test_a_handler_of_the_user_is_kept(training: Training) -> None:
    heard: list[int] = []
    before = interrupt._previous
    old = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        training.step()
        os.kill(os.getpid(), signal.SIGINT)
        assert heard == [signal.SIGINT]
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        training.step()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, old)
        interrupt._previous = before
        interrupt.install()


def test_a_stop_that_comes_as_another_run_begins_is_not_lost() -> None:
    run, made = interrupt.Run(), list[str]()
    calls = [(made.append, ("first",)), (made.append, ("second",))]
    run.begin()
    left = iter(calls)
    run.stack.append((left, calls, ["a", "b"]))
    run.request_stop()
    run.stop = False  # as the run's own thread sets it when it begins, between the two halves of a request
    with pytest.raises(KeyboardInterrupt):
        for function, args in left:
            function(*args)
    run.end()
    assert made == [] and [args for _, args in calls] == [("first",), ("second",)]


def test_a_run_may_end_while_it_is_asked_to_stop() -> None:
    class Emptied(list[object]):
        """The stack of a run that ends just after somebody saw that it was not empty."""

        def __bool__(self) -> bool:
            return True

    run = interrupt.Run()
    run.stack = Emptied()  # type: ignore[assignment]
    run.request_stop()
    assert run.stop
