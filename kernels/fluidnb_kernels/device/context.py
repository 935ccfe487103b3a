"""The context of a CUDA device: arrays in its pool, and waiting for it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from math import prod
from time import perf_counter_ns
from typing import Any
from weakref import WeakKeyDictionary, ref

import numpy as np

from fluidnb.errors import OpValueError
from fluidnb.memory import Block, flags, pool
from fluidnb.values import CUDAPlace, DeviceContext, SelectedRows, dtypes, register_place
from fluidnb_kernels.array.elements import add_to
from fluidnb_kernels.cuda import backend
from fluidnb_kernels.device import allocator, graph
from fluidnb_kernels.device.stream import Lane
from fluidnb_kernels.rows.device_rows import add_on_device

#: An address that no machine uses, aligned as memory of a pool is.
_NOWHERE = 1 << 60


class CUDADeviceContext(DeviceContext):
    """A CUDA device: its arrays are cupy's, in memory of the place's pool; an array that a user holds keeps its block.

    Args:
        place: the device.

    Raises:
        EnforceNotMet: there is no such device.

    Source: Fluid's platform::CUDADeviceContext.
    """

    def __init__(self, place: CUDAPlace) -> None:
        allocator.require(place.device)
        super().__init__(place)
        self.name, self.backend = backend.device_name(place.device), backend.named()
        self._device = backend.cupy().cuda.Device(place.device)
        self.devices = backend.cupy().cuda.runtime.getDeviceCount()
        self._here = threading.local()
        self._lanes: list[ref[Lane]] = []
        self._last: WeakKeyDictionary[Any, Lane] = WeakKeyDictionary()

    def empty(self, shape: Sequence[int], dtype: Any, order: Sequence[int] | None = None) -> Any:
        """A new array on the device, in C order.

        Args:
            shape: its sizes.
            dtype: any spelling of an element type.
            order: not used: images lie on a device as their shape says.

        Returns:
            The array, its content undefined (NaN or 0xAA under FLAGS_init_allocated_mem).

        Raises:
            OpValueError: a negative size.
            OutOfMemory: no room.
        """
        shape, dtype = tuple(shape), dtypes.np_dtype(dtype)
        if shape and min(shape) < 0:
            raise OpValueError(f"Cannot make an array of shape {list(shape)}.", expected="sizes of 0 or more")
        nbytes = dtype.itemsize * prod(shape)
        self.use()
        block = Block(pool(self.place), nbytes)
        lane = getattr(self._here, "lane", None)
        if lane is not None and lane.deep and len(self._lanes) > 1:
            lane.take_memory()
        cupy = backend.cupy()
        memory = cupy.cuda.UnownedMemory(block.ptr, nbytes, block, self.place.device)
        array = cupy.ndarray(shape, dtype, cupy.cuda.MemoryPointer(memory, 0))
        if flags.values["init_allocated_mem"] and nbytes:
            value = 0xFF if np.dtype(dtype).kind in "fcV" else 0xAA
            cupy.cuda.runtime.memsetAsync(block.ptr, value, nbytes, cupy.cuda.get_current_stream().ptr)
        return array

    def sketch(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """A placeholder for an array without memory, at an address that no device maps.

        Args:
            shape: its sizes.
            dtype: numpy dtype.

        Returns:
            An array that nobody may touch; its memory is an object of its own.
        """
        cupy = backend.cupy()
        memory = cupy.cuda.UnownedMemory(_NOWHERE, dtype.itemsize * prod(shape), None, self.place.device)
        return cupy.ndarray(shape, dtype, cupy.cuda.MemoryPointer(memory, 0))

    def clear(self, target: Any) -> None:
        """Write zeros.

        Args:
            target: an array of the device, without gaps.
        """
        if target.size:
            cuda = backend.cupy().cuda
            cuda.runtime.memsetAsync(target.data.ptr, 0, target.nbytes, cuda.get_current_stream().ptr)

    def add(self, total: Any, array: Any) -> None:
        """Add an array to another one.

        Args:
            total: an array of the device, changed.
            array: one of its shape and dtype.
        """
        add_to(total, array)

    def add_rows(self, total: Any, rows: SelectedRows) -> None:
        """Add SelectedRows to the array of which they are rows.

        Args:
            total: an array of the device, changed.
            rows: the rows, of this device too.
        """
        add_on_device(total, rows)

    def joined(self, calls: list[Any], ops: list[Any]) -> tuple[list[Any], list[Any]]:
        """Calls with the arguments of launches made ready; several in a row as a graph, where FLAGS_cuda_graphs is set.

        Args:
            calls: (function, arguments) one after the other.
            ops: the operator of each.

        Returns:
            Calls, and the first operator of each.
        """
        if flags.values["cuda_graphs"]:
            calls, ops = graph.joined(calls, ops)
        return graph.launches(calls), ops

    def turn(self, *about: Any) -> Lane:
        """The lane of this thread, to be entered for a run.

        Args:
            about: what the run works on (its plan, its scope): it comes after runs of other threads about the same.

        Returns:
            A context manager.
        """
        lane = self._lane()
        for thing in about:
            last = self._last.get(thing)
            if last is not lane:
                if last is not None:
                    lane.come_after(last)
                self._last[thing] = lane
        return lane

    def _lane(self) -> Lane:
        """The lane of this thread."""
        self.use()
        found: Lane | None = getattr(self._here, "lane", None)
        if found is None:
            found = self._here.lane = Lane(self._lanes)
        return found

    def fill_all(self, pairs: Sequence[tuple[Any, Any]]) -> None:
        """Copy into arrays of the device, by way of pinned memory; called in a run's turn.

        Args:
            pairs: (target, source), each source of the host or of a device.
        """
        self._lane().fill([(target, source) for target, source in pairs if isinstance(source, np.ndarray)])
        for target, source in pairs:
            if not isinstance(source, np.ndarray):
                self.fill(target, source)

    def fetch_all(self, arrays: Sequence[Any]) -> list[Any]:
        """Arrays of the device as numpy's, when all is done that they wait for.

        Args:
            arrays: arrays of the device, without gaps.

        Returns:
            Copies.

        Raises:
            EnforceNotMet: the device failed at what it had been asked for.
        """
        return self._lane().fetch(arrays)

    def use(self) -> None:
        """Let what this thread does next go to this device."""
        self._device.use()

    def mark(self) -> Any:
        """An event recorded after the submitted work."""
        event = backend.cupy().cuda.Event()
        event.record()
        return event

    def times(self, marks: Sequence[Any]) -> list[int]:
        """When events came, by the device's clock; waits for the last one.

        Args:
            marks: events, in order.

        Returns:
            Nanoseconds, those of the last one by the host's clock.
        """
        marks[-1].synchronize()
        now, elapsed = perf_counter_ns(), backend.cupy().cuda.get_elapsed_time
        return [now - round(elapsed(mark, marks[-1]) * 1e6) for mark in marks]

    def wait(self) -> None:
        """Blocks until all submitted work of the device is done."""
        self._device.synchronize()


register_place(CUDAPlace, CUDADeviceContext)
