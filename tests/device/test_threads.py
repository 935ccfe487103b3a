"""Several programs, executors and threads at one device, and what users hold while a program runs on."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from tests.device.faults import two_devices
from tests.device.models import NAMES, Job
from tests.tools.sampling import sample

STEPS = 6


@pytest.fixture(autouse=True)
def quick() -> Iterator[None]:
    """Threads take turns often."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


def _at_once(*jobs: Callable[[], None]) -> None:
    """Run functions in threads of their own, all from the same moment on."""
    ready, errors = threading.Barrier(len(jobs)), list[BaseException]()

    def run(job: Callable[[], None]) -> None:
        ready.wait()
        try:
            job()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in errors:
        raise error


def _trained(job: Job) -> list[list[bytes]]:
    job.start()
    return [job.step(number) for number in range(STEPS)]


@pytest.mark.parametrize("pair", sample([(a, b) for i, a in enumerate(NAMES) for b in NAMES[i:]], 3))
def test_two_programs_in_two_threads(pair: tuple[str, str], cuda: fluid.CUDAPlace) -> None:
    want = [_trained(Job(name, cuda)) for name in pair]
    for _ in range(2):
        jobs = [Job(name, cuda) for name in pair]
        got: list[list[list[bytes]]] = [[], []]

        def train(at: int, jobs: list[Job] = jobs, got: list[Any] = got) -> None:
            got[at] = _trained(jobs[at])

        _at_once(lambda: train(0), lambda: train(1))
        assert got == want


def test_one_program_in_two_threads_and_scopes(cuda: fluid.CUDAPlace) -> None:
    """Each with an executor of its own."""
    want = _trained(Job("loop", cuda))
    for _ in range(3):
        one, two = Job("loop", cuda), Job("loop", cuda)
        two.model = one.model
        got: list[Any] = [None, None]

        def train(at: int, job: Job, got: list[Any] = got) -> None:
            got[at] = _trained(job)

        _at_once(lambda one=one: train(0, one), lambda two=two: train(1, two))  # type: ignore[misc]
        assert got == [want, want]


def _counting(size: int) -> fluid.Program:
    """A program that adds 1 to each number of a variable of the scope, by several operators."""
    main = fluid.Program()
    with fluid.program_guard(main):
        total = layers.create_global_var([size], 0.0, "float32", persistable=True, name="total")
        layers.assign(layers.scale(total, bias=0.5), total)
        layers.assign(layers.scale(total, bias=0.5), total)
    return main


def test_two_devices_in_two_threads(cuda: fluid.CUDAPlace) -> None:
    with two_devices() as places:
        want = _trained(Job("mlp", places[0]))
        jobs = [Job("mlp", place) for place in places]
        got: list[Any] = [None, None]

        def train(at: int) -> None:
            got[at] = _trained(jobs[at])

        _at_once(lambda: train(0), lambda: train(1))
        assert got == [want, want]


def test_a_tensor_is_read_while_the_next_run_is_under_way(cuda: fluid.CUDAPlace) -> None:
    """All of its numbers are of one run."""
    main, scope = _counting(4096), fluid.Scope()
    tensor = scope.var("total").get_tensor()
    tensor.set(np.zeros(4096, "float32"), cuda)
    done, seen = threading.Event(), list[float]()

    def train() -> None:
        try:
            exe = fluid.Executor(cuda)
            for _ in range(40):
                exe.run(main, scope=scope)
        finally:
            done.set()

    def read() -> None:
        while not done.is_set():
            values = set(np.array(tensor).tolist())
            assert len(values) == 1
            seen.append(values.pop())

    _at_once(train, read)
    assert seen == sorted(seen) and np.array(tensor)[0] == 40


def test_what_a_user_holds_stays_as_it_is(cuda: fluid.CUDAPlace) -> None:
    """Fetched values are copies; an array of a scope keeps its block, though the program gives the variable another."""
    job = Job("lstm", cuda)
    job.start()
    first = job.run(0)
    copies = [np.array(v) for v in first]
    tensor = job.scope.find_var("fc_0.w_0").get_tensor()
    held, before = tensor.array, np.array(tensor)
    tensor.set(np.zeros((5, 5), "float32"), cuda)  # another block
    tensor.set(before, cuda)
    for number in range(1, 4):
        job.step(number)
    for value, copy in zip(first, copies, strict=True):
        np.testing.assert_array_equal(np.array(value), copy)
    np.testing.assert_array_equal(held.get(), before)
    array = tensor.array
    del tensor, job
    trained = array.get()
    others = [Job("lstm", cuda) for _ in range(2)]
    for other in others:
        _trained(other)
    np.testing.assert_array_equal(array.get(), trained)
