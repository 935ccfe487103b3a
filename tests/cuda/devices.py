"""Memory of devices for single operators: numpy's own arrays on the emulator, or arrays that the host cannot touch."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.testing.eager import Fresh
from fluidnb.values import LoDTensor, LoDTensorArray, SelectedRows, kernel_packages
from fluidnb_kernels.cuda import backend

kernel_packages.load()  # which registers copies from place to place


class OnDevice(Fresh):
    """Memory that counts as a CUDA device's, so that kernels for it are chosen; its arrays are numpy's own."""

    place_kind = "cuda"

    @staticmethod
    def taken(value: Any) -> Any:
        """A value where kernels can reach it."""
        return value

    @staticmethod
    def brought(value: Any) -> Any:
        """A value of the device on the host."""
        return value


class OnCupy(OnDevice):
    """Memory of a device: of cupy, or of its emulator backend."""

    def alloc(self, shape: tuple[int, ...], dtype: Any, name: str | None, outer: bool, order: Any, where: int) -> Any:
        """A new array in C order."""
        return _up(super().alloc(shape, dtype, name, outer, None, where))

    def alloc_on(self, kind: str, shape: tuple[int, ...], dtype: Any) -> Any:
        """A new array of the device, or of the host."""
        array = super().alloc_on(kind, shape, dtype)
        return _up(array) if kind == "cuda" else array

    @staticmethod
    def taken(value: Any) -> Any:
        """A value of the host on the device."""
        return _mapped(value, _up)

    @staticmethod
    def brought(value: Any) -> Any:
        """A value of the device on the host."""
        return _mapped(value, lambda array: array if isinstance(array, np.ndarray) else array.get())


def _up(array: np.ndarray[Any, Any]) -> Any:
    made = backend.cupy().ndarray(array.shape, array.dtype)
    made.set(np.asarray(array, order="C"))
    return made


def _mapped(value: Any, move: Any) -> Any:
    """A value with its arrays moved."""
    if isinstance(value, SelectedRows):
        return SelectedRows(value.rows_, value.height_, _mapped(value.value, move))
    if isinstance(value, LoDTensorArray):
        return LoDTensorArray([_mapped(v, move) for v in value])
    if type(value) is LoDTensor and value.array is not None:
        return LoDTensor(move(value.array), value.lod_)
    return value
