"""Errors on a device: no memory, kernels that fail, Ctrl-C; the state afterwards, and the messages."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.errors import EnforceNotMet, OpTypeError, OpValueError
from fluidnb.memory import flags, pools
from fluidnb_kernels.cuda_emulator_backend import RawKernel
from fluidnb_kernels.cuda_emulator_backend import memory as device_memory
from fluidnb_kernels.cuda_emulator_backend.streams import Graph, Stream, get_current_stream
from tests.device.faults import two_devices


class Training:
    """A small net that is trained.

    Args:
        place: where.
        seed: of its parameters.
        width: of its layers.
        depth: how many there are.
    """

    def __init__(self, place: Any, seed: int = 3, width: int = 8, depth: int = 2) -> None:
        self.main, self.startup, self.scope = fluid.Program(), fluid.Program(), fluid.Scope()
        self.main.random_seed = self.startup.random_seed = seed
        self.width, self.place, self.exe = width, place, fluid.Executor(place)
        with fluid.program_guard(self.main, self.startup), fluid.unique_name.guard():
            hidden = layers.data("x", shape=[width])
            for _ in range(depth):
                hidden = layers.fc(hidden, width, act="tanh")
            self.loss = layers.mean(layers.square(hidden))
            fluid.optimizer.Adam(0.01).minimize(self.loss)
        self.exe.run(self.startup, scope=self.scope)

    def step(self, rows: int = 2) -> float:
        """One step; the loss."""
        feed = {"x": np.linspace(-1, 1, rows * self.width, dtype="float32").reshape(rows, self.width)}
        return float(self.exe.run(self.main, feed=feed, fetch_list=[self.loss], scope=self.scope)[0][0])

    def values(self) -> dict[str, bytes]:
        """The bytes of the values in its scope."""
        gc.collect()
        return {name: np.array(v.value).tobytes() for name, v in self.scope.vars.items() if v.value is not None}


@contextmanager
def little_memory(place: fluid.CUDAPlace, left: int) -> Iterator[None]:
    """A pool in which only so many bytes are free, on a device that has no more to give."""
    gc.collect()
    pool = pools.pool(place)
    pool.release_idle()
    room, hogs = pool.alloc(left), []
    while free := pool.stats().largest_free:
        hogs.append(pool.alloc(free))
        pool.tags[hogs[-1]] = "a large neighbour"
    pool.free(room)
    total = device_memory.TOTAL
    device_memory.TOTAL = device_memory.used()
    try:
        yield
    finally:
        device_memory.TOTAL = total
        for hog in hogs:
            pool.free(hog)


def live(place: fluid.CUDAPlace) -> int:
    """Bytes in use on a place."""
    gc.collect()
    return fluid.memory.stats(place).used


# ---- no memory


def test_no_memory_leaves_everything_as_it_was(cuda: fluid.CUDAPlace) -> None:
    net, twin = Training(cuda), Training(cuda)
    assert net.step() == twin.step()
    before, held = net.values(), live(cuda)
    with little_memory(cuda, 192 << 10), pytest.raises(MemoryError) as told:
        net.step(4096)
    assert net.values() == before
    assert live(cuda) <= held  # although the traceback is still there; buffers of the last run may go
    text = str(told.value)
    for part in ("cannot allocate 768.0 KB", "of the pool are free", "a large neighbour", "use a smaller batch",
                 "FLAGS_fraction_of_gpu_memory_to_use", "test_faults.py", "op 9 (mean_grad) in block"):  # fmt: skip
        assert part in text
    assert net.step() == twin.step()
    assert np.isfinite(net.step(4096))


def test_no_memory_while_parameters_are_made(cuda: fluid.CUDAPlace) -> None:
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup):
        out = layers.fc(layers.data("x", shape=[256]), 256)
    exe, held = fluid.Executor(cuda), live(cuda)
    with little_memory(cuda, 4 << 10), pytest.raises(MemoryError, match="uniform_random"):
        exe.run(startup, scope=scope)
    assert [name for name, v in scope.vars.items() if getattr(v.value, "array", None) is not None] == []
    assert live(cuda) <= held
    exe.run(startup, scope=scope)
    (got,) = exe.run(main, feed={"x": np.zeros((1, 256), "float32")}, fetch_list=[out], scope=scope)
    assert not got.any()


def test_no_memory_behind_operators_that_have_run(cuda: fluid.CUDAPlace) -> None:
    """A counter in the scope is counted up before a loop is entered that finds no memory."""
    main, scope = fluid.Program(), fluid.Scope()
    with fluid.program_guard(main):
        total = layers.create_global_var([1], 0.0, "float32", persistable=True, name="total")
        x = layers.data("x", shape=[4096])
        layers.increment(total)
        i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 2)
        more = layers.less_than(i, n)
        with layers.While(more).block():
            wide = layers.concat([x] * 16, axis=0)
            layers.assign(layers.elementwise_add(total, layers.mean(wide)), total)
            layers.increment(i)
            layers.less_than(i, n, cond=more)
    scope.var("total").get_tensor().set(np.zeros(1, "float32"), cuda)
    exe, feed = fluid.Executor(cuda), {"x": np.ones((2, 4096), "float32")}
    with little_memory(cuda, 100 << 10), pytest.raises(MemoryError, match="concat"):
        exe.run(main, feed=feed, fetch_list=[total], scope=scope)
    seen = np.array(scope.find_var("total").get_tensor())
    assert seen.tolist() == [1.0]
    assert exe.run(main, feed=feed, fetch_list=[total], scope=scope)[0].tolist() == [4.0]


def test_memory_goes_back_to_the_backend_that_it_is_from(
    cuda: fluid.CUDAPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last tensor of a backend may go when another one is chosen."""
    system, held = pools.pool(cuda).system, device_memory.used()
    address, index = system.alloc(4096)
    assert device_memory.used() == held + 4096
    monkeypatch.setitem(flags.values, "cuda_backend", "cupy")
    system.free(address, 4096, index)
    assert device_memory.used() == held


