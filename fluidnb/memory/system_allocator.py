"""System allocators of pools: the protocol, and host memory from anonymous mappings."""

import ctypes
import functools
import mmap
import os
import sys
from pathlib import Path
from typing import Any, Protocol

from fluidnb.memory import flags
from fluidnb.memory.stats import size_text


class SystemAllocator(Protocol):
    """A source of large chunks. `index` identifies the allocation method of a chunk for `free`."""

    def alloc(self, size: int) -> tuple[int, int]:
        """A chunk of `size` bytes as (address, index); raises MemoryError when there is none."""

    def free(self, ptr: int, size: int, index: int) -> None:
        """Returns a chunk to the system."""

    def use_gpu(self) -> bool:
        """Whether the chunks are device memory."""

    def total(self) -> int:
        """The number of bytes that this allocator may use, flags included."""


class CPUAllocator:
    """Host memory from anonymous mappings: page aligned, and pages that were never touched cost nothing.

    Only `free` unmaps. What was not freed stays mapped when the allocator is dropped and while the interpreter shuts
    down, where a thread may be in the middle of a computation and C code may hold an address; the system takes it back.

    Args:
        pinned: always lock the pages; otherwise only while FLAGS_use_pinned_memory is set.

    Example:
        >>> cpu = CPUAllocator()
        >>> ptr, index = cpu.alloc(1 << 20)
        >>> cpu.free(ptr, 1 << 20, index)
    """

    PAGEABLE, PINNED = 0, 1

    def __init__(self, pinned: bool = False) -> None:
        self.pinned = pinned
        self._maps: dict[int, mmap.mmap] = {}
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._maps))  # never collected, nor are its values

    def alloc(self, size: int) -> tuple[int, int]:
        """(address, PINNED when the pages could be locked, else PAGEABLE) of a new mapping of ``size`` bytes."""
        if size > _CHECKED and size > (free := host_available()):
            raise MemoryError(f"the machine has {size_text(free)} left")  # else it would be killed at the first touch
        pages = map_pages(size)
        ptr = ctypes.addressof(ctypes.c_char.from_buffer(pages))
        self._maps[ptr] = pages
        pin = self.pinned or flags.values["use_pinned_memory"]
        return ptr, self.PINNED if pin and _lock_pages(ptr, size) else self.PAGEABLE

    def free(self, ptr: int, size: int, index: int) -> None:
        """Unmaps, and so unlocks, a chunk."""
        self._maps.pop(ptr).close()

    def use_gpu(self) -> bool:
        """False: this is host memory."""
        return False

    def total(self) -> int:
        """The host's (or the container's) memory in bytes times FLAGS_fraction_of_cpu_memory_to_use."""
        return int(host_memory() * flags.values["fraction_of_cpu_memory_to_use"])


def host_memory() -> int:
    """Bytes of memory this process may use: the machine's, or the container's limit if that is lower."""
    total = _machine_memory()
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            total = min(total, int(Path(limit).read_text("utf-8")))
        except (OSError, ValueError):  # no such file, or the word "max"
            continue
    return total


def _machine_memory() -> int:
    """Bytes of the machine's memory."""
    if hasattr(os, "sysconf"):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    status = _WindowsMemory(size=ctypes.sizeof(_WindowsMemory))
    kernel32: Any = getattr(ctypes, "windll").kernel32  # noqa: B009  unknown to type checkers on other systems
    kernel32.GlobalMemoryStatusEx(ctypes.byref(status))
    return int(status.total)


class _WindowsMemory(ctypes.Structure):
    """MEMORYSTATUSEX of Windows."""

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("load", ctypes.c_uint32),
        ("total", ctypes.c_uint64),
        ("available", ctypes.c_uint64),
        ("others", ctypes.c_uint64 * 5),
    )


def host_available() -> int:
    """Bytes of memory that this process can still take without swapping: the system's "available"."""
    try:
        lines = Path("/proc/meminfo").read_text("utf-8").splitlines()
        free = next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration):  # no Linux
        return host_memory()
    return min(free, host_memory())


def map_pages(size: int) -> mmap.mmap:
    """Anonymous pages for ``size`` bytes, without cost until they are touched."""
    try:
        if not hasattr(mmap, "MAP_PRIVATE"):  # Windows
            return mmap.mmap(-1, size)
        return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0))
    except (OSError, ValueError, OverflowError) as e:
        raise MemoryError(str(e)) from None


#: Bytes up to which a request is not compared with what the machine has left.
_CHECKED = 1 << 26
_MLOCK_ONFAULT = 1  # <bits/mman.h>


def _lock_pages(ptr: int, size: int) -> bool:
    # Locking pages as they are touched; mlock would touch all of a chunk that may never be used.
    try:
        mlock2 = ctypes.CDLL(None, use_errno=True).mlock2
    except (AttributeError, TypeError, OSError):  # only Linux has it
        _say_pageable("this system cannot lock pages as they are touched")
        return False
    if mlock2(ctypes.c_void_p(ptr), ctypes.c_size_t(size), _MLOCK_ONFAULT) == 0:
        return True
    _say_pageable(os.strerror(ctypes.get_errno()))
    return False


@functools.cache
def _say_pageable(why: str) -> None:
    print(f"fluidnb: pages could not be locked ({why}); using pageable memory. See `ulimit -l`.", file=sys.stderr)
