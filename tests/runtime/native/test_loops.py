"""Loops in C: numpy's bits; errors, limits and interrupts of loops in Python; what makes them fall back."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.errors import EnforceNotMet
from fluidnb.memory import flags
from fluidnb.runtime import interrupt_all, native_calls, native_text
from fluidnb.runtime.native.native_loop import NativeLoop
from fluidnb.runtime.observers import observers
from tests.runtime.random_calls import same_bits

X = np.linspace(-3, 3, 40, dtype="float32")


def looped() -> bool:
    """Whether the last run of the main program has a loop in C."""
    return any(call.whole for call in native_calls(fluid.default_main_program()))


def picked(x: Any, index: Any) -> Any:
    """``x[index]``."""
    block = fluid.default_main_program().current_block()
    item = block.create_var(name=fluid.unique_name.generate("item"), dtype="float32", shape=[1])
    block.append_op("gather", {"X": x, "Index": index}, {"Out": item})
    return item


def sums(count: int, start: int = 0, step: int = 1) -> Any:
    """A loop that adds elements of x: total, counter."""
    x = layers.data("x", [40], append_batch_size=False)
    i, n = (layers.fill_constant([1], "int64", value) for value in (start, count))
    total = layers.fill_constant([1], "float32", 0.0)
    more = layers.less_than(i, n)
    with layers.While(more).block():
        layers.assign(total + picked(x, i), total)
        layers.increment(i, step)
        layers.less_than(i, n, cond=more)
    return [total, i]


def results(fetch: list[Any], runs: int = 3, feed: Any = None) -> list[list[Any]]:
    """The fetched values of some runs of the main program with a new executor."""
    exe = fluid.Executor()
    return [exe.run(feed={"x": X} if feed is None else feed, fetch_list=fetch) for _ in range(runs)]


def both(fetch: list[Any], feed: Any = None) -> None:
    """Compare runs with native code and without, to the bit."""
    fluid.set_flags({"FLAGS_native": "off"})
    wanted = results(fetch, feed=feed)
    fluid.set_flags({"FLAGS_native": "require"})
    for got, right in zip(results(fetch, feed=feed), wanted, strict=True):
        for a, b in zip(got, right, strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape and same_bits(a, b)


@pytest.fixture(autouse=True)
def require() -> None:
    """Native code from the first run on."""
    fluid.set_flags({"FLAGS_native": "require"})


def test_a_sum_of_elements() -> None:
    both(sums(40))
    assert "gather, elementwise_add, assign, increment, less_than" in native_text(fluid.default_main_program())
    (call,) = [call for call in native_calls(fluid.default_main_program()) if call.whole]
    assert call.text.count("for (") == 1


def test_an_index_from_the_end() -> None:
    both(sums(0, start=-40))
    assert looped()


def test_a_loop_that_never_begins() -> None:
    fetch = sums(-1)
    both(fetch)
    assert [value.item() for value in results(fetch)[0]] == [0, 0]


def random_loop(seed: int) -> list[Any]:
    """A loop over scalars and vectors of several dtypes."""
    pick = random.Random(seed)
    x = layers.data("x", [40], append_batch_size=False)
    i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", pick.randint(1, 60))
    width = pick.choice([1, 1, 40])
    state = [layers.fill_constant([width], "float32", pick.uniform(-2, 2)) for _ in range(3)]
    more = layers.less_than(i, n)
    with layers.While(more).block():
        values = [*state, layers.cast(i, "float32")]
        if width == 40:
            values.append(x)
        elif pick.random() < 0.5:
            values.append(picked(x, layers.elementwise_min(i, layers.fill_constant([1], "int64", 39))))
        for _ in range(pick.randint(2, 8)):
            a, b, kind = pick.choice(values), pick.choice(values), pick.randint(0, 7)
            if kind < 4:
                if b.shape[0] > a.shape[0]:
                    a, b = b, a
                function = pick.choice([layers.elementwise_add, layers.elementwise_sub, layers.elementwise_mul])
                values.append(function(a, b))
            else:
                function = [layers.tanh, layers.relu, layers.sigmoid, layers.square][kind - 4]
                values.append(function(a))
        for to in state:
            source = pick.choice(values)
            if source.shape == to.shape and pick.random() < 0.8:
                layers.assign(source, to)
        layers.increment(i)
        layers.less_than(i, n, cond=more)
    return [*state, i]


@pytest.mark.parametrize("seed", range(40))
def test_random_loops(seed: int) -> None:
    both(random_loop(seed))
    assert looped()


def test_two_loops_in_one_another() -> None:
    total, i, j, four = (layers.fill_constant([1], "float32", value) for value in (0.0, 0.0, 0.0, 4.0))
    outer, inner = layers.less_than(i, four), layers.less_than(j, four)
    with layers.While(outer).block():
        layers.assign(layers.fill_constant([1], "float32", 0.0), j)
        layers.less_than(j, four, cond=inner)
        with layers.While(inner).block():
            layers.assign(total + i * j, total)
            layers.increment(j)
            layers.less_than(j, four, cond=inner)
        layers.increment(i)
        layers.less_than(i, four, cond=outer)
    both([total, i, j], feed={})
    assert looped() and results([total], feed={})[0][0].item() == 36


def test_gradients_of_a_loop() -> None:
    x = layers.data("x", [40], append_batch_size=False)
    x.stop_gradient = False
    i, n = (layers.fill_constant([1], "int64", value) for value in (0, 5))
    h = layers.scale(x, 1.0)
    more = layers.less_than(i, n)
    with layers.While(more).block():
        layers.assign(layers.tanh(h * x), h)
        layers.increment(i)
        layers.less_than(i, n, cond=more)
    loss = layers.mean(h)
    fetch = [loss, *fluid.gradients(loss, x)]
    both(fetch)
    value, slope, numbers = X.astype("float64"), np.ones(40), X.astype("float64")
    for _ in range(5):
        after = np.tanh(value * numbers)
        value, slope = after, (1 - after**2) * (slope * numbers + value)
    for got, wanted in zip(results(fetch)[-1], (value.mean(), slope / 40), strict=True):
        np.testing.assert_allclose(got, np.reshape(wanted, got.shape), 1e-4, 1e-6)


def test_what_follows_a_loop_sees_its_values() -> None:
    total, i = sums(40)
    fetch = [layers.scale(total, 2.0), layers.cast(i, "float32")]
    both(fetch)
    assert [value.item() for value in results(fetch)[0]] == pytest.approx([2 * X.sum(), 40], abs=1e-4)


@pytest.mark.parametrize("first", [True, False])
def test_an_index_without_an_element_is_the_error_of_its_operator(first: bool) -> None:
    fetch = sums(60)
    texts = []
    for mode in ("off", "require"):
        fluid.set_flags({"FLAGS_native": mode})
        exe = fluid.Executor()
        for _ in range(1 if first else 2):
            with pytest.raises(EnforceNotMet, match="gather") as caught:
                exe.run(feed={"x": X}, fetch_list=fetch)
        texts.append(str(caught.value))
        assert "iteration 40" in texts[-1]
    assert texts[0] == texts[1]


def test_a_temporary_index_without_an_element() -> None:
    x = layers.data("x", [40], append_batch_size=False)
    i, n = (layers.fill_constant([1], "int64", value) for value in (0, 60))
    total, more = layers.fill_constant([1], "float32", 0.0), layers.less_than(i, n)
    with layers.While(more).block():
        layers.assign(total + picked(x, i * i), total)
        layers.increment(i)
        layers.less_than(i, n, cond=more)
    with pytest.raises(EnforceNotMet, match="(?s)gather.*iteration 7"):
        results([total])


@pytest.mark.parametrize("runs", [1, 2])
def test_the_limit(runs: int) -> None:
    fetch = sums(40)
    fluid.set_flags({"FLAGS_max_loop_iterations": 40})
    results(fetch)
    fluid.set_flags({"FLAGS_max_loop_iterations": 25})
    try:
        exe = fluid.Executor()
        for _ in range(runs):
            with pytest.raises(EnforceNotMet, match="has run block 1 25 times"):
                exe.run(feed={"x": X}, fetch_list=fetch)
    finally:
        fluid.set_flags({"FLAGS_max_loop_iterations": 10_000_000})


def test_ctrl_c_stops_a_loop_without_end() -> None:
    i, n = (layers.fill_constant([1], "int64", value) for value in (0, 1))
    more = layers.less_than(i, n)
    with layers.While(more).block():
        layers.less_than(i, n, cond=more)
    fluid.set_flags({"FLAGS_max_loop_iterations": 0})
    ended: list[type[BaseException]] = []

    def run() -> None:
        try:
            fluid.Executor().run(fetch_list=[i])
        except BaseException as error:
            ended.append(type(error))

    main = fluid.default_main_program()

    def work() -> None:
        with fluid.program_guard(main):
            run()

    try:
        worker = threading.Thread(target=work)
        worker.start()
        until = time.monotonic() + 60
        while worker.is_alive() and time.monotonic() < until:
            time.sleep(0.2)
            interrupt_all()
        worker.join(60)
    finally:
        fluid.set_flags({"FLAGS_max_loop_iterations": 10_000_000})
    assert ended == [KeyboardInterrupt]


def observed(run: Callable[[], Any]) -> list[str]:
    """The operators that observers see in a run."""
    seen: list[str] = []
    observers.append(lambda op, start, end, place: seen.append(op.desc.optype))
    try:
        run()
    finally:
        observers.pop()
    return seen


def test_watched_loops_run_operator_by_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    fetch = sums(40)
    exe = fluid.Executor()

    def run() -> Any:
        return exe.run(feed={"x": X}, fetch_list=fetch)

    wanted = run()
    assert looped()
    monkeypatch.setattr(NativeLoop, "run", lambda *args: pytest.fail("the loop in C ran"))
    assert observed(run).count("gather") == 40
    fluid.set_flags({"FLAGS_native": "off"})
    assert run() == wanted
    fluid.set_flags({"FLAGS_native": "require"})
    before = flags.values["check_nan_inf"]
    fluid.set_flags({"FLAGS_check_nan_inf": True})
    try:
        assert run() == wanted
    finally:
        fluid.set_flags({"FLAGS_check_nan_inf": before})
    machine = exe.interpret(feed={"x": X}, fetch_list=fetch).run()
    assert machine.fetch() == wanted


def test_the_run_after_a_loop_is_found_at_once() -> None:
    fetch = sums(40)
    exe = fluid.Executor()
    exe.run(feed={"x": X}, fetch_list=fetch)
    hot: Any = exe._hot
    assert hot is not None and hot.fetches is not None
    assert exe.run(feed={"x": 2 * X}, fetch_list=fetch)[0].item() == pytest.approx(2 * X.sum(), abs=1e-4)
    assert exe._hot is hot


def test_a_run_with_gradients_of_loops_is_found_at_once() -> None:
    x = layers.data("x", [40], append_batch_size=False)
    n = layers.data("n", [1], dtype="int64", append_batch_size=False)
    x.stop_gradient = False
    words, rnn = layers.reshape(x, [8, 1, 5]), layers.StaticRNN()
    with rnn.step():
        word = rnn.step_input(words)
        before = rnn.memory(shape=[-1, 5], batch_ref=word)
        now = layers.tanh(word + before)
        rnn.update_memory(before, now)
        rnn.step_output(now)
    i, total = layers.fill_constant([1], "int64", 0), layers.fill_constant([40], "float32", 0.0)
    condition = layers.less_than(i, n)
    loop = layers.While(condition)
    with loop.block():
        layers.assign(total + x * x, total)
        layers.increment(i, 1, True)
        layers.less_than(i, n, cond=condition)
    fetch = fluid.gradients([layers.reduce_sum(rnn()) + layers.reduce_sum(total)], [x])
    exe, found = fluid.Executor(), set()
    for count in (3, 3, 7, 0, 2):
        feed = {"x": X * (1 + count), "n": np.array([count])}
        (wanted,) = exe.interpret(feed=feed, fetch_list=fetch).run().fetch()
        np.testing.assert_allclose(exe.run(feed=feed, fetch_list=fetch)[0], wanted, rtol=1e-6)
        hot: Any = exe._hot
        found.add((id(hot), hot.fetches is None))
    assert len(found) == 1 and not found.pop()[1]
