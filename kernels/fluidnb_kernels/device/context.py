"""The context of a CUDA device: arrays in its pool, and waiting for it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from time import perf_counter_ns
from typing import Any

import numpy as np

from fluidnb.errors import OpValueError
from fluidnb.memory import Block, flags, pool
from fluidnb.values import CUDAPlace, DeviceContext, dtypes
from fluidnb_kernels.cuda import backend
from fluidnb_kernels.device import allocator, graph


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
        self.devices = backend.cupy().cuda.runtime.getDeviceCount()

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
        block = Block(pool(self.place), nbytes)
        cupy = backend.cupy()
        memory = cupy.cuda.UnownedMemory(block.ptr, nbytes, block, self.place.device)
        array = cupy.ndarray(shape, dtype, cupy.cuda.MemoryPointer(memory, 0))
        if flags.values["init_allocated_mem"] and nbytes:
            value = 0xFF if np.dtype(dtype).kind in "fcV" else 0xAA
            cupy.cuda.runtime.memsetAsync(block.ptr, value, nbytes, cupy.cuda.get_current_stream().ptr)
        return array

    def joined(self, calls: list[Any], ops: list[Any]) -> tuple[list[Any], list[Any]]:
        """Calls in a row that only launch kernels as graphs, where FLAGS_cuda_graphs is set.

        Args:
            calls: (function, arguments) one after the other.
            ops: the operator of each.

        Returns:
            Calls, and the first operator of each.
        """
        return graph.joined(calls, ops) if flags.values["cuda_graphs"] else (calls, ops)

    def mark(self) -> Any:
        """An event behind what the device has been asked for."""
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
        """Return when everything asked of the device is done."""
        backend.cupy().cuda.Device(self.place.device).synchronize()
