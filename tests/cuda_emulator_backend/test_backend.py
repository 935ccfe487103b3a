"""The emulator backend has the order of work, the errors and the limits of a GPU."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import threading

import numpy as np
import pytest

from fluidnb_kernels import cuda_emulator_backend as backend
from fluidnb_kernels import emulator
from fluidnb_kernels.cuda_emulator_backend import cublas
from fluidnb_kernels.cuda_emulator_backend.memory import CUDARuntimeError, used
from fluidnb_kernels.emulator import EmulatorError

pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())

ADD = 'extern "C" __global__ void add(float* x, float by) { x[threadIdx.x] += by; }'


def device(*numbers: float) -> backend.ndarray:
    made = backend.ndarray(len(numbers), np.float32)
    made.set(np.array(numbers, np.float32))
    backend.cuda.get_current_stream().synchronize()  # streams that do not block would not wait for it
    return made


def add(x: backend.ndarray, by: float = 1.0) -> None:
    backend.RawKernel(ADD, "add")((1,), (x.size,), (x, np.float32(by)))


def test_a_kernel_waits_until_somebody_synchronizes():
    stream, x, y = backend.cuda.Stream(non_blocking=True), device(1.0, 2.0), np.zeros(2, np.float32)
    with stream:
        add(x)
        x.get(out=y, blocking=False)
    assert y.tolist() == [0.0, 0.0]
    assert not stream.done
    stream.synchronize()
    assert y.tolist() == [2.0, 3.0]


def test_streams_do_not_wait_for_each_other_but_by_events():
    one, other, x = backend.cuda.Stream(non_blocking=True), backend.cuda.Stream(non_blocking=True), device(1.0)
    with one:
        add(x, 1.0)
        event = one.record()
        add(x, 10.0)
    assert x.get(stream=other).tolist() == [1.0]
    other.wait_event(event)
    assert x.get(stream=other).tolist() == [2.0]
    assert event.done
    one.synchronize()
    assert x.get(stream=other).tolist() == [12.0]


def test_the_default_stream_and_those_that_block_wait_for_each_other():
    one, other, apart = backend.cuda.Stream(), backend.cuda.Stream(), backend.cuda.Stream(non_blocking=True)
    x = device(1.0)
    with one:
        add(x, 1.0)
    assert x.get(stream=other).tolist() == [1.0]
    assert x.get().tolist() == [2.0]
    add(x, 10.0)
    assert x.get(stream=apart).tolist() == [2.0]
    assert x.get(stream=other).tolist() == [12.0]
    with one:
        add(x, 100.0)
    add(x, 1000.0)
    with one:
        add(x, 10000.0)
    assert x.get(stream=one).tolist() == [11112.0]


def test_work_of_a_stream_that_nobody_holds_is_done():
    known, x = len(backend.cuda.runtime.streams), device(1.0)
    with backend.cuda.Stream():
        add(x, 1.0)
    assert x.get().tolist() == [2.0]
    assert len(backend.cuda.runtime.streams) == known


def test_who_waits_while_another_thread_works_waits_for_that_too():
    stream, begun, go_on = backend.cuda.Stream(), threading.Event(), threading.Event()
    seen: list[str] = []

    def work() -> None:
        begun.set()
        go_on.wait()
        seen.append("done")

    def wait() -> None:
        stream.synchronize()
        seen.append("waited")

    stream.push(work)
    one, other = threading.Thread(target=stream.synchronize), threading.Thread(target=wait)
    one.start()
    begun.wait()
    other.start()
    other.join(0.05)  # were it not to wait, it would be over by now
    go_on.set()
    one.join()
    other.join()
    assert seen == ["done", "waited"]


def test_captured_work_is_done_at_each_launch():
    stream, x = backend.cuda.Stream(non_blocking=True), device(0.0)
    with stream:
        stream.begin_capture()
        add(x)
        add(x, 2.0)
        with pytest.raises(CUDARuntimeError, match="capturing"):
            stream.synchronize()
        graph = stream.end_capture()
        assert x.get().tolist() == [0.0]
        for _ in range(3):
            graph.launch()
        assert x.get().tolist() == [9.0]


def test_the_host_cannot_touch_a_devices_memory():
    script = (
        "import numpy as np; from fluidnb_kernels import cuda_emulator_backend as cp; x = cp.ndarray(4, 'float32');"
        "x.set(np.zeros(4, 'float32')); print(x.get().sum()); print(x._lies.sum())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "0.0\n"
    assert done.returncode == -11  # the system stopped it


def test_arrays_do_not_become_numpys_by_themselves():
    with pytest.raises(TypeError, match="Implicit conversion"):
        np.asarray(device(1.0))
    with pytest.raises(TypeError, match="Unsupported type"):
        add(np.zeros(2, np.float32))


def test_addresses_are_checked():
    x, runtime = device(1.0, 2.0), backend.cuda.runtime
    host = np.zeros(2, np.float32)
    with pytest.raises(CUDARuntimeError, match="cudaErrorInvalidValue"):
        runtime.memcpyAsync(host.ctypes.data, host.ctypes.data, 8, runtime.memcpyHostToDevice, 0)
    with pytest.raises(CUDARuntimeError, match="cudaErrorInvalidValue"):
        runtime.memcpyAsync(x.data.ptr, host.ctypes.data, 1 << 20, runtime.memcpyHostToDevice, 0)
    with pytest.raises(CUDARuntimeError, match="cudaErrorInvalidValue"):
        runtime.free(x.data.ptr + 4)
    with pytest.raises(CUDARuntimeError, match="illegal|Illegal"):
        backend.RawKernel(ADD, "add")((1,), (1,), (np.uint64(host.ctypes.data), np.float32(1)))


def test_memory_is_given_back_and_has_an_end():
    gc.collect()  # what earlier tests left in cycles would be freed in the middle
    before = used()
    x = backend.ndarray((1000, 1000), np.float64)
    view = x[10:, :5]
    assert used() == before + 8_000_000
    del x
    assert used() == before + 8_000_000
    del view
    assert used() == before
    with pytest.raises(CUDARuntimeError, match="out of memory"):
        backend.cuda.runtime.malloc(1 << 40)


def test_views_share_memory():
    x = backend.ndarray((2, 3), np.float32)
    x.set(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert x[1].get().tolist() == [3.0, 4.0, 5.0]
    assert x[1, 2].get() == 5.0
    assert x.reshape(3, 2)[0].get().tolist() == [0.0, 1.0]
    assert x.T.shape == (3, 2)
    with pytest.raises(TypeError, match="does not copy"):
        x.T.reshape(6)
    with pytest.raises(TypeError, match="index"):
        x[np.array([0])]
    add(x[1])
    assert x.get().tolist() == [[0.0, 1.0, 2.0], [4.0, 5.0, 6.0]]
    assert x.copy().get().tolist() == x.get().tolist()


def test_the_host_may_change_what_was_copied_unless_it_is_pinned():
    x, runtime = backend.ndarray(2, np.float32), backend.cuda.runtime
    host = np.array([1.0, 2.0], np.float32)
    x.set(host)
    host[:] = 5.0
    assert x.get().tolist() == [1.0, 2.0]
    address = runtime.hostAlloc(8, 0)
    pinned = np.frombuffer((ctypes.c_float * 2).from_address(address), np.float32)
    pinned[:] = 1.0
    x.set(pinned)
    pinned[:] = 5.0
    assert x.get().tolist() == [5.0, 5.0]
    runtime.freeHost(address)


def test_arrays_of_other_dtypes_and_shapes_are_not_copied():
    x = device(1.0, 2.0)
    for wrong, error in ((np.zeros(2), TypeError), (np.zeros(3, np.float32), ValueError), ([1.0, 2.0], TypeError)):
        with pytest.raises(error):
            x.set(wrong)
    with pytest.raises(TypeError, match="float64 array"):
        x.get(out=np.zeros(2))
    with pytest.raises(RuntimeError, match="non-contiguous"):
        x.get(out=np.zeros(4, np.float32)[::2])
    with pytest.raises(ValueError, match="Unsupported dtype"):
        backend.ndarray(2, "datetime64[s]")


def test_the_host_is_not_reached_while_a_stream_is_captured():
    stream, x = backend.cuda.Stream(non_blocking=True), device(1.0)
    with stream:
        stream.begin_capture()
        for copy in (lambda: x.set(np.zeros(1, np.float32)), x.get):
            with pytest.raises(RuntimeError, match="is capturing"):
                copy()
        event = stream.record()
        stream.end_capture()
    with pytest.raises(CUDARuntimeError, match="Captured"):
        event.synchronize()


def test_an_event_is_waited_for_as_it_was():
    one, other, x = backend.cuda.Stream(non_blocking=True), backend.cuda.Stream(non_blocking=True), device(1.0)
    with one:
        add(x, 1.0)
        event = one.record()
        other.wait_event(event)
        add(x, 10.0)
        event.record()
    assert x.get(stream=other).tolist() == [2.0]
    one.synchronize()


def test_times_are_those_of_events_that_have_come():
    begin, end, x = backend.cuda.Event(), backend.cuda.Event(), device(1.0)
    elapsed = backend.cuda.get_elapsed_time
    begin.record()
    with pytest.raises(CUDARuntimeError, match="InvalidResourceHandle"):
        elapsed(begin, end)
    add(x)
    end.record()
    with pytest.raises(CUDARuntimeError, match="NotReady"):
        elapsed(begin, end)
    end.synchronize()
    assert elapsed(begin, end) > 0
    silent = backend.cuda.Event(disable_timing=True)
    silent.record()
    silent.synchronize()
    with pytest.raises(CUDARuntimeError, match="InvalidResourceHandle"):
        elapsed(begin, silent)


def test_sizes_are_checked_when_a_kernel_is_launched():
    kernel, x = backend.RawKernel(ADD, "add"), device(1.0)
    for grid, block, shared in (((0,), (1,), 0), ((1, 70000), (1,), 0), ((1,), (2048,), 0), ((1,), (1,), 49 << 10)):
        with pytest.raises(EmulatorError, match="INVALID_VALUE"):
            kernel(grid, block, (x, np.float32(1)), shared_mem=shared)
    with pytest.raises(TypeError, match="expected tuple"):
        kernel([1], (1,), (x, np.float32(1)))


def test_products_go_where_the_handle_was_told():
    cuda, x = backend.cuda, device(3.0)
    stream, numbers = cuda.Stream(non_blocking=True), np.array([2.0, 0.0], np.float32)
    handle, at, out = cuda.device.get_cublas_handle(), numbers.ctypes.data, device(0.0)
    cublas.setStream(handle, stream.ptr)
    matrix = (x.data.ptr, 0, 1, 0)
    cublas.gemmStridedBatchedEx(
        handle, 0, 0, 1, 1, 1, at, *matrix, *matrix, at + 4, out.data.ptr, 0, 1, 0, 1, cublas.CUBLAS_COMPUTE_32F, -1
    )
    with pytest.raises(TypeError, match="int64"):  # a C function takes no numbers of numpy's
        cublas.gemmStridedBatchedEx(
            handle, 0, 0, np.int64(1), 1, 1, at, *matrix, *matrix, at + 4, out.data.ptr, 0, 1, 0, 1, 68, -1
        )
    assert not stream.done
    assert out.get().tolist() == [0.0]
    stream.synchronize()
    assert out.get().tolist() == [18.0]
    cublas.setStream(handle, 0)
