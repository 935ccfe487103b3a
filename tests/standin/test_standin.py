"""What goes wrong on a GPU goes wrong on its stand-in."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from fluidnb_kernels import emulator, standin
from fluidnb_kernels.standin.memory import CUDARuntimeError, used

pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())

ADD = 'extern "C" __global__ void add(float* x, float by) { x[threadIdx.x] += by; }'


def device(*numbers: float) -> standin.ndarray:
    made = standin.ndarray(len(numbers), np.float32)
    made.set(np.array(numbers, np.float32))
    return made


def add(x: standin.ndarray, by: float = 1.0) -> None:
    standin.RawKernel(ADD, "add")((1,), (x.size,), (x, np.float32(by)))


def test_a_kernel_waits_until_somebody_synchronizes():
    stream, x, y = standin.cuda.Stream(non_blocking=True), device(1.0, 2.0), np.zeros(2, np.float32)
    with stream:
        add(x)
        x.get(out=y, blocking=False)
    assert y.tolist() == [0.0, 0.0]
    assert not stream.done
    stream.synchronize()
    assert y.tolist() == [2.0, 3.0]


def test_streams_do_not_wait_for_each_other_but_by_events():
    one, other, x = standin.cuda.Stream(non_blocking=True), standin.cuda.Stream(non_blocking=True), device(1.0)
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
    one, other, apart = standin.cuda.Stream(), standin.cuda.Stream(), standin.cuda.Stream(non_blocking=True)
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
    known, x = len(standin.cuda.runtime.streams), device(1.0)
    with standin.cuda.Stream():
        add(x, 1.0)
    assert x.get().tolist() == [2.0]
    assert len(standin.cuda.runtime.streams) == known


def test_captured_work_is_done_at_each_launch():
    stream, x = standin.cuda.Stream(non_blocking=True), device(0.0)
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
        "import numpy as np; from fluidnb_kernels import standin as cp; x = cp.ndarray(4, 'float32');"
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
    x, runtime = device(1.0, 2.0), standin.cuda.runtime
    host = np.zeros(2, np.float32)
    with pytest.raises(CUDARuntimeError, match="cudaErrorInvalidValue"):
        runtime.memcpyAsync(host.ctypes.data, host.ctypes.data, 8, runtime.memcpyHostToDevice, 0)
    with pytest.raises(CUDARuntimeError, match="cudaErrorInvalidValue"):
        runtime.memcpyAsync(x.data.ptr, host.ctypes.data, 1 << 20, runtime.memcpyHostToDevice, 0)
    with pytest.raises(CUDARuntimeError, match="cudaErrorInvalidValue"):
        runtime.free(x.data.ptr + 4)
    with pytest.raises(CUDARuntimeError, match="illegal|Illegal"):
        standin.RawKernel(ADD, "add")((1,), (1,), (np.uint64(host.ctypes.data), np.float32(1)))


def test_memory_is_given_back_and_has_an_end():
    before = used()
    x = standin.ndarray((1000, 1000), np.float64)
    view = x[10:, :5]
    assert used() == before + 8_000_000
    del x
    assert used() == before + 8_000_000
    del view
    assert used() == before
    with pytest.raises(CUDARuntimeError, match="out of memory"):
        standin.cuda.runtime.malloc(1 << 40)


def test_views_share_memory():
    x = standin.ndarray((2, 3), np.float32)
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
