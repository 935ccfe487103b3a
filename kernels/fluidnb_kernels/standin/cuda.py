"""What is under ``cupy.cuda``."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np

from fluidnb_kernels.standin import device, runtime
from fluidnb_kernels.standin.device import Device
from fluidnb_kernels.standin.memory import MemoryPointer, UnownedMemory
from fluidnb_kernels.standin.streams import Event, Graph, Stream, get_current_stream, get_elapsed_time

__all__ = [
    "Device", "Event", "Graph", "MemoryPointer", "PinnedMemoryPointer", "Stream", "UnownedMemory",
    "alloc_pinned_memory", "device", "get_current_stream", "get_elapsed_time", "is_available", "runtime",
]  # fmt: skip


class PinnedMemoryPointer:
    """Memory of the host that copies can go on from while the host does something else.

    Args:
        mem: the memory.
        offset: bytes from its beginning.
    """

    def __init__(self, mem: mmap.mmap, offset: int) -> None:
        self.mem = mem
        self.ptr = np.frombuffer(mem, np.uint8).ctypes.data + offset

    def size(self) -> int:
        """Bytes."""
        return len(self.mem)

    def __buffer__(self, flags: int) -> memoryview:
        return memoryview(self.mem)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {"version": 3, "shape": (len(self.mem),), "typestr": "|u1", "data": (self.ptr, False)}


def alloc_pinned_memory(size: int) -> PinnedMemoryPointer:
    """Pinned memory of the host.

    Args:
        size: bytes.
    """
    return PinnedMemoryPointer(mmap.mmap(-1, max(size, 1)), 0)


def is_available() -> bool:
    """Whether there is a device."""
    return True
