"""CUDA's runtime: memory, copies, devices."""

import ctypes
import mmap
from typing import Any

from fluidnb_kernels.cuda_emulator_backend import memory
from fluidnb_kernels.cuda_emulator_backend.memory import CUDARuntimeError, free, malloc
from fluidnb_kernels.cuda_emulator_backend.streams import all_streams, streams

__all__ = ["CUDARuntimeError", "free", "malloc"]

memcpyHostToHost, memcpyHostToDevice, memcpyDeviceToHost, memcpyDeviceToDevice, memcpyDefault = range(5)
streamCaptureModeGlobal, streamCaptureModeThreadLocal, streamCaptureModeRelaxed = range(3)
eventDisableTiming = 2
CUDA_R_32F, CUDA_R_64F, CUDA_R_16F, CUDA_R_16BF = 0, 1, 2, 14
#: kind of copy -> whether the target and the source are a device's
_ENDS = {memcpyHostToDevice: (True, False), memcpyDeviceToHost: (False, True), memcpyDeviceToDevice: (True, True)}
#: How many devices there are.
_devices = 1
#: address -> pinned memory of the host
_pinned: dict[int, mmap.mmap] = {}


def getDeviceCount() -> int:
    """The number of devices."""
    return _devices


def getDevice() -> int:
    """The current device of this thread."""
    return memory.chosen.device


def setDevice(device: int) -> None:
    """Choose a device for this thread."""
    _known(device)
    memory.chosen.device = device


def getDeviceProperties(device: int) -> dict[str, Any]:
    """Name, memory and limits of a device."""
    _known(device)
    return {
        "name": b"emulator", "totalGlobalMem": memory.TOTAL, "major": 9, "minor": 0, "warpSize": 32,
        "multiProcessorCount": 1, "maxThreadsPerBlock": 1024, "sharedMemPerBlock": 48 << 10,
        "sharedMemPerBlockOptin": 227 << 10,
    }  # fmt: skip


def _known(device: int) -> None:
    if not 0 <= device < _devices:
        raise CUDARuntimeError("cudaErrorInvalidDevice: invalid device ordinal")


def memGetInfo() -> tuple[int, int]:
    """Free bytes, and all."""
    return memory.TOTAL - memory.used(memory.chosen.device), memory.TOTAL


def hostAlloc(size: int, flags: int) -> int:
    """Pinned memory of the host."""
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    _pinned[address] = pages
    return address


def is_pinned(address: int) -> bool:
    """Whether an address is in pinned memory of the host."""
    return any(start <= address < start + len(pages) for start, pages in list(_pinned.items()))


def freeHost(ptr: int) -> None:
    """Give pinned memory back."""
    if ptr not in _pinned:
        raise CUDARuntimeError("cudaErrorInvalidValue: invalid argument")
    deviceSynchronize()
    _pinned.pop(ptr).close()


def deviceSynchronize() -> None:
    """Wait until all work is done."""
    for stream in all_streams():
        stream.synchronize()


def memcpyAsync(dst: int, src: int, size: int, kind: int, stream: int) -> None:
    """Copy bytes, when the stream comes to it; the host's memory must stay as it is until then."""
    for address, device in zip((dst, src), _ENDS[kind], strict=True):
        if size and not (memory.on_device(address, size) if device else not memory.touches_device(address, size)):
            raise CUDARuntimeError("cudaErrorInvalidValue: invalid argument")
    streams[stream].push(lambda: _move(dst, src, size))


def memsetAsync(ptr: int, value: int, size: int, stream: int) -> None:
    """Fill bytes, when the stream comes to it."""
    if size and not memory.on_device(ptr, size):
        raise CUDARuntimeError("cudaErrorInvalidValue: invalid argument")
    streams[stream].push(lambda: _fill(ptr, value, size))


def _move(dst: int, src: int, size: int) -> None:
    ctypes.memmove(dst, src, size)


def _fill(ptr: int, value: int, size: int) -> None:
    if size and not memory.on_device(ptr, size):
        raise CUDARuntimeError("cudaErrorIllegalAddress: an illegal memory access was encountered")
    ctypes.memset(ptr, value, size)
