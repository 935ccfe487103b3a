"""``RawModule`` and ``RawKernel`` with cupy's call shape, run by the emulator."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from fluidnb.errors import EnforceNotMet, NotFound, OpTypeError, OpValueError, near
from fluidnb_kernels.emulator.compiler import build
from fluidnb_kernels.emulator.translate import kernels_in, translate

#: In which order threads run between two waits.
ORDERS = ("forward", "reverse", "shuffled")

#: Threads of a block at most, limits per axis of block and grid, shared memory without and with asking for more.
_THREADS, _BLOCK, _GRID = 1024, (1024, 1024, 64), (2**31 - 1, 65535, 65535)
_SHARED, _MORE_SHARED = 48 << 10, 227 << 10

_CTYPES: dict[str, Any] = {
    "?": ctypes.c_bool, "b": ctypes.c_int8, "h": ctypes.c_int16, "i": ctypes.c_int32, "q": ctypes.c_int64,
    "B": ctypes.c_uint8, "H": ctypes.c_uint16, "I": ctypes.c_uint32, "Q": ctypes.c_uint64,
    "e": ctypes.c_uint16, "f": ctypes.c_float, "d": ctypes.c_double,
}  # fmt: skip
_SAME = {"l": "q", "L": "Q"}
_lock = threading.RLock()


class EmulatorError(EnforceNotMet):
    """Something that is wrong, or undefined, on a GPU."""


@dataclass(frozen=True, slots=True)
class _How:
    order: str = "forward"
    seed: int = 1
    sanitize: bool = False


_PLAIN = _How()
_how: ContextVar[_How] = ContextVar("emulator", default=_PLAIN)


@contextmanager
def running(order: str = "forward", seed: int = 1, sanitize: bool = False) -> Iterator[None]:
    """Launch kernels in an order of threads while the body runs; ``sanitize`` needs libasan loaded before Python."""
    if order not in ORDERS:
        raise OpValueError("There is no such order of threads.", expected=" or ".join(ORDERS), received=order)
    token = _how.set(_How(order, seed, sanitize))
    try:
        yield
    finally:
        _how.reset(token)


class RawModule:
    """The kernels of one file."""

    def __init__(
        self, code: str, *, options: Sequence[str] = (), name_expressions: Sequence[str] = (), name: str = "kernel.cu"
    ) -> None:
        self.code, self.name = code, name
        self.kernels = [*kernels_in(code), *(name_expressions or ())]
        self._options = [option for option in options if option.startswith(("-D", "-I"))]
        self._libraries: dict[bool, ctypes.CDLL] = {}

    def get_function(self, name: str) -> RawKernel:
        """One of its kernels."""
        if name not in self.kernels:
            raise NotFound(f"{self.name} has no kernel {name}.", received=name, hint=near(name, self.kernels))
        return RawKernel._of(self, name)

    def library(self, sanitize: bool) -> ctypes.CDLL:
        """The compiled file."""
        with _lock:
            if sanitize not in self._libraries:
                source = translate(self.code, self.name, self.kernels)
                self._libraries[sanitize] = ctypes.CDLL(str(build(source, self._options, sanitize)))
            return self._libraries[sanitize]


class RawKernel:
    """One kernel."""

    def __init__(self, code: str, name: str, options: Sequence[str] = ()) -> None:
        plain = kernels_in(code)
        self._take(RawModule(code, options=options, name_expressions=() if name in plain or plain else (name,)), name)

    @classmethod
    def _of(cls, module: RawModule, name: str) -> RawKernel:
        kernel = cls.__new__(cls)
        kernel._take(module, name)
        return kernel

    def _take(self, module: RawModule, name: str) -> None:
        if name not in module.kernels:
            raise NotFound(f"{module.name} has no kernel {name}.", received=name, hint=near(name, module.kernels))
        self.name, self._module = name, module
        self._index = module.kernels.index(name)
        self._signature: list[str] | None = None
        self._most = _SHARED

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        """Bytes of dynamic shared memory that a launch may request; a kernel sets it above 48 KiB."""
        return self._most

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, size: int) -> None:
        if size > _MORE_SHARED:
            raise EmulatorError("CUDA_ERROR_INVALID_VALUE", expected=f"at most {_MORE_SHARED} bytes", received=size)
        self._most = size

    @property
    def signature(self) -> list[str]:
        """The types of its parameters: numpy's characters, P before what a pointer points to, S for a struct."""
        if self._signature is None:
            text = ctypes.create_string_buffer(512)
            getattr(self._module.library(_how.get().sanitize), f"emu_signature_{self._index}")(text)
            self._signature = text.value.decode().split(",")[:-1]
        return self._signature

    def check(self, grid: Sequence[int], block: Sequence[int], shared_mem: int) -> tuple[Sequence[int], Sequence[int]]:
        """Require sizes with which CUDA launches a kernel; gives three sizes of the grid, and three of the block."""
        sizes = _sizes(self.name, grid, _GRID), _sizes(self.name, block, _BLOCK)
        if prod(sizes[1]) > _THREADS:
            raise _refused(self.name, "block", block, f"at most {_THREADS} threads")
        if not 0 <= shared_mem <= self._most:
            raise _refused(self.name, "shared_mem", shared_mem, f"at most {self._most} bytes")
        return sizes

    def __call__(
        self, grid: Sequence[int], block: Sequence[int], args: Sequence[Any], *, shared_mem: int = 0,
        stream: Any = None, enable_cooperative_groups: bool = False,
    ) -> None:  # fmt: skip
        """Launch it, and wait until it is done; numbers are numpy scalars of the very dtype of a parameter."""
        sizes = self.check(grid, block, shared_mem)
        if len(args) != len(self.signature):
            raise OpTypeError(
                f"Kernel {self.name} takes {len(self.signature)} arguments.", received=f"{len(args)} arguments"
            )
        values = [
            _argument(self.name, i, code, a) for i, (code, a) in enumerate(zip(self.signature, args, strict=True))
        ]
        how = _how.get()
        run = getattr(self._module.library(how.sanitize), f"emu_run_{self._index}")
        pointers = (ctypes.c_void_p * max(1, len(values)))(*[ctypes.addressof(value) for value in values])
        error = ctypes.create_string_buffer(400)
        corners = [(ctypes.c_uint * 3)(*size) for size in sizes]
        with _lock:
            failed = run(
                pointers, *corners, ctypes.c_size_t(shared_mem), ORDERS.index(how.order), ctypes.c_uint(how.seed), error
            )
        if failed:
            raise EmulatorError(f"Kernel {self.name} ({self._module.name}): {error.value.decode()}.")


