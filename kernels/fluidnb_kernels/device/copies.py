"""Copies between places, and the pinned buffers that they go through."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np

from fluidnb import memory
from fluidnb.errors import EnforceNotMet, FluidError
from fluidnb.op import register_copy
from fluidnb.op.launches import Launch, register_launches
from fluidnb.values import CUDAPinnedPlace
from fluidnb_kernels.cuda import backend

Array = np.ndarray[Any, Any]

_FIRST, _ALIGN = 1 << 16, 64


class PinnedStaging:
    """Pinned staging buffers for asynchronous copies to and from a device, freed all at once."""

    def __init__(self) -> None:
        self._blocks: list[Array] = []
        self._at = 0

    def empty(self, shape: Sequence[int], dtype: Any) -> Array:
        """An array in pinned memory, its content undefined, good until `clear`."""
        size = prod(shape) * dtype.itemsize
        if not self._blocks or self._at + size > self._blocks[-1].nbytes:
            last = self._blocks[-1].nbytes if self._blocks else _FIRST // 2
            block = memory.raw(CUDAPinnedPlace(), max(2 * last, size))
            memory.tag(block, "copies to and from devices")
            self._blocks.append(block)
            self._at = 0
        array: Array = memory.view_of(self._blocks[-1], shape, dtype, self._at)
        self._at += -(-size // _ALIGN) * _ALIGN
        return array

    def clear(self) -> None:
        """All of it is free again: no copy is under way."""
        del self._blocks[:-1]
        self._at = 0


def to_device(src: np.ndarray[Any, Any], dst: Any) -> None:
    """Copy from the host; the source may change as soon as this returns."""
    with device_errors():
        dst.set(np.asarray(src, order="C"))
        backend.cupy().cuda.get_current_stream().synchronize()  # pinned memory is read when the stream comes to it


def to_host(src: Any, dst: np.ndarray[Any, Any]) -> None:
    """Copy to the host, and wait until it is there."""
    cuda = backend.cupy().cuda
    with device_errors(), cuda.Device(src.data.device_id):  # whose current stream is not that of another device
        stream = cuda.get_current_stream()
        if dst.flags.c_contiguous:
            src.get(stream=stream, out=dst)
        else:
            dst[...] = src.get(stream=stream)


@contextmanager
def device_errors() -> Iterator[None]:
    """Reports errors of the device's earlier work, which show where the host waits for it."""
    try:
        yield
    except FluidError:
        raise
    except RuntimeError as error:
        raise EnforceNotMet(
            f"The device failed at work that it was given before: {error}",
            hint="FLAGS_benchmark=True lets runs wait after each operator: the one that fails is then named.",
        ) from error


def within(src: Any, dst: Any) -> None:
    """Copy on a device."""
    if isinstance(dst, np.ndarray):  # memory of the host that counts as a device's, for kernels on the emulator
        return np.copyto(dst, src)
    cuda = backend.cupy().cuda
    kind, stream = cuda.runtime.memcpyDeviceToDevice, cuda.get_current_stream().ptr
    return cuda.runtime.memcpyAsync(dst.data.ptr, src.data.ptr, src.nbytes, kind, stream)


register_copy("cpu", "cuda", to_device)
register_copy("cuda", "cpu", to_host)
register_copy("cuda", "cuda", within)
register_launches(within, lambda src, dst: (Launch(None, (), (), 0, (dst, src)),))
