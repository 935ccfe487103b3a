"""Arrays in device memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.memory import view_of
from fluidnb_kernels.cuda_emulator_backend import runtime
from fluidnb_kernels.cuda_emulator_backend.memory import MemoryPointer, UnownedMemory, free, malloc
from fluidnb_kernels.cuda_emulator_backend.streams import get_current_stream

#: Dtypes that cupy has, but for bfloat16.
_CHARS = "?bhilqBHILQefdFDV"


class _Bytes:
    """Bytes at an address, as numpy takes them; nothing is read."""

    def __init__(self, address: int, size: int, owner: object) -> None:
        self.__array_interface__ = {"version": 3, "shape": (size,), "typestr": "|u1", "data": (address, False)}
        self.owner = owner


class _Own(UnownedMemory):
    """Memory of an array that was given none."""

    def __init__(self, size: int) -> None:
        self.ptr = 0  # until there is some
        super().__init__(malloc(size), size, None, runtime.getDevice())

    def __del__(self) -> None:
        free(self.ptr)


class ndarray:  # noqa: N801  (cupy's name)
    """An array in device memory; the host knows its address and strides, and cannot read it."""

    __slots__ = ("__weakref__", "_base", "_lies", "data")
    __array_priority__ = 100

    def __init__(
        self, shape: Any, dtype: Any = float, memptr: Any = None, strides: Any = None, order: str = "C"
    ) -> None:
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        dtype = np.dtype(dtype)
        if memptr is None and dtype.char not in _CHARS and dtype.name != "bfloat16":
            raise ValueError(f"Unsupported dtype {dtype}")
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        self.data = MemoryPointer(_Own(size), 0) if memptr is None else memptr
        there = self.data.mem.ptr + self.data.mem.size - self.data.ptr
        held = np.asarray(_Bytes(self.data.ptr, max(there, 0), self.data.mem))
        self._lies: np.ndarray[Any, Any] = view_of(held, shape, dtype, 0, strides)
        self._base: Any = None

    def _seen(self, lies: np.ndarray[Any, Any]) -> ndarray:
        """A view."""
        made = object.__new__(ndarray)
        made.data = MemoryPointer(self.data.mem, lies.ctypes.data - self.data.mem.ptr)
        made._lies, made._base = lies, self if self._base is None else self._base
        return made

    # ---- how it lies

    shape = property(lambda self: self._lies.shape)
    dtype = property(lambda self: self._lies.dtype)
    strides = property(lambda self: self._lies.strides)
    size = property(lambda self: self._lies.size)
    ndim = property(lambda self: self._lies.ndim)
    itemsize = property(lambda self: self._lies.itemsize)
    nbytes = property(lambda self: self._lies.nbytes)
    flags = property(lambda self: self._lies.flags)
    base = property(lambda self: self._base)
    T = property(lambda self: self._seen(self._lies.T))

    def __len__(self) -> int:
        return len(self._lies)

    def __getitem__(self, index: Any) -> ndarray:
        parts = index if isinstance(index, tuple) else (index,)
        for part in parts:
            if not (part is None or part is Ellipsis or isinstance(part, (int, np.integer, slice))):
                raise TypeError(f"the emulator backend takes slices and numbers as an index, not {type(part).__name__}")
        return self._seen(self._lies[parts if Ellipsis in parts else (*parts, ...)])

    def reshape(self, *shape: Any, order: str = "C") -> ndarray:
        """The same elements in another shape, where no copy is needed."""
        sizes = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        if self.size and not self.flags.c_contiguous:
            raise TypeError("the CUDA emulator backend does not copy an array to give it another shape")
        return self._seen(self._lies.reshape(sizes))

    def ravel(self, order: str = "C") -> ndarray:
        """One row."""
        return self.reshape(-1)

    def transpose(self, *axes: Any) -> ndarray:
        """Axes in another order."""
        return self._seen(self._lies.transpose(*axes))

    def swapaxes(self, axis1: int, axis2: int) -> ndarray:
        """Two axes change places."""
        return self._seen(self._lies.swapaxes(axis1, axis2))

    def squeeze(self, axis: Any = None) -> ndarray:
        """Without axes of one element."""
        return self._seen(self._lies.squeeze(axis))

    def view(self, dtype: Any = None) -> ndarray:
        """The same bytes as another dtype."""
        return self._seen(self._lies.view() if dtype is None else self._lies.view(dtype))

    # ---- copies

    def get(
        self, stream: Any = None, order: str = "C", out: np.ndarray[Any, Any] | None = None, blocking: bool = True
    ) -> np.ndarray[Any, Any]:
        """Copy it to the host."""
        if not self.flags.c_contiguous:
            raise TypeError("the CUDA emulator backend copies contiguous arrays alone")
        stream = get_current_stream() if stream is None else stream
        out = np.empty(self.shape, self.dtype) if out is None else out
        self._check(out)
        if not out.flags.c_contiguous:
            raise RuntimeError("`out` cannot be specified when copying to non-contiguous ndarray")
        if stream.is_capturing():
            raise RuntimeError("the current stream is capturing, so D2H transfers are disallowed")
        if self.size:
            kind = runtime.memcpyDeviceToHost
            runtime.memcpyAsync(out.ctypes.data, self.data.ptr, self.nbytes, kind, stream.ptr)
        if blocking:
            stream.synchronize()
        return out

    def copy(self, order: str = "C") -> ndarray:
        """A copy in new memory."""
        if not self.flags.c_contiguous:
            raise TypeError("the CUDA emulator backend copies contiguous arrays alone")
        made = ndarray(self.shape, self.dtype)
        kind = runtime.memcpyDeviceToDevice
        runtime.memcpyAsync(made.data.ptr, self.data.ptr, self.nbytes, kind, get_current_stream().ptr)
        return made

    def set(self, arr: np.ndarray[Any, Any], stream: Any = None) -> None:
        """Copy from the host when the stream comes to it; of memory that is not pinned the present content."""
        self._check(arr)
        if not self.flags.c_contiguous:
            raise RuntimeError("Cannot set to non-contiguous array")
        stream = get_current_stream() if stream is None else stream
        if stream.is_capturing():
            raise RuntimeError("the current stream is capturing, so H2D transfers are disallowed")
        if self.size:
            kind, arr = runtime.memcpyHostToDevice, np.asarray(arr, order="C")
            if not runtime.is_pinned(arr.ctypes.data):
                arr = arr.copy()
            runtime.memcpyAsync(self.data.ptr, arr.ctypes.data, self.nbytes, kind, stream.ptr)
            stream.keep(arr)

    def _check(self, array: Any) -> None:
        """Refuse what cannot be the host's copy of it, as cupy does."""
        if not isinstance(array, np.ndarray):
            raise TypeError("Only numpy.ndarray can be set to cupy.ndarray")
        if array.dtype != self.dtype:
            raise TypeError(f"{array.dtype} array cannot be set to {self.dtype} array")
        if array.shape != self.shape:
            raise ValueError(f"Shape mismatch. Old shape: {self.shape}, new shape: {array.shape}")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy array "
            "explicitly."
        )

    def __repr__(self) -> str:
        return f"<array of {self.dtype} {list(self.shape)} on the CUDA emulator backend>"
