"""Eight threads run programs at a time, with one executor or several; processes that are forked or spawned go on."""

from __future__ import annotations

import multiprocessing
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers, op
from fluidnb.errors import FluidError
from fluidnb.op import same

THREADS = 8
Training = tuple[fluid.Program, fluid.Program, Any]


def training() -> Training:
    """A program that trains, its startup program and its loss."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 5
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x, y = layers.data("x", [8]), layers.data("y", [1])
        loss = layers.mean(layers.square_error_cost(layers.fc(layers.fc(x, 16, act="relu"), 1), y))
        fluid.optimizer.SGD(0.05).minimize(loss)
    return main, startup, loss


def feeds() -> list[dict[str, Any]]:
    """Batches of several sizes."""
    rng = np.random.default_rng(0)
    return [{"x": rng.random((n, 8), "float32"), "y": rng.random((n, 1), "float32")} for n in (4, 7, 4, 9, 2)]


def losses(exe: fluid.Executor, made: Training, scope: fluid.Scope) -> list[float]:
    """Trains for a few steps."""
    main, startup, loss = made
    exe.run(startup, scope=scope)
    return [exe.run(main, feed=f, fetch_list=[loss], scope=scope)[0].item() for f in feeds() * 4]


def together(work: Callable[[int], Any]) -> list[Any]:
    """The result or the error of each of eight threads."""
    given: list[Any] = [None] * THREADS

    def one(i: int) -> None:
        try:
            given[i] = work(i)
        except BaseException as error:
            given[i] = error

    threads = [threading.Thread(target=one, args=(i,)) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return given


@pytest.mark.parametrize("executors", ["one executor", "an executor each"])
@pytest.mark.parametrize("programs", ["one program", "a program each"])
def test_training_with_a_scope_each(executors: str, programs: str) -> None:
    shared, made = fluid.Executor(), training()
    expected = losses(fluid.Executor(), made, fluid.Scope())
    each = [made if programs == "one program" else training() for _ in range(THREADS)]
    exes = [shared if executors == "one executor" else fluid.Executor() for _ in range(THREADS)]
    assert together(lambda i: losses(exes[i], each[i], fluid.Scope())) == [expected] * THREADS


def test_inference_in_one_scope() -> None:
    main, startup, loss = training()
    test = main.prune([loss])  # without the optimizer
    exe, scope, batches = fluid.Executor(), fluid.Scope(), feeds()
    exe.run(startup, scope=scope)
    expected = [exe.run(test, feed=f, fetch_list=[loss], scope=scope)[0].item() for f in batches]
    assert len(set(expected)) == 5

    def work(i: int) -> list[float]:
        return [exe.run(test, feed=batches[(i + k) % 5], fetch_list=[loss], scope=scope)[0].item() for k in range(50)]

    given = together(work)
    assert given == [[expected[(i + k) % 5] for k in range(50)] for i in range(THREADS)]


@pytest.mark.parametrize("how", ["executor", "eval"])
def test_all_threads_are_the_first_to_run_a_program(how: str) -> None:
    """Eight threads fetch different variables of a program that has just changed; Python switches every 10 µs."""
    interval = sys.getswitchinterval()
    main, exe, scope = fluid.Program(), fluid.Executor(), fluid.Scope()
    with fluid.program_guard(main):
        totals = [layers.fill_constant([1], "float32", 1.0) for _ in range(THREADS)]

    names, block = [total.name for total in totals], main.global_block()

    def work(i: int) -> list[float]:
        if how == "eval":
            return [block.eval([n, names[i]], fluid.Scope(), fluid.CPUPlace())[-1].item() for n in names]
        values = [exe.run(main, fetch_list=[names[i], n], scope=scope)[0].item() for n in names]
        assert "float32[1]" in repr(totals[i])  # with its last value, unless others have run four times since
        return values

    sys.setswitchinterval(1e-5)
    try:
        for count in range(1, 5):
            assert together(work) == [[float(count)] * THREADS] * THREADS
            with fluid.program_guard(main):
                for total in totals:
                    layers.increment(total, 1.0)
    finally:
        sys.setswitchinterval(interval)


def test_an_error_in_one_thread_does_not_reach_another() -> None:
    made, exe = training(), fluid.Executor()
    expected = losses(fluid.Executor(), made, fluid.Scope())

    def work(i: int) -> Any:
        if i % 2:
            scope = fluid.Scope()
            exe.run(made[1], scope=scope)
            wrong = {"x": np.ones((2, 9), "float32"), "y": np.ones((2, 1), "float32")}
            for _ in range(5):
                with pytest.raises(FluidError, match="x"):
                    exe.run(made[0], feed=wrong, fetch_list=[made[2]], scope=scope)
        return losses(exe, made, fluid.Scope())

    assert together(work) == [expected] * THREADS


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_process_goes_on_with_what_it_inherits() -> None:
    main, startup, loss = training()
    exe, scope, batch = fluid.Executor(), fluid.Scope(), feeds()[0]
    exe.run(startup, scope=scope)
    exe.run(main, feed=batch, fetch_list=[loss], scope=scope)
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()

    def child() -> None:
        answers.put([exe.run(main, feed=batch, fetch_list=[loss], scope=scope)[0].item() for _ in range(5)])

    process = context.Process(target=child)
    process.start()
    theirs = answers.get()
    process.join(60)
    ours = [exe.run(main, feed=batch, fetch_list=[loss], scope=scope)[0].item() for _ in range(5)]
    assert process.exitcode == 0 and theirs == ours, "the child trains its own copy of the parameters"


def spawned(batch: dict[str, Any]) -> list[float]:
    """In a new process: the first losses."""
    return losses(fluid.Executor(), training(), fluid.Scope())


def test_a_spawned_process_gives_the_same_numbers() -> None:
    expected = losses(fluid.Executor(), training(), fluid.Scope())
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(spawned, (feeds()[0],)) == expected


def test_a_run_keeps_its_feeds_while_another_thread_feeds_the_same_executor() -> None:
    begun, fed = threading.Event(), threading.Event()

    def wait(x: np.ndarray[Any, Any], out: np.ndarray[Any, Any]) -> None:
        if x[0] == 1:
            begun.set()
            fed.wait(60)
        np.copyto(out, x)

    def kernel(b: op.Binder) -> None:
        b(wait, b["X"], b["Out"])

    op.op("waits", inputs={"X": "any"}, outputs={"Out": "same"}, infer=same())(kernel)
    try:
        main = fluid.Program()
        with fluid.program_guard(main, fluid.Program()):
            x = layers.data("x", [2], append_batch_size=False)
            after = main.global_block().create_var(name="after", shape=[2], dtype="float32")
            main.global_block().append_op("waits", {"X": x}, {"Out": after})
            fetches, exe = [layers.scale(x, 10.0)], fluid.Executor()
            fetches.append(after)

        def run(value: float) -> Any:
            return exe.run(main, feed={"x": np.full(2, value, "float32")}, fetch_list=fetches)[0].tolist()

        assert run(0) == [0, 0]
        found: list[Any] = []
        thread = threading.Thread(target=lambda: found.append(run(1)))
        thread.start()
        assert begun.wait(60) and run(2) == [20, 20]
        fed.set()
        thread.join()
        assert found == [[10, 10]]
    finally:
        fed.set()
        op.remove_op("waits")


def test_a_scope_guard_is_the_threads_own() -> None:
    main, seen = fluid.Scope(), []
    inside, left = threading.Event(), threading.Event()

    def other() -> None:
        seen.append(fluid.global_scope())
        mine = fluid.Scope()
        with fluid.scope_guard(mine):
            inside.set()
            left.wait(60)
            seen.append(fluid.global_scope() is mine)

    with fluid.scope_guard(main):
        thread = threading.Thread(target=other)
        thread.start()
        assert inside.wait(60) and fluid.global_scope() is main
    left.set()
    thread.join()
    assert seen == [main, True]


def test_models_in_threads_have_their_own_parameters(tmp_path: Path) -> None:
    opened = []
    for value in (1.0, 2.0):
        main, startup, exe = fluid.Program(), fluid.Program(), fluid.Executor()
        with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
            weight = fluid.ParamAttr(initializer=fluid.initializer.Constant(value))
            y = layers.fc(layers.data("x", [1]), 1, bias_attr=False, param_attr=weight)
            exe.run(startup)
            fluid.io.save_inference_model(str(tmp_path / str(value)), ["x"], [y], exe, main)
        opened.append(fluid.open(str(tmp_path / str(value))))
    one = np.ones((1, 1), "float32")
    given = together(lambda i: {opened[i % 2].run(one)[0].item() for _ in range(300)} if i < 2 else None)
    assert given[:2] == [{1.0}, {2.0}]
