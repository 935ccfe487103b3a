"""Ctrl-C at any point of a run on a device: what is left behind, and the run after it."""

from __future__ import annotations

import signal
import time
from typing import Any

import pytest

import fluidnb as fluid
from fluidnb.memory.buddy import BuddyAllocator
from fluidnb_kernels.cuda.source import Function, sources
from fluidnb_kernels.standin import runtime
from fluidnb_kernels.standin.module import RawKernel, RawModule
from fluidnb_kernels.standin.streams import Graph, Stream, get_current_stream, streams
from tests.device.faults import live, nth
from tests.device.models import NAMES, Job, Values
from tests.tools.sampling import sample

pytestmark = pytest.mark.live

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


class Story:
    """A model that has run a few times, and what comes of it when nobody presses Ctrl-C.

    Args:
        name: the model.
        place: where.
        done: how many runs there were.
    """

    def __init__(self, name: str, place: Any, done: int) -> None:
        self.job, self.done, self.place = Job(name, place), done, place
        self.job.start()
        self._first = self.job.arrays()
        self.job.forget()
        self.held = live(place)
        self.told()
        self.before, self._arrays = self.job.values(), self.job.arrays()
        self.want = [self.job.step(done)]
        self.after: Values = self.job.values()
        self.want.append(self.job.step(done + 1))

    def told(self) -> Job:
        """The model, having run that often since it was prepared."""
        self.job.forget()
        self.job.put(self._first)
        for number in range(self.done):
            self.job.step(number)
        return self.job

    def is_left_in_order(self) -> None:
        """Parameters are as before or as after their operator, and nothing is under way."""
        now = self.job.values()
        assert {n for n, value in now.items() if value not in (self.before[n], self.after[n])} == set()
        assert set(now) == set(self.before) and self.job.scope.kids == []
        assert not any(stream.is_capturing() for stream in list(streams.values()))
        assert get_current_stream().ptr == 0

    def goes_on(self) -> None:
        """From where it was before, everything is as if nothing had happened."""
        self.job.put(self._arrays)
        assert [self.job.step(self.done), self.job.step(self.done + 1)] == self.want
        self.job.forget()
        assert live(self.place) == self.held


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
