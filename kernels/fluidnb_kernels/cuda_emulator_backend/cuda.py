"""The names under ``cupy.cuda``."""

from fluidnb_kernels.cuda_emulator_backend import device, runtime
from fluidnb_kernels.cuda_emulator_backend.device import Device
from fluidnb_kernels.cuda_emulator_backend.memory import MemoryPointer, UnownedMemory
from fluidnb_kernels.cuda_emulator_backend.streams import Event, Graph, Stream, get_current_stream, get_elapsed_time

__all__ = [
    "Device", "Event", "Graph", "MemoryPointer", "Stream", "UnownedMemory", "device", "get_current_stream",
    "get_elapsed_time", "is_available", "runtime",
]  # fmt: skip


def is_available() -> bool:
    """Whether there is a device."""
    return True