def _sizes(kernel: str, given: Sequence[int], most: tuple[int, int, int]) -> tuple[int, int, int]:
    """Three sizes, each within its limit."""
    x, y, z = (*map(int, given), 1, 1)[:3]
    if not all(1 <= size <= limit for size, limit in zip((x, y, z), most, strict=True)):
        raise _refused(kernel, "grid" if most is _GRID else "block", given, f"sizes from 1 to {most}")
    return x, y, z


def _refused(kernel: str, what: str, received: Any, expected: str) -> EmulatorError:
    return EmulatorError(
        f"CUDA_ERROR_INVALID_VALUE: kernel {kernel} cannot be launched.", expected=f"{what}: {expected}",
        received=str(received),
    )  # fmt: skip


def _argument(kernel: str, place: int, code: str, given: Any) -> Any:
    """An argument as the ctypes value that the kernel reads."""
    if code[0] == "P":
        return ctypes.c_uint64(_address(kernel, place, code, given))
    if isinstance(given, (bool, int, float)) and not isinstance(given, np.generic):
        passed = "?" if isinstance(given, bool) else "q" if isinstance(given, int) else "d"  # what cupy makes of it
    elif isinstance(given, np.generic):
        passed = _SAME.get(given.dtype.char, given.dtype.char)
    else:
        passed = type(given).__name__
    if passed != code or code not in _CTYPES:
        raise OpTypeError(
            f"Argument {place} of kernel {kernel} has another type than its parameter.",
            expected=f"a numpy scalar of type {code!r}", received=f"{given!r}, which is passed as {passed!r}",
        )  # fmt: skip
    if code == "e":
        return _CTYPES[code](int(np.asarray(given).view(np.uint16)))
    return _CTYPES[code](given.item() if isinstance(given, np.generic) else given)


def _address(kernel: str, place: int, code: str, given: Any) -> int:
    """The address that a pointer gets."""
    if given is None:
        return 0
    if isinstance(given, (int, np.integer)):
        return int(given)
    if not isinstance(given, np.ndarray):
        raise OpTypeError(f"Argument {place} of kernel {kernel} is a pointer.", received=type(given).__name__)
    held = "E" if given.dtype.name == "bfloat16" else _SAME.get(given.dtype.char, given.dtype.char)
    if code[1:] != held and code[1:] not in ("v", "S"):
        raise OpTypeError(
            f"Argument {place} of kernel {kernel} points to another type.", expected=f"elements of type {code[1:]!r}",
            received=f"an array of {given.dtype}",
        )  # fmt: skip
    if not given.flags.c_contiguous:
        raise OpTypeError(
            f"Argument {place} of kernel {kernel} is not contiguous.", expected="an array without gaps",
            received=f"strides {given.strides} of shape {given.shape}",
        )  # fmt: skip
    return int(given.ctypes.data)
