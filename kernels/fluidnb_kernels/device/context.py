"""The context of a CUDA device: arrays in its pool, and waiting for it."""

import threading
from collections.abc import Mapping, Sequence
from math import prod
from time import perf_counter_ns
from typing import Any
from weakref import WeakKeyDictionary, ref

import numpy as np

from fluidnb.errors import OpValueError
from fluidnb.memory import Block, flags, pool
from fluidnb.values import CUDAPlace, DeviceContext, SelectedRows, dtypes
from fluidnb.values.device_context import Joined, JoinedOps, provide_cuda
from fluidnb_kernels.array.tensor_arrays import add_to
from fluidnb_kernels.cuda import backend
from fluidnb_kernels.device import allocator, graph
from fluidnb_kernels.device.groups import grouped
from fluidnb_kernels.device.stream import ThreadStream
from fluidnb_kernels.device.update_groups import together
from fluidnb_kernels.rows.device_rows import add_on_device

#: An address that no machine uses, aligned as memory of a pool is.
_NOWHERE = 1 << 60


class CUDADeviceContext(DeviceContext):
    """A CUDA device (platform::CUDADeviceContext): its arrays are cupy's, in memory of the place's pool."""

    def __init__(self, place: CUDAPlace) -> None:
        allocator.require(place.device)
        super().__init__(place)
        self.name, self.backend = backend.device_name(place.device), backend.named()
        self._device = backend.cupy().cuda.Device(place.device)
        self.devices = backend.cupy().cuda.runtime.getDeviceCount()
        self._here = threading.local()
        self._streams: list[ref[ThreadStream]] = []
        self._last: WeakKeyDictionary[Any, ThreadStream] = WeakKeyDictionary()

    def empty(self, shape: Sequence[int], dtype: Any, order: Sequence[int] | None = None) -> Any:
        """A new array on the device, in C order, its content undefined (NaN or 0xAA under FLAGS_init_allocated_mem)."""
        shape, dtype = tuple(shape), dtypes.np_dtype(dtype)
        if shape and min(shape) < 0:
            raise OpValueError(f"Cannot make an array of shape {list(shape)}.", expected="sizes of 0 or more")
        nbytes = dtype.itemsize * prod(shape)
        self.use()
        block = Block(pool(self.place), nbytes)
        stream = getattr(self._here, "stream", None)
        if stream is not None and stream.deep and len(self._streams) > 1:
            stream.take_memory()
        cupy = backend.cupy()
        memory = cupy.cuda.UnownedMemory(block.ptr, nbytes, block, self.place.device)
        array = cupy.ndarray(shape, dtype, cupy.cuda.MemoryPointer(memory, 0))
        if flags.values["init_allocated_mem"] and nbytes:
            value = 0xFF if np.dtype(dtype).kind in "fcV" else 0xAA
            cupy.cuda.runtime.memsetAsync(block.ptr, value, nbytes, cupy.cuda.get_current_stream().ptr)
        return array

    def sketch(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """A placeholder for an array without memory, at an address that no device maps."""
        cupy = backend.cupy()
        memory = cupy.cuda.UnownedMemory(_NOWHERE, dtype.itemsize * prod(shape), None, self.place.device)
        return cupy.ndarray(shape, dtype, cupy.cuda.MemoryPointer(memory, 0))

    def clear(self, target: Any) -> None:
        """Write zeros."""
        if target.size:
            cuda = backend.cupy().cuda
            cuda.runtime.memsetAsync(target.data.ptr, 0, target.nbytes, cuda.get_current_stream().ptr)

    def add(self, total: Any, array: Any) -> None:
        """Add an array to another one."""
        add_to(total, array)

    def add_rows(self, total: Any, rows: SelectedRows) -> None:
        """Add SelectedRows to the array of which they are rows."""
        add_on_device(total, rows)

    def joined(self, calls: list[Any], ops: list[Any], lives: Mapping[int, Any] | None = None) -> Joined:
        """Calls with prepared launch arguments; several in a row as a CUDA graph where FLAGS_cuda_graphs is set."""
        made: list[JoinedOps] = []
        if lives is not None:
            calls, ops, made = grouped(calls, ops, lives)
            calls, ops, more = together(calls, ops, self.from_host)
            made += more
        if flags.values["cuda_graphs"]:
            calls, ops = graph.joined(calls, ops)
        return Joined(graph.launches(calls), ops, made)

    def turn(self, *about: Any) -> ThreadStream:
        """The stream of this thread for a run, after runs of other threads about the same (its plan, its scope)."""
        stream = self._stream()
        for thing in about:
            last = self._last.get(thing)
            if last is not stream:
                if last is not None:
                    stream.come_after(last)
                self._last[thing] = stream
        return stream

    def _stream(self) -> ThreadStream:
        """The stream of this thread."""
        self.use()
        found: ThreadStream | None = getattr(self._here, "stream", None)
        if found is None:
            found = self._here.stream = ThreadStream(self._streams)
        return found

    def fill_all(self, pairs: Sequence[tuple[Any, Any]]) -> None:
        """Copy into arrays of the device, by way of pinned memory; called in a run's turn."""
        self._stream().fill([(target, source) for target, source in pairs if isinstance(source, np.ndarray)])
        for target, source in pairs:
            if not isinstance(source, np.ndarray):
                self.fill(target, source)

    def fetch_all(self, arrays: Sequence[Any]) -> list[Any]:
        """Arrays of the device as numpy's, when all is done that they wait for."""
        return self._stream().fetch(arrays)

    def use(self) -> None:
        """Let what this thread does next go to this device."""
        self._device.use()

    def mark(self) -> Any:
        """An event recorded after the submitted work."""
        event = backend.cupy().cuda.Event()
        event.record()
        return event

    def times(self, marks: Sequence[Any]) -> list[int]:
        """The times of events in nanoseconds of the host's clock; waits for the last one."""
        marks[-1].synchronize()
        now, elapsed = perf_counter_ns(), backend.cupy().cuda.get_elapsed_time
        return [now - round(elapsed(mark, marks[-1]) * 1e6) for mark in marks]

    def wait(self) -> None:
        """Blocks until all submitted work of the device is done."""
        self._device.synchronize()


provide_cuda(CUDADeviceContext)
