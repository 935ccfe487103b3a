"""Ctrl-C at any point of a run on a device: what is left behind, and the run after it."""

from __future__ import annotations

import signal
import time
from typing import Any

import pytest

import fluidnb as fluid
from fluidnb.memory.buddy import BuddyAllocator
from fluidnb_kernels.cuda import Function, sources
from fluidnb_kernels.cuda_emulator_backend import runtime
from fluidnb_kernels.cuda_emulator_backend.module import RawKernel, RawModule
from fluidnb_kernels.cuda_emulator_backend.streams import Graph, Stream
from tests.device.faults import nth
from tests.device.models import NAMES, Job
from tests.device.story import Story
from tests.tools.sampling import sample

#: How many points of each run are tried in a normal run of the tests.
FEW = 2
#: Where an interrupt is felt.
CALLS: dict[str, tuple[Any, str]] = {
    "launch": (RawKernel, "__call__"), "memory": (BuddyAllocator, "_take"), "copy": (runtime, "memcpyAsync"),
    "capture": (Stream, "begin_capture"), "end of capture": (Stream, "end_capture"), "graph": (Graph, "launch"),
    "wait": (Stream, "synchronize"), "arguments": (Function, "launch"),
}  # fmt: skip
#: A model, and how often it has run before.
CASES = [(name, done) for name in NAMES for done in range(3)]


def _raise(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def _press(function: Any) -> Any:
    def pressed(*args: Any, **kw: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return function(*args, **kw)

    return pressed


def _stopped(job: Job, number: int, fault: Any, at: int) -> None:
    """A run that Ctrl-C stops; it may come by in fewer calls than the one in which they were counted."""
    with fault as count:
        try:
            job.step(number)
            if count.made > at:
                time.sleep(10)  # pressed in the middle of what must not be torn apart, it is felt a moment later
        except KeyboardInterrupt:
            return
    assert count.made <= at, "an interrupt was lost"


@pytest.mark.parametrize("how", ["raised", "signal"])
@pytest.mark.parametrize(("name", "done"), sample(CASES, 2))
def test_ctrl_c_at_any_call(name: str, done: int, how: str, cuda: fluid.CUDAPlace) -> None:
    story = Story(name, cuda, done)
    for owner, call in CALLS.values():
        job = story.told()
        with nth(owner, call, -1, _raise) as count:
            job.step(done)
        for at in sample(range(count.made), FEW):
            fault = _raise if how == "raised" else _press(getattr(owner, call))
            job = story.told()
            _stopped(job, done, nth(owner, call, at, fault), at)
            story.is_left_in_order()
            story.goes_on()
            story.leaves_no_memory()


@pytest.mark.parametrize("name", sample(NAMES, 2))
def test_ctrl_c_while_a_kernel_is_compiled(name: str, cuda: fluid.CUDAPlace) -> None:
    story = Story(name, cuda, 0)

    def compile_all() -> None:
        for source in sources:
            for function in source._functions.values():
                function._compiled.pop("emulator device", None)

    job = story.told()
    compile_all()
    with nth(RawModule, "__init__", -1, _raise) as count:
        job.step()
    assert count.made
    for at in sample(range(count.made), FEW):
        job = story.told()
        compile_all()
        with pytest.raises(KeyboardInterrupt), nth(RawModule, "__init__", at, _raise):
            job.step()
        story.is_left_in_order()
        story.goes_on()
        story.leaves_no_memory()


def test_ctrl_c_while_a_debugger_walks(cuda: fluid.CUDAPlace) -> None:
    """A run operator by operator that keeps its scopes stops between two of them, too."""
    story = Story("loop", cuda, 0)

    def walk(job: Job) -> Any:
        model = job.model
        return job.exe.run(model.main, model.feed(0), model.fetch, scope=job.scope, keep_scopes=True)

    job = story.told()
    with nth(RawKernel, "__call__", -1, _raise) as count:
        walk(job)
    job.scope.drop_kids()
    for at in sample(range(count.made), FEW):
        job = story.told()
        with pytest.raises(KeyboardInterrupt), nth(RawKernel, "__call__", at, _press(RawKernel.__call__)):
            walk(job)
            time.sleep(10)
        story.is_left_in_order()
        story.goes_on()
        story.leaves_no_memory()
