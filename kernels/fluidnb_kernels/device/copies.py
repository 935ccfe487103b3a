"""Copies between the host and a device, in the current stream."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from fluidnb.errors import EnforceNotMet, FluidError
from fluidnb.op import register_copy
from fluidnb_kernels.cuda import backend


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
