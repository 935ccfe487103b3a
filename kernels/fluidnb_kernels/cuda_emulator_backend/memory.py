"""Device memory: mappings that the host cannot touch but while a device works."""

import ctypes
import mmap
import threading
from bisect import bisect_right, insort
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Bytes that each device has.
TOTAL = 2 << 30
#: Called before memory is given back: work that waits may be about it.
before_free: list[Callable[[], None]] = []
#: What a device's own allocations are multiples of.
_PAGE = 4096
_NONE, _READ_WRITE = 0, 3
#: Closing and opening memory takes as long as it has pages: of large ones there are few.
_HUGE_PAGES, _LARGE = 14, 4 << 20
_NEW = 0xFF  # makes NaN of numbers, and addresses that are none

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_FAILED = ctypes.c_void_p(-1).value

#: Held by whoever changes what there is, or does a device's work: the collector may come by at any moment and give
#: memory back, for which work that waits must be done.
lock = threading.RLock()
#: address -> bytes, address -> device, and the addresses in order
_regions: dict[int, int] = {}
_devices: dict[int, int] = {}
_starts: list[int] = []
_open = 0
_held = 0
#: What is given back when nothing waits.
_later: list[int] = []


class _Chosen(threading.local):
    """The current device of a thread."""

    device = 0


chosen = _Chosen()


class CUDARuntimeError(RuntimeError):
    """An error code of CUDA's runtime, as cupy raises it."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.status = text.partition(":")[0]


def malloc(size: int) -> int:
    """Memory of the current device; address 0 for no bytes."""
    if not size:
        return 0
    with lock:
        _sweep()
        with holding():
            if size > TOTAL - used(chosen.device):
                raise CUDARuntimeError("cudaErrorMemoryAllocation: out of memory")
            whole = -(-size // _PAGE) * _PAGE
            start = _libc.mmap(None, whole, _READ_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
            if start == _FAILED:
                raise CUDARuntimeError("cudaErrorMemoryAllocation: out of memory")
            if whole >= _LARGE:
                _libc.madvise(start, whole, _HUGE_PAGES)
            ctypes.memset(start, _NEW, min(size, 1 << 20))  # all of a large one would take long
            _regions[start], _devices[start] = size, chosen.device
            insort(_starts, start)
            if not _open:
                _protect(start, size, _NONE)
        _sweep()
        return int(start)


def free(ptr: int) -> None:
    """Give device memory back, when all work that waits is done."""
    if not ptr:
        return
    with lock:
        if ptr not in _regions or ptr in _later:
            raise CUDARuntimeError("cudaErrorInvalidValue: invalid argument")
        _later.append(ptr)
        _sweep()


def _sweep() -> None:
    """Let go of what was given back, unless the collector came by while a device works: what waits may be about it."""
    while _later and not _held:
        given_back = _later[:]
        del _later[: len(given_back)]
        for finish in before_free:
            finish()
        for start in given_back:
            _starts.remove(start)
            del _devices[start]
            _libc.munmap(start, -(-_regions.pop(start) // _PAGE) * _PAGE)


def used(device: int = 0) -> int:
    """Bytes that are allocated."""
    with lock:
        _sweep()
        with holding():
            return sum(size for start, size in _regions.items() if _devices[start] == device)


def on_device(address: int, size: int = 0) -> bool:
    """Whether bytes are a device's."""
    with lock, holding():
        at = bisect_right(_starts, address) - 1
        return at >= 0 and address + max(size, 1) <= _starts[at] + _regions[_starts[at]]


def touches_device(address: int, size: int) -> bool:
    """Whether any of some bytes is a device's."""
    with lock, holding():
        at = bisect_right(_starts, address + size - 1) - 1
        return at >= 0 and address < _starts[at] + _regions[_starts[at]]


@contextmanager
def holding() -> Iterator[None]:
    """While the body runs, under the lock, no memory is given back."""
    global _held
    _held += 1
    try:
        yield
    finally:
        _held -= 1


@contextmanager
def working() -> Iterator[None]:
    """While the body runs, a device works, and its memory can be touched."""
    global _open
    with lock:
        _open += 1
        if _open == 1:
            for start, size in _regions.items():
                _protect(start, size, _READ_WRITE)
        try:
            yield
        finally:
            _open -= 1
            if not _open:
                for start, size in _regions.items():
                    _protect(start, size, _NONE)


def _protect(start: int, size: int, how: int) -> None:
    if _libc.mprotect(start, -(-size // _PAGE) * _PAGE, how):
        raise MemoryError(f"mprotect: error {ctypes.get_errno()}")


class UnownedMemory:
    """Device memory that somebody else keeps, as of a pool."""

    def __init__(self, ptr: int, size: int, owner: object, device_id: int = -1) -> None:
        self.ptr, self.size, self.device_id, self._owner = ptr, size, max(device_id, 0), owner


class MemoryPointer:
    """A place in device memory."""

    def __init__(self, mem: UnownedMemory, offset: int) -> None:
        self.mem, self.ptr, self.device_id = mem, mem.ptr + offset, mem.device_id