def test_the_pool_takes_the_share_that_the_flag_says(cuda: fluid.CUDAPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(pools, "_pools", {})
        patch.setattr(device_memory, "TOTAL", device_memory.used() + (1 << 30))
        patch.setitem(flags.values, "fraction_of_gpu_memory_to_use", (2 << 20) / device_memory.TOTAL)
        context = fluid.values.DeviceContext.get(cuda)
        first = context.empty((1000,), "float32")
        assert fluid.memory.stats(cuda).reserved == pools.pool(cuda).max_chunk <= 2 << 20
        second = context.empty((1 << 20,), "float32")  # more than a chunk: the device still has it
        assert fluid.memory.stats(cuda).used == 4096 + (4 << 20)
        del first, second
        assert fluid.memory.stats(cuda).used == 0
        pools.pool(cuda).release_idle()


# ---- kernels that fail


@contextmanager
def failing(name: str, at: int = 0) -> Iterator[list[int]]:
    """While the body runs, launches of a kernel raise, from a certain launch on."""
    seen: list[int] = []
    launch = RawKernel.__call__

    def refused(kernel: RawKernel, *args: Any, **kw: Any) -> None:
        if kernel.name.startswith(name):
            seen.append(1)
            if len(seen) > at:
                raise device_memory.CUDARuntimeError("cudaErrorLaunchOutOfResources: too many resources")
        launch(kernel, *args, **kw)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RawKernel, "__call__", refused)
        yield seen


def chain() -> tuple[Any, dict[str, Any]]:
    """Operators in a row that one graph holds."""
    x = layers.data("x", shape=[3])
    out = layers.scale(layers.relu(layers.scale(layers.scale(x, scale=2.0), scale=3.0)), scale=0.5)
    return layers.exp(out), {"x": np.ones((2, 3), "float32")}


def test_a_kernel_that_cannot_be_launched_is_named(cuda: fluid.CUDAPlace) -> None:
    out, feed = chain()
    exe = fluid.Executor(cuda)
    with failing("unary<f::exp"), pytest.raises(EnforceNotMet) as told:
        exe.run(feed=feed, fetch_list=[out])
    assert "op 4 (exp) in block 0" in str(told.value)
    assert "too many resources" in str(told.value)
    assert "return layers.exp(out)" in str(told.value)
    np.testing.assert_allclose(exe.run(feed=feed, fetch_list=[out])[0], np.full((2, 3), np.exp(3.0)), rtol=1e-6)


def test_inside_a_graph_the_operator_is_found(cuda: fluid.CUDAPlace) -> None:
    out, feed = chain()
    exe = fluid.Executor(cuda)
    exe.run(feed=feed, fetch_list=[out])  # the next run captures
    with failing("unary<f::relu"), pytest.raises(EnforceNotMet) as told:
        exe.run(feed=feed, fetch_list=[out])
    assert "op 2 (relu) in block 0" in str(told.value)
    assert "layers.relu(layers.scale(layers.scale(x" in str(told.value)
    for _ in range(3):
        np.testing.assert_allclose(exe.run(feed=feed, fetch_list=[out])[0], np.full((2, 3), np.exp(3.0)), rtol=1e-6)


