"""Out of memory at any allocation of a run: its error, the state after it, the next run."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.memory import OutOfMemory
from tests.device.faults import live, no_memory
from tests.device.models import NAMES, Job, Values, holds
from tests.tools.sampling import sample

#: How many allocations of each run are tried in a normal run of the tests.
FEW = 3
#: Stands for what comes after the last operator.
BEHIND = 10_000


def _allocations(job: Job, step: Any) -> int:
    with no_memory(-1) as count:
        step(job)
    return count.made


def _operator(text: str) -> int:
    """The operator of block 0 that an error names, by index; -1 before the first one, many behind the last one."""
    if re.search("fetched:|tensor:", text):
        return BEHIND
    inner = re.search(r"\(op (\d+) in block 0\)", text) or re.search(r"op (\d+) \(\w+\) in block 0", text)
    return int(inner[1]) if inner else -1


def _refused(job: Job, at: int, step: Any) -> str:
    """The error of a run; a text without an operator where it succeeds, with memory of earlier copies."""
    with no_memory(at) as count:
        try:
            step(job)
        except OutOfMemory as error:
            text = str(error)
        else:
            assert count.made <= at
            return "fetched: nothing was refused"
    for part in ("cannot allocate", "by a test", "are in use and", "use a smaller batch", "_memory_to_use"):
        assert part in text
    return text


def _is_between(job: Job, before: Values, after: Values, failed: int) -> None:
    """Check the state: outputs of operators before the failed one may be new, the rest is unchanged."""
    new = {n for op in job.model.main.global_block().ops[: max(failed, 0)] for n in op.output_arg_names}
    now = job.values()
    assert {n for n, value in now.items() if value not in (before[n], after[n])} == set()
    assert {n for n, value in now.items() if value != before[n]} <= new


@pytest.mark.parametrize("name", NAMES)
def test_startup_programs(name: str, cuda: fluid.CUDAPlace) -> None:
    twin = Job(name, cuda)
    made = _allocations(twin, Job.start)
    first = twin.values()
    twin.start()  # random numbers depend on how often it was run, in vain or not

    def again(at: int) -> None:
        job = Job(name, cuda)
        held = live(cuda)
        text = _refused(job, at, Job.start)
        assert _operator(text) >= 0
        assert set(job.values().items()) <= set(first.items())
        there = [v.value for v in job.scope.vars.values() if v.value is not None]
        assert all(map(holds, there))
        assert live(cuda) == held + sum(-(-t.array.nbytes // 256) * 256 for t in there)
        job.start()
        assert job.values() == twin.values()

    for at in sample(range(made), FEW):
        again(at)


@pytest.mark.parametrize("name", NAMES)
def test_first_runs(name: str, cuda: fluid.CUDAPlace) -> None:
    twin = Job(name, cuda)
    twin.start()
    before, arrays = twin.values(), twin.arrays()
    made = _allocations(twin, Job.step)
    after = twin.values()
    twin.put(arrays)
    want, second = twin.step(), twin.step(1)

    def again(at: int) -> None:
        job = Job(name, cuda)
        job.start()
        held, known = live(cuda), set(job.scope.vars)
        text = _refused(job, at, Job.step)
        assert re.search(r"op \d+ \(\w+\) in block \d|fetched:|tensor:", text) or "fed:" in text, text
        assert set(job.scope.vars) == known and job.scope.kids == []
        _is_between(job, before, after, _operator(text))
        assert live(cuda) <= held or _operator(text) == BEHIND
        job.put(arrays)
        assert job.step() == want
        assert job.step(1) == second

    for at in sample(range(made), FEW):
        again(at)


@pytest.mark.parametrize("name", NAMES)
def test_later_runs(name: str, cuda: fluid.CUDAPlace) -> None:
    """Memory and graphs are from earlier runs, except for sizes that depend on values and for fetches."""
    twin = Job(name, cuda)
    twin.start()
    want = [twin.step(number) for number in range(3)]
    before, arrays = twin.values(), twin.arrays()
    made = _allocations(twin, lambda job: job.step(3))
    after = twin.values()
    twin.put(arrays)
    want += [twin.step(3), twin.step(4)]

    def again(at: int) -> None:
        job = Job(name, cuda)
        job.start()
        assert [job.step(number) for number in range(3)] == want[:3]
        held, known = live(cuda), set(job.scope.vars)
        text = _refused(job, at, lambda job: job.step(3))
        assert set(job.scope.vars) == known and job.scope.kids == []
        _is_between(job, before, after, _operator(text))
        assert live(cuda) <= held or _operator(text) == BEHIND
        job.put(arrays)
        assert [job.step(3), job.step(4)] == want[3:]

    for at in sample(range(made), FEW):
        again(at)


def test_feeds_of_other_sizes(cuda: fluid.CUDAPlace) -> None:
    """A prepared program is bound anew for larger feeds; what was prepared before serves on."""
    job, large = Job("mlp", cuda), {"x": np.ones((64, 6), "float32"), "y": np.zeros((64, 1), "int64")}
    job.start()
    small, arrays = job.step(), job.arrays()

    def wide(job: Job) -> Any:
        return job.exe.run(job.model.main, large, job.model.fetch, scope=job.scope)

    made, want = _allocations(job, wide), None
    for at in sample(range(made), FEW):
        job.put(arrays)
        job.forget()
        after = job.step(1)
        held = live(cuda)
        text = _refused(job, at, wide)
        assert live(cuda) <= held or _operator(text) == BEHIND
        job.put(arrays)
        assert job.step(1) == after != small
        job.put(arrays)
        got = wide(job)
        assert want is None or got == want
        want = got


def test_tensors_and_blocks_of_their_own(cuda: fluid.CUDAPlace) -> None:
    """A tensor that finds no memory holds what it held; so do variables of a block that runs in a user's scope."""
    tensor = fluid.LoDTensor()
    tensor.set(np.arange(3, dtype="float32"), cuda)
    for value, place in ((np.ones(100, "float32"), cuda), (np.ones(3, "float32"), fluid.CPUPlace())):
        with no_memory(0), pytest.raises(OutOfMemory):
            tensor.set(value, place)
        assert np.array(tensor).tolist() == [0, 1, 2] and tensor._place() is cuda
    with no_memory(0), pytest.raises(OutOfMemory):
        np.array(tensor)
    job = Job("mlp", cuda)
    job.start()
    scope, block = job.scope, job.model.main.global_block()
    for name, value in job.model.feed(0).items():
        scope.var(name).get_tensor().set(value, cuda)
    block.infer_shape(scope)
    made = _allocations(job, lambda job: block.run(scope, cuda))
    job.start()
    before = job.values()
    with no_memory(made - 1), pytest.raises(OutOfMemory, match=r"op \d+ \(\w+\) in block 0") as told:
        block.run(scope, cuda)
    _is_between(job, before, job.values(), _operator(str(told.value)))
    block.run(scope, cuda)
