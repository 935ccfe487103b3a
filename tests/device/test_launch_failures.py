"""Failures of launches, copies and graphs at any point of a run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet, FluidError
from fluidnb.memory import flags
from fluidnb_kernels.cuda_emulator_backend import memory as device_memory
from fluidnb_kernels.cuda_emulator_backend import runtime
from fluidnb_kernels.cuda_emulator_backend.module import RawKernel
from fluidnb_kernels.cuda_emulator_backend.streams import Graph, Stream, get_current_stream
from tests.device.faults import nth
from tests.device.models import NAMES
from tests.device.story import Story
from tests.tools.sampling import sample

#: How many points of each run are tried in a normal run of the tests.
FEW = 2
#: Runs with which each kind of run begins: the first one, the one that captures graphs, one that launches them.
KINDS = {"first": 0, "capturing": 1, "with graphs": 2}


def refuse(*_: Any, **__: Any) -> None:
    """The error of a device that is out of a resource."""
    raise device_memory.CUDARuntimeError("cudaErrorLaunchOutOfResources: too many resources requested for launch")


def _names_an_operator(text: str) -> bool:
    return bool(re.search(r"op:? +op \d+ \(\w+\) in block \d", text) and re.search(r"at: +models\.py:\d+", text))


@pytest.mark.parametrize(("name", "kind"), sample([(n, k) for n in NAMES for k in KINDS], 5))
def test_kernels_that_are_not_taken(name: str, kind: str, cuda: fluid.CUDAPlace) -> None:
    story = Story(name, cuda, KINDS[kind])
    job = story.told()
    with nth(RawKernel, "__call__", -1, refuse) as count:
        job.step(story.done)
    for at in sample(range(count.made), FEW):
        for lasting in (False, True):
            job = story.told()
            try:
                with nth(RawKernel, "__call__", at, refuse, lasting):
                    got = job.step(story.done)
            except EnforceNotMet as error:
                assert _names_an_operator(str(error)), error
                assert "too many resources requested" in str(error)
                assert set(job.values()) == set(story.before) and job.scope.kids == []
            else:  # the graph is done without
                assert got == story.want[0] and not lasting
            story.goes_on()


@pytest.mark.parametrize(("name", "kind"), sample([(n, k) for n in NAMES for k in KINDS], 4))
def test_copies_that_are_not_taken(name: str, kind: str, cuda: fluid.CUDAPlace) -> None:
    """Feeds, fetches, numbers that the host looks at, copies on the device."""
    story = Story(name, cuda, KINDS[kind])
    job = story.told()
    with nth(runtime, "memcpyAsync", -1, refuse) as count:
        job.step(story.done)
    for at in sample(range(count.made), FEW):
        job = story.told()
        try:
            with nth(runtime, "memcpyAsync", at, refuse):
                got = job.step(story.done)
        except FluidError as error:
            assert "too many resources" in str(error)
            assert re.search(r"at: +models\.py:\d+", str(error)), error
            assert set(job.values()) == set(story.before) and job.scope.kids == []
        else:  # the graph is done without
            assert got == story.want[0]
        story.goes_on()


@pytest.mark.parametrize(("name", "kind"), sample([(n, k) for n in NAMES for k in KINDS if k != "first"], 4))
def test_graphs_that_are_not_taken(name: str, kind: str, cuda: fluid.CUDAPlace) -> None:
    story = Story(name, cuda, KINDS[kind])
    for owner, what in ((Stream, "begin_capture"), (Stream, "end_capture"), (Graph, "launch")):
        job = story.told()
        with nth(owner, what, 0, refuse, lasting=True) as count:
            assert [job.step(story.done), job.step(story.done + 1)] == story.want, what
        assert count.made or name != "mlp" or (owner is Stream and kind == "with graphs"), what
        story.goes_on()


@contextmanager
def lost(at: int) -> Iterator[list[int]]:
    """For a ``with``: from a certain kernel on the device is lost, and every call fails, as on a GPU.

    Args:
        at: which one, from 0; -1 counts them only.
    """
    seen: list[int] = []
    gone: list[int] = []
    call, push, drain = RawKernel.__call__, Stream.push, Stream.drain

    def fail() -> None:
        gone.append(1)
        raise device_memory.CUDARuntimeError("cudaErrorIllegalAddress: an illegal memory access was encountered")

    def launched(kernel: RawKernel, *args: Any, **kw: Any) -> None:
        call(kernel, *args, **kw)
        seen.append(1)
        if len(seen) - 1 == at:
            get_current_stream().push(fail)

    def pushed(stream: Stream, work: Any) -> None:
        if gone:
            fail()
        push(stream, work)

    def drained(stream: Stream, upto: int | None = None) -> None:
        if gone:
            fail()
        drain(stream, upto)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RawKernel, "__call__", launched)
        patch.setattr(Stream, "push", pushed)
        patch.setattr(Stream, "drain", drained)
        yield seen


@pytest.mark.parametrize(("name", "kind"), sample([(n, k) for n in NAMES for k in KINDS], 4))
def test_a_device_that_is_lost(name: str, kind: str, cuda: fluid.CUDAPlace) -> None:
    """Waiting and later calls raise the error of the lost device, without a crash."""
    story = Story(name, cuda, KINDS[kind])
    job = story.told()
    with lost(-1) as seen:
        job.step(story.done)
    for at in sample(range(len(seen)), FEW):
        job = story.told()
        with lost(at):
            for _ in range(3):
                with pytest.raises(FluidError, match="illegal memory access"):
                    job.step(story.done)
            with pytest.raises(FluidError, match="illegal memory access"):
                job.values()
            with pytest.raises(FluidError, match="illegal memory access"):
                fluid.LoDTensor().set(np.ones(3, "float32"), cuda)
        get_current_stream().synchronize()
        job.forget()  # a graph may hold what went wrong
        story.goes_on()


def test_waiting_after_each_operator_finds_the_one_that_fails(cuda: fluid.CUDAPlace) -> None:
    story = Story("mlp", cuda, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(flags.values, "benchmark", True)
        for at in sample(range(20), FEW):
            job = story.told()
            with lost(at), pytest.raises(EnforceNotMet, match="illegal memory access") as told:
                job.step(story.done)
            assert _names_an_operator(str(told.value)), told.value
    story.goes_on()
