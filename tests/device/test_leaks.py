"""No memory of a device is lost by what is made and dropped again and again."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.errors import OpValueError
from fluidnb.memory import Block, OutOfMemory
from fluidnb.runtime.replay.segment import Segment
from fluidnb.runtime.replay.specialization import Specialization
from fluidnb.values import LoDTensor
from fluidnb_kernels.cuda import Function
from fluidnb_kernels.cuda_emulator_backend.module import RawKernel, RawModule
from fluidnb_kernels.cuda_emulator_backend.streams import Event, Graph, Stream
from tests.device.faults import no_memory, nth
from tests.device.models import Job

#: What must not grow in number.
KINDS = (
    Specialization,
    Segment,
    Block,
    Graph,
    Stream,
    Event,
    RawModule,
    Function,
    LoDTensor,
    fluid.Scope,
    fluid.Program,
)


def _alive(place: Any) -> dict[Any, int]:
    gc.collect()
    gc.collect()  # what destructors let go
    found = Counter({"bytes": fluid.memory.stats(place).used})
    for thing in gc.get_objects():
        for kind in KINDS:
            if type(thing) is kind:
                found[kind] += 1
    return dict(found)


def _nothing_stays(once: Callable[[int], Any], place: Any, times: int) -> None:
    for number in range(4):
        once(number)
    before = _alive(place)
    for number in range(times):
        once(number)
    assert _alive(place) == before


@pytest.fixture
def times(request: pytest.FixtureRequest) -> int:
    """The number of rounds: enough to see one object more in each."""
    return 200 if request.config.getoption("--full") else 12


def test_programs(cuda: fluid.CUDAPlace, times: int) -> None:
    def once(number: int) -> None:
        job = Job(("mlp", "loop")[number % 2], cuda)
        job.start()
        for step in range(3):
            job.step(step)

    _nothing_stays(once, cuda, times)


def test_scopes(cuda: fluid.CUDAPlace, times: int) -> None:
    job = Job("mlp", cuda)

    def once(_: int) -> None:
        job.scope = fluid.Scope()
        job.start()
        job.step()
        job.step()

    for number in range(36):  # a program is kept ready for some scopes, not for more and more
        once(number)
    _nothing_stays(once, cuda, times)


def test_feeds_of_many_sizes(cuda: fluid.CUDAPlace, times: int) -> None:
    job = Job("mlp", cuda)
    job.start()

    def once(number: int) -> None:
        rows = 1 + number % 4
        feed = {"x": np.ones((rows, 6), "float32"), "y": np.zeros((rows, 1), "int64")}
        for _ in range(3):
            job.exe.run(job.model.main, feed, job.model.fetch, scope=job.scope)

    for number in range(8):
        once(number)
    _nothing_stays(once, cuda, times)


def test_tensors_with_sequences_in_and_out(cuda: fluid.CUDAPlace, times: int) -> None:
    job = Job("lstm", cuda)
    job.start()

    def once(_: int) -> None:
        given = job.model.feed(0)
        feed = {"y": given["y"], "x": fluid.create_lod_tensor(*given["x"], cuda)}
        got = job.exe.run(job.model.main, feed, job.model.fetch, scope=job.scope, return_numpy=False)
        assert got[1].recursive_sequence_lengths() == [[3, 1, 2]]
        for value in got:
            there = LoDTensor()
            there.set(np.array(value), cuda)

    _nothing_stays(once, cuda, times)


@pytest.mark.parametrize("name", ["mlp", "loop"])
def test_debugger_sessions(name: str, cuda: fluid.CUDAPlace, times: int) -> None:
    job = Job(name, cuda)
    job.start()

    def once(_: int) -> None:
        session = fluid.debug(job.model.main, job.model.feed(0), job.model.fetch, job.scope, cuda)
        session.continue_()
        session.back(session.snapshot.at)
        session.continue_()
        session.close()

    _nothing_stays(once, cuda, times // 4)


def test_graphs(cuda: fluid.CUDAPlace, times: int) -> None:
    x = layers.data("x", shape=[3])
    out = x
    for _ in range(5):
        out = layers.relu(layers.scale(out, scale=1.5))
    program = fluid.default_main_program()

    def once(number: int) -> None:
        exe = fluid.Executor(cuda)
        program.desc.state = None
        for _ in range(3):
            exe.run(feed={"x": np.full((2, 3), number, "float32")}, fetch_list=[out])

    _nothing_stays(once, cuda, times)


def test_runs_that_fail(cuda: fluid.CUDAPlace, times: int) -> None:
    """Refused feeds, operators that find no memory, kernels that are not taken, and Ctrl-C."""
    job = Job("loop", cuda)
    job.start()

    def fail() -> None:
        raise KeyboardInterrupt

    def once(number: int) -> None:
        with pytest.raises(OpValueError):
            job.exe.run(job.model.main, {"x": np.ones((2, 7), "float32")}, scope=job.scope)
        job.forget()
        with no_memory(20 + number % 3), pytest.raises(OutOfMemory):
            job.step()
        job.step()
        with nth(RawKernel, "__call__", 3, lambda *_, **__: fail()), pytest.raises(KeyboardInterrupt):
            job.step()
        job.step()

    _nothing_stays(once, cuda, times)
