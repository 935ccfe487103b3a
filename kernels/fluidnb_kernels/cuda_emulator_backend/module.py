"""Kernels that are launched into streams."""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType
from typing import Any

import numpy as np

from fluidnb_kernels.cuda_emulator_backend import runtime
from fluidnb_kernels.cuda_emulator_backend.array import ndarray
from fluidnb_kernels.cuda_emulator_backend.memory import CUDARuntimeError, on_device
from fluidnb_kernels.cuda_emulator_backend.streams import get_current_stream
from fluidnb_kernels.emulator import raw


class RawModule:
    """The kernels of one file."""

    def __init__(
        self, *, code: str, options: tuple[str, ...] = (), name_expressions: Sequence[str] | None = None
    ) -> None:
        _require_tuple("options", options)
        self._module = raw.RawModule(code, options=options, name_expressions=name_expressions or ())

    def get_function(self, name: str) -> RawKernel:
        """One of its kernels."""
        kernel = object.__new__(RawKernel)
        kernel._kernel = self._module.get_function(name)
        return kernel


class RawKernel:
    """One kernel."""

    def __init__(self, code: str, name: str, options: tuple[str, ...] = ()) -> None:
        _require_tuple("options", options)
        self._kernel = raw.RawKernel(code, name, options)

    name = property(lambda self: self._kernel.name)

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        """Bytes of dynamic shared memory that a launch may request."""
        return self._kernel.max_dynamic_shared_size_bytes

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, size: int) -> None:
        self._kernel.max_dynamic_shared_size_bytes = size

    def __call__(self, grid: Sequence[int], block: Sequence[int], args: Sequence[Any], *, shared_mem: int = 0) -> None:
        """Launch it into the current stream."""
        _require_tuple("grid", grid)
        _require_tuple("block", block)
        self._kernel.check(grid, block, shared_mem)
        given = [self._argument(i, a) for i, a in enumerate(args)]
        get_current_stream().push(lambda: self._kernel(grid, block, given, shared_mem=shared_mem))

    def _argument(self, place: int, given: Any) -> Any:
        if isinstance(given, np.ndarray | NoneType):
            raise TypeError(f"Unsupported type {type(given)}")
        pointer = place < len(self._kernel.signature) and self._kernel.signature[place][0] == "P"
        if isinstance(given, ndarray):
            if given.size and given.data.device_id != runtime.getDevice():
                raise CUDARuntimeError(
                    f"cudaErrorIllegalAddress: argument {place} of {self.name} is in another device's memory"
                )
            address, given = given.data.ptr, given._lies
        else:
            address = int(given) if pointer and given is not None else 0
        if pointer and address and not on_device(address, 0) and not (isinstance(given, np.ndarray) and not given.size):
            raise CUDARuntimeError(
                f"cudaErrorIllegalAddress: argument {place} of {self.name} is not in a device's memory"
            )
        return given


def _require_tuple(name: str, given: Any) -> None:
    """Refuse what is no tuple, as cupy's compiled classes do."""
    if not isinstance(given, tuple):
        raise TypeError(f"Argument '{name}' has incorrect type (expected tuple, got {type(given).__name__})")
