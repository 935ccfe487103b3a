"""Runs of two threads at the same time on one device."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.values import DeviceContext
from fluidnb_kernels.cuda_emulator_backend import runtime
from fluidnb_kernels.cuda_emulator_backend.streams import Stream, get_current_stream


def in_a_thread(work: Callable[[], Any]) -> Any:
    """The result of a function that a new thread has run to its end."""
    got: list[Any] = []
    thread = threading.Thread(target=lambda: got.append(work()))
    thread.start()
    thread.join()
    return got[0]


class Counter:
    """A program that adds what it is fed to a variable of its scope."""

    def __init__(self, place: Any, scope: fluid.Scope | None = None) -> None:
        self.scope, self.exe, self.main = scope or fluid.Scope(), fluid.Executor(place), fluid.Program()
        startup = fluid.Program()
        with fluid.program_guard(self.main, startup):
            x = layers.data("x", shape=[4], append_batch_size=False)
            self.total = layers.create_global_var([4], 0.0, "float32", persistable=True, name="total")
            layers.assign(layers.elementwise_add(self.total, layers.relu(layers.scale(x, scale=2.0))), self.total)
        self.exe.run(startup, scope=self.scope)

    def add(self, number: float) -> None:
        """Start a run; it is not awaited."""
        self.exe.run(self.main, feed={"x": np.full(4, number, "float32")}, scope=self.scope, fetch_list=[])

    def value(self) -> float:
        """The value of the variable, read outside of runs."""
        return float(np.asarray(self.scope.find_var("total").get_tensor())[0])


def waiting() -> list[Stream]:
    """Streams with pending work."""
    return [s for s in list(runtime.streams.values()) if not s.done]


@pytest.mark.emulator_backend  # its streams do nothing until somebody waits
def test_each_thread_has_a_stream(cuda: fluid.CUDAPlace) -> None:
    context, here, there = DeviceContext.get(cuda), Counter(cuda), Counter(cuda)

    def added(number: float) -> Stream:
        there.add(number)
        return context.turn().stream  # type: ignore[attr-defined,no-any-return]

    in_a_thread(lambda: added(0.0))  # new memory would wait for all
    assert there.value() == 0.0
    here.add(1.0)
    mine, others = context.turn().stream, in_a_thread(lambda: added(1.0))  # type: ignore[attr-defined]
    assert len({0, mine.ptr, others.ptr}) == 3
    assert not mine.done
    assert not others.done
    others.synchronize()
    assert not mine.done  # nobody has waited for it
    assert (here.value(), there.value()) == (2.0, 2.0)
    assert mine.done


def test_runs_of_a_thread_come_one_after_the_other(cuda: fluid.CUDAPlace) -> None:
    one = Counter(cuda)
    two = Counter(cuda, one.scope)  # the same variable, set to zero again
    for number in (1.0, 2.0):
        one.add(number)
        two.add(10 * number)
    assert waiting()
    assert one.value() == 66.0


@pytest.mark.parametrize("graphs", [True, False])
def test_a_scope_that_goes_to_another_thread_is_as_the_first_left_it(
    graphs: bool, cuda: fluid.CUDAPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(fluid.memory.flags.values, "cuda_graphs", graphs)
    net = Counter(cuda)
    for number in range(1, 4):
        net.add(number)
        in_a_thread(lambda number=number: net.add(100 * number))  # type: ignore[misc]
    assert waiting()
    assert net.value() == 2 * 606.0


def test_memory_that_one_has_given_back_is_not_written_before_it_has_done_its_work(cuda: fluid.CUDAPlace) -> None:
    context, net = DeviceContext.get(cuda), Counter(cuda)
    with context.turn():
        first = context.empty((4,), "float32")
        first.set(np.full(4, 7.0, "float32"))
        get_current_stream().synchronize()
        kept = context.empty((4,), "float32")
        context.fill(kept, first)  # waits in the stream of this thread
        address = first.data.ptr
        del first

        def next_owner() -> bool:
            with context.turn():
                made = context.empty((4,), "float32")
                context.fill_all([(made, np.zeros(4, "float32"))])
                get_current_stream().synchronize()
                return bool(made.data.ptr == address)

        assert in_a_thread(next_owner)
        assert kept.get()[0] == 7.0
    net.add(1.0)
    assert net.value() == 2.0


def test_a_turn_that_is_under_way_is_waited_for_again(cuda: fluid.CUDAPlace) -> None:
    """Work that arrives while a thread waits is part of the same turn."""
    context, waited, over = DeviceContext.get(cuda), threading.Event(), threading.Event()
    gc.collect()
    with context.turn():
        kept, zeros = context.empty((4,), "float32"), np.zeros(4, "float32")
        seen: list[bool] = []

        def other() -> None:
            with context.turn():
                context.empty((4,), "float32")  # waits for all that the first thread has done so far
                waited.set()
                over.wait()
                made = context.empty((4,), "float32")
                seen.append(made.data.ptr == address)
                context.fill_all([(made, zeros)])
                get_current_stream().synchronize()

        thread = threading.Thread(target=other)
        thread.start()
        waited.wait()
        first = context.empty((4,), "float32")
        first.set(np.full(4, 7.0, "float32"))
        get_current_stream().synchronize()
        context.fill(kept, first)
        address = first.data.ptr
        del first
    over.set()
    thread.join()
    assert seen == [True]
    assert kept.get()[0] == 7.0


def test_what_is_fed_may_change_at_once(cuda: fluid.CUDAPlace) -> None:
    net, fed = Counter(cuda), np.ones(4, "float32")
    for _ in range(3):
        net.exe.run(net.main, feed={"x": fed}, scope=net.scope, fetch_list=[])
        fed *= 10.0
    assert net.value() == 2 * 111.0


def test_a_stream_of_the_user_comes_before_and_waits(cuda: fluid.CUDAPlace) -> None:
    net, given = Counter(cuda), fluid.LoDTensor()
    given.set(np.zeros(4, "float32"), cuda)
    runtime.deviceSynchronize()
    out = np.zeros(4, "float32")
    with Stream(non_blocking=True) as own:
        runtime.memsetAsync(given.array.data.ptr, 0, given.array.nbytes, own.ptr)
        ones = np.full(4, 5.0, "float32")
        runtime.memcpyAsync(given.array.data.ptr, ones.ctypes.data, 16, runtime.memcpyHostToDevice, own.ptr)
        net.exe.run(net.main, feed={"x": given}, scope=net.scope, fetch_list=[])
        total = net.scope.find_var("total").get_tensor().array
        runtime.memcpyAsync(out.ctypes.data, total.data.ptr, 16, runtime.memcpyDeviceToHost, own.ptr)
        own.synchronize()
    assert out[0] == 10.0


def test_two_threads_train_as_one_would(cuda: fluid.CUDAPlace) -> None:
    def built() -> tuple[fluid.Program, fluid.Program, Any]:
        main, startup = fluid.Program(), fluid.Program()
        main.random_seed = startup.random_seed = 3
        with fluid.program_guard(main, startup), fluid.unique_name.guard():
            x, y = layers.data("x", shape=[5]), layers.data("y", shape=[1])
            loss = layers.mean(layers.square_error_cost(layers.fc(layers.fc(x, 6, act="tanh"), 1), y))
            fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
        return main, startup, loss

    def training(main: fluid.Program, startup: fluid.Program, loss: Any) -> list[float]:
        scope, exe = fluid.Scope(), fluid.Executor(cuda)
        exe.run(startup, scope=scope)
        r, losses = np.random.default_rng(1), []
        for rows in (3, 3, 3, 2, 3, 3):
            feed = {"x": r.normal(size=(rows, 5)).astype("float32"), "y": np.ones((rows, 1), "float32")}
            exe.run(main, feed=feed, scope=scope, fetch_list=[])
            losses.append(float(exe.run(main, feed=feed, scope=scope, fetch_list=[loss])[0][0]))
        return losses

    alone, results, programs = training(*built()), {}, [built() for _ in range(3)]
    start = threading.Barrier(3)

    def work(name: int) -> None:
        start.wait()
        results[name] = training(*programs[name])

    threads = [threading.Thread(target=work, args=(name,)) for name in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(results.values()) == [alone] * 3


def test_fetches_of_several_values_wait_once(cuda: fluid.CUDAPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    x = layers.data("x", shape=[3])
    outs = [layers.scale(x, scale=float(k)) for k in range(1, 4)]
    exe, feed = fluid.Executor(cuda), {"x": np.ones((2, 3), "float32")}
    exe.run(feed=feed, fetch_list=outs)
    waited, synchronize = [], Stream.synchronize
    monkeypatch.setattr(Stream, "synchronize", lambda stream: (waited.append(stream), synchronize(stream)))
    got = exe.run(feed=feed, fetch_list=outs)
    assert len(waited) == 1
    for k, array in enumerate(got, 1):
        np.testing.assert_array_equal(array, np.full((2, 3), float(k), "float32"))
    assert got[0].base is None  # the user's own


def test_large_values_come_and_go_too(cuda: fluid.CUDAPlace) -> None:
    x = layers.data("x", shape=[-1], append_batch_size=False)
    y = layers.scale(x, scale=2.0)
    big = np.arange((1 << 22) + 5, dtype="float32")
    (got,) = fluid.Executor(cuda).run(feed={"x": big}, fetch_list=[y])
    np.testing.assert_array_equal(got, 2 * big)
