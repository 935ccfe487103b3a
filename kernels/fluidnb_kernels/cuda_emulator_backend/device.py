"""The device, and the handle of cuBLAS."""

from __future__ import annotations

from typing import Any

from fluidnb_kernels.cuda_emulator_backend import runtime


class Device:
    """A device."""

    def __init__(self, device: int | None = None) -> None:
        self.id = runtime.getDevice() if device is None else int(device)
        self._before: list[int] = []

    def use(self) -> None:
        """Make it the current one."""
        runtime.setDevice(self.id)

    def synchronize(self) -> None:
        """Wait until all its work is done."""
        runtime.deviceSynchronize()

    @property
    def mem_info(self) -> tuple[int, int]:
        """Free bytes, and all."""
        return runtime.memGetInfo()

    @property
    def compute_capability(self) -> str:
        """Its architecture."""
        return "90"

    def __enter__(self) -> Device:
        self._before.append(runtime.getDevice())
        self.use()
        return self

    def __exit__(self, *exc: object) -> None:
        runtime.setDevice(self._before.pop())


def get_cublas_handle() -> Any:
    """The handle of cuBLAS for the current device and thread; it keeps whatever stream it was given."""
    return 1