@pytest.mark.parametrize(("owner", "name"), [(Stream, "begin_capture"), (Graph, "launch")])
def test_a_graph_that_the_device_refuses_is_done_without(
    owner: Any, name: str, cuda: fluid.CUDAPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, feed = chain()
    exe = fluid.Executor(cuda)
    exe.run(feed=feed, fetch_list=[out])
    refused = []

    def refuse(*args: Any) -> None:
        refused.append(args)
        raise device_memory.CUDARuntimeError("cudaErrorStreamCaptureInvalidated: no")

    monkeypatch.setattr(owner, name, refuse)
    for number in (1.0, 2.0, 3.0, 4.0, 5.0):
        (got,) = exe.run(feed={"x": np.full((2, 3), number, "float32")}, fetch_list=[out])
        np.testing.assert_allclose(got, np.full((2, 3), np.exp(3.0 * number)), rtol=1e-6)
    assert len(refused) == 3


def test_work_that_fails_later_is_told_by_whoever_waits(cuda: fluid.CUDAPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that the device takes and cannot do: the fetch says how to find it, FLAGS_benchmark finds it."""
    out, feed = chain()
    exe = fluid.Executor(cuda)
    exe.run(feed=feed, fetch_list=[out])
    launch = RawKernel.__call__

    def broken(kernel: RawKernel, *args: Any, **kw: Any) -> None:
        launch(kernel, *args, **kw)
        if kernel.name.startswith("unary<f::relu"):
            get_current_stream().push(lose)

    def lose() -> None:
        raise device_memory.CUDARuntimeError("cudaErrorIllegalAddress: an illegal memory access")

    with monkeypatch.context() as patch:
        patch.setattr(RawKernel, "__call__", broken)
        with pytest.raises(EnforceNotMet, match="illegal memory access") as told:
            exe.run(feed=feed, fetch_list=[out])
        assert "FLAGS_benchmark" in str(told.value)
        patch.setitem(flags.values, "benchmark", True)
        with pytest.raises(EnforceNotMet, match=r"op 2 \(relu\) in block 0"):
            exe.run(feed=feed, fetch_list=[out])
    np.testing.assert_allclose(exe.run(feed=feed, fetch_list=[out])[0], np.full((2, 3), np.exp(3.0)), rtol=1e-6)


# ---- Ctrl-C


@pytest.mark.parametrize("at", [1, 8, 15])
def test_ctrl_c_comes_between_operators(cuda: fluid.CUDAPlace, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without CUDA graphs, a run stops before its next operator; the next run continues with the values so far."""
    monkeypatch.setitem(flags.values, "cuda_graphs", False)
    net, twin = Training(cuda), Training(cuda)
    net.step(), twin.step()
    launch, seen, press = RawKernel.__call__, [], [0]

    def pressed(kernel: RawKernel, *args: Any, **kw: Any) -> None:
        seen.append(kernel.name)
        if len(seen) == press[0]:
            signal.raise_signal(signal.SIGINT)
        launch(kernel, *args, **kw)

    monkeypatch.setattr(RawKernel, "__call__", pressed)
    assert net.step() == twin.step()
    held, whole = live(cuda), len(seen) // 2
    seen.clear()
    press[0] = at
    with pytest.raises(KeyboardInterrupt):
        net.step()
    assert at <= len(seen) < whole
    assert live(cuda) <= held
    if not any("adam" in name for name in seen):
        assert net.values() == twin.values()
        assert net.step() == twin.step()
    assert np.isfinite(net.step())


def test_ctrl_c_while_a_graph_is_made(cuda: fluid.CUDAPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is launched whole, and the run stops behind it."""
    net, twin = Training(cuda), Training(cuda)
    net.step(), twin.step()
    begin = Stream.begin_capture

    def pressed(stream: Stream, mode: int | None = None) -> None:
        begin(stream, mode)
        signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Stream, "begin_capture", pressed)
        with pytest.raises(KeyboardInterrupt):
            net.step()
    assert np.isfinite(net.step())


# ---- what stays behind


def test_many_runs_leak_nothing(cuda: fluid.CUDAPlace, request: pytest.FixtureRequest) -> None:
    full = request.config.getoption("--full")
    net = Training(cuda, depth=1)
    for rows in (1, 2, 3):
        net.step(rows)
        net.step(rows)
    held, blocks = live(cuda), len(fluid.memory.stats(cuda).live)
    for number in range(10_000 if full else 300):
        net.step(1 + number % 3)
    assert (live(cuda), len(fluid.memory.stats(cuda).live)) == (held, blocks)


def test_all_goes_back_when_nobody_holds_it(cuda: fluid.CUDAPlace) -> None:
    held = live(cuda)
    net = Training(cuda)
    net.step()
    assert live(cuda) > held
    del net
    assert live(cuda) == held


# ---- places


def test_devices_that_are_not_there(cuda: fluid.CUDAPlace) -> None:
    with pytest.raises(EnforceNotMet, match="no CUDA device 1 here"):
        fluid.Executor(fluid.CUDAPlace(1))
    with pytest.raises(EnforceNotMet, match="no CUDA device 1 here"):
        fluid.LoDTensor().set(np.zeros(2, "float32"), fluid.CUDAPlace(1))
    with pytest.raises(EnforceNotMet, match="no CUDA device 1 here"):
        fluid.memory.used(fluid.CUDAPlace(1))
    with pytest.raises(OpValueError, match="takes a device number"):
        fluid.CUDAPlace(-1)
    with pytest.raises(OpTypeError, match="takes a device number"):
        fluid.CUDAPlace("0")  # type: ignore[arg-type]


def test_parameters_go_where_the_program_runs(cuda: fluid.CUDAPlace) -> None:
    net, twin = Training(cuda), Training(cuda)
    there = fluid.Executor(fluid.CPUPlace())
    for exe in (there, net.exe, there, net.exe):
        net.exe = exe
        np.testing.assert_allclose(net.step(), twin.step(), rtol=1e-5)
    assert net.scope.find_var("fc_0.w_0").get_tensor()._place() == cuda
    net.exe = there
    net.step()
    assert net.scope.find_var("fc_0.w_0").get_tensor()._place() == fluid.CPUPlace()


def test_parameters_that_a_script_sets(cuda: fluid.CUDAPlace) -> None:
    net, twin = Training(cuda), Training(cuda)
    weights = np.full((8, 8), 0.25, "float32")
    net.step(), twin.step()
    net.scope.find_var("fc_0.w_0").get_tensor().set(weights, cuda)
    twin.scope.find_var("fc_0.w_0").get_tensor().set(weights, fluid.CPUPlace())  # moved when the program runs
    assert net.step() == twin.step()
    assert net.values() == twin.values()


def test_two_devices_do_not_meet(cuda: fluid.CUDAPlace) -> None:
    with two_devices() as places:
        assert fluid.core.get_cuda_device_count() == 2
        nets = [Training(place) for place in places]
        for _ in range(4):
            assert nets[0].step() == nets[1].step()
        moved = Training(fluid.CUDAPlace(1))
        moved.exe = fluid.Executor(fluid.CUDAPlace(0))
        for _ in range(4):
            moved.step()
        assert moved.values() == nets[0].values()
        tensor = fluid.LoDTensor()
        tensor.set(np.ones((2, 8), "float32"), fluid.CUDAPlace(1))
        given = nets[0].exe.run(nets[0].main, {"x": tensor}, [nets[0].loss], scope=nets[0].scope)
        again = nets[1].exe.run(nets[1].main, {"x": tensor}, [nets[1].loss], scope=nets[1].scope)
        assert given[0] == again[0]


def test_threads_do_not_disturb_each_other(cuda: fluid.CUDAPlace) -> None:
    """Work of all threads goes to one stream of the device, and graphs are captured in streams of their own."""
    want = [[Training(fluid.CPUPlace(), seed) for seed in (1, 2)]]
    losses = [[net.step() for _ in range(8)] for net in want[0]]
    nets, got = [Training(cuda, seed) for seed in (1, 2)], [[], []]  # type: ignore[var-annotated]
    ready = threading.Barrier(2)

    def train(number: int) -> None:
        ready.wait()
        for _ in range(8):
            got[number].append(nets[number].step())

    threads = [threading.Thread(target=train, args=(number,)) for number in (0, 1)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    np.testing.assert_allclose(got, losses, rtol=1e-4)


def test_memory_of_a_device_that_nothing_has_used(cuda: fluid.CUDAPlace) -> None:
    code = "import fluidnb as fluid; print(fluid.memory.used(fluid.CUDAPlace(0)))"
    env = {**os.environ, "FLAGS_cuda_backend": flags.values["cuda_backend"], "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.stdout == "0\n", done.stderr
