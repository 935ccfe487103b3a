"""Allocators of device memory and of pinned memory."""

from typing import Any

from fluidnb.errors import EnforceNotMet
from fluidnb.memory import CPUAllocator, flags, register_allocator
from fluidnb_kernels.cuda import backend

#: Bytes that are left to libraries.
_RESERVE = 512 << 20


def require(device: int) -> None:
    """Require that a device can be used here."""
    missing, place = backend.missing(), f"CUDAPlace({device})"
    if missing:
        why, _, what = missing.rstrip(".").partition(": ")
        raise EnforceNotMet(
            f"Cannot run operator on place {place}: {why}.", expected="a place that can be used here: CPUPlace",
            received=place, hint=f"{what}, or use fluid.CPUPlace().",
        )  # fmt: skip
    count = backend.cupy().cuda.runtime.getDeviceCount()
    if not 0 <= device < count:
        raise EnforceNotMet(
            f"There is no CUDA device {device} here.", expected=f"a number from 0 to {count - 1}", received=place,
            hint="fluid.cuda_places() gives those that a script is to use.",
        )  # fmt: skip


class CUDAAllocator:
    """Memory of a device, in large pieces (Fluid's GPUAllocator)."""

    def __init__(self, device: int) -> None:
        require(device)
        self.device = device
        self._held = 0
        self._cuda = backend.cupy().cuda  # memory goes back to where it is from, also after FLAGS_cuda_backend is set

    def _runtime(self) -> Any:
        self._cuda.Device(self.device).use()
        return self._cuda.runtime

    def alloc(self, size: int) -> tuple[int, int]:
        """Take memory."""
        runtime = self._runtime()
        try:
            address = int(runtime.malloc(size))
        except runtime.CUDARuntimeError as error:
            raise MemoryError(str(error)) from None
        self._held += size
        return address, 0

    def free(self, ptr: int, size: int, index: int) -> None:
        """Give memory back."""
        self._runtime().free(ptr)
        self._held -= size

    def use_gpu(self) -> bool:
        """True: this is a device's memory."""
        return True

    def total(self) -> int:
        """Bytes to plan with: FLAGS_fraction_of_gpu_memory_to_use of the device, or what others have left of it."""
        free, total = self._runtime().memGetInfo()
        left = free + self._held - min(_RESERVE, total // 16)
        return int(max(min(left, total * flags.values["fraction_of_gpu_memory_to_use"]), 0))


class CUDAPinnedAllocator(CPUAllocator):
    """Host memory that devices read and write asynchronously (Fluid's CUDAPinnedAllocator)."""

    def __init__(self) -> None:
        require(0)
        super().__init__(pinned=True)
        self._runtime = backend.cupy().cuda.runtime

    def alloc(self, size: int) -> tuple[int, int]:
        """Take memory."""
        try:
            return int(self._runtime.hostAlloc(size, 0)), self.PINNED
        except self._runtime.CUDARuntimeError as error:
            raise MemoryError(str(error)) from None

    def free(self, ptr: int, size: int, index: int) -> None:
        """Give memory back."""
        self._runtime.freeHost(ptr)


def _pinned(device: int) -> CPUAllocator:
    """Pages that are locked, where there is no device."""
    return CPUAllocator(pinned=True) if backend.missing() else CUDAPinnedAllocator()


register_allocator("cuda_pinned", _pinned, chunk_share=1024)
register_allocator("cuda", CUDAAllocator, min_chunk=256, chunk_share=1)
