"""The emulator backend has names, arguments and numbers of cupy's; cupy itself can be looked at without a GPU."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fluidnb_kernels import cuda_emulator_backend
from fluidnb_kernels.cuda import libcublas

cupy = pytest.importorskip("cupy", reason="cupy is not installed")

#: Public names that are the emulator backend's own: how its streams are looked into.
OWN = {
    "Stream.push", "Stream.drain", "Stream.keep", "Stream.mark", "Event.time", "Event.timed", "Event.upto",
    "Event.recorded", "runtime.streams", "runtime.all_streams", "runtime.is_pinned",
}  # fmt: skip


def members(owner: Any) -> Iterator[tuple[str, Any]]:
    """The public names of a module or class of the emulator backend."""
    told = owner.__all__ if owner in (cuda_emulator_backend, cuda_emulator_backend.cuda) else vars(owner)
    for name in told:
        value = getattr(owner, name)
        home = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", "fluidnb")
        inner = isinstance(value, types.ModuleType) and told is vars(owner)
        if not name.startswith("_") and home.startswith("fluidnb") and not inner:
            yield name, value


def pairs(owner: Any, real: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Every public name of the emulator backend, what it is there, and what it is in cupy (None: nothing)."""
    for name, value in members(owner):
        where = f"{path}{name}"
        if where in OWN or where.partition("cuda.")[2] in OWN:
            continue
        other = getattr(real, name, None)
        yield where, value, other
        if other is not None and (inspect.isclass(value) or isinstance(value, types.ModuleType)):
            yield from pairs(value, other, f"{where}.")


PAIRS = [row for row in pairs(cuda_emulator_backend, cupy) if not row[0].startswith(("cublas", "cuda.device.runtime"))]


@pytest.mark.parametrize(("name", "ours", "theirs"), PAIRS, ids=[row[0] for row in PAIRS])
def test_a_name_is_cupys(name: str, ours: Any, theirs: Any) -> None:
    assert theirs is not None, f"cupy has no {name}"
    if isinstance(ours, int) and not isinstance(ours, bool):
        assert ours == theirs
    if inspect.isfunction(ours):
        mine = [p for p in inspect.signature(ours).parameters if p not in ("self",)]
        assert mine == parameters(theirs)[: len(mine)], f"arguments of {name}"


def parameters(function: Any) -> list[str]:
    """The names of a function's arguments; those of compiled ones stand in their documentation."""
    try:
        return [p for p in inspect.signature(function).parameters if p != "self"]
    except (TypeError, ValueError):
        first = (function.__doc__ or "").split("\n")[0]
        inside = first[first.index("(") + 1 : first.rindex(")")]
        names = [re.split(r"[ *&]", part.split("=")[0].strip())[-1] for part in inside.split(",") if part.strip()]
        return [n for n in names if n and n != "self"]


def linked_with_cublas() -> bytes:
    """cupy's module that is linked with cuBLAS; it loads with cuBLAS only."""
    spec = find_spec("cupy_backends.cuda.libs")
    assert spec is not None and spec.submodule_search_locations
    (file,) = Path(next(iter(spec.submodule_search_locations))).glob("cublas*.so")
    return file.read_bytes()


def test_cublas_is_called_by_its_arguments() -> None:
    found = re.search(rb"gemmStridedBatchedEx\(([^)]*)\)", linked_with_cublas())
    assert found is not None
    theirs = [part.split()[-1] for part in found[1].decode().split(",")]
    assert list(inspect.signature(libcublas.gemmStridedBatchedEx).parameters) == theirs
    assert len(libcublas.ARGUMENTS["cublasGemmStridedBatchedEx"]) == len(theirs)
    for name in ("cublasSetStream_v2", "cublasGetMathMode", "cublasSetMathMode"):
        assert len(libcublas.ARGUMENTS[name]) == 2


@pytest.mark.parametrize("name", libcublas.ARGUMENTS)
def test_what_cupy_is_linked_with_has_the_functions(name: str) -> None:
    assert b"\0%s\0" % name.encode() in linked_with_cublas()


def test_the_cublas_of_the_backend_has_its_names() -> None:
    for name, function in inspect.getmembers(libcublas, inspect.isfunction):
        if function.__module__ == libcublas.__name__ and not name.startswith("_"):
            assert inspect.signature(getattr(cuda_emulator_backend.cublas, name)) == inspect.signature(function)
    for name in (n for n in dir(libcublas) if n.startswith("CUBLAS_")):
        assert getattr(cuda_emulator_backend.cublas, name) == getattr(libcublas, name)


def test_cublas_is_asked_for_in_a_way_that_finds_it_in_wheels() -> None:
    with suppress(ImportError):  # cuBLAS is not installed
        theirs = cupy.cuda.cublas
        assert theirs.CUBLAS_COMPUTE_32F == libcublas.CUBLAS_COMPUTE_32F
        assert theirs.CUBLAS_COMPUTE_64F == libcublas.CUBLAS_COMPUTE_64F
        assert theirs.CUBLAS_GEMM_DEFAULT == libcublas.CUBLAS_GEMM_DEFAULT
        with pytest.raises(RuntimeError, match="CUBLAS_STATUS_NOT_INITIALIZED"):
            libcublas.setStream(0, 0)


def test_it_says_which_cupy_it_follows() -> None:
    assert cuda_emulator_backend.__version__.split(".")[0] == cupy.__version__.split(".")[0]


def array_of(module: Any, dtype: Any) -> Any:
    """An array where no memory is: how it lies can be looked at without a device."""
    memory = module.cuda.UnownedMemory(1 << 60, 1 << 20, None, 0)
    return module.ndarray((4, 6, 8), dtype, module.cuda.MemoryPointer(memory, 0))


VIEWS: dict[str, Callable[[Any], Any]] = {
    "row": lambda x: x[1], "number": lambda x: x[1, 2, 3], "rows": lambda x: x[1:3], "columns": lambda x: x[..., 2:5],
    "steps": lambda x: x[:, ::2], "backwards": lambda x: x[::-1], "none": lambda x: x[None, :, 0], "T": lambda x: x.T,
    "swapaxes": lambda x: x.swapaxes(0, 1), "transpose": lambda x: x.transpose(1, 2, 0),
    "reshape": lambda x: x.reshape(24, 8), "part": lambda x: x[1:].reshape((-1, 4)), "ravel": lambda x: x.ravel(),
    "squeeze": lambda x: x[:1].squeeze(0), "bytes": lambda x: x.view(np.uint8), "view": lambda x: x.view(),
    "empty": lambda x: x[:0],
}  # fmt: skip


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", ml_dtypes.bfloat16, "float32", "complex64"])
def test_views_lie_as_cupys(dtype: Any, view: str) -> None:
    seen = []
    for module in (cuda_emulator_backend, cupy):
        x = array_of(module, dtype)
        y = VIEWS[view](x)
        lies = y.shape, y.strides, y.dtype, y.size, y.ndim, y.itemsize, y.nbytes, y.flags.c_contiguous
        seen.append((*lies, y.data.ptr, y.data.device_id, y.data.mem is x.data.mem, y.base is x))
    assert seen[0] == seen[1]


def test_arguments_that_cupy_refuses_are_refused() -> None:
    wrong: list[tuple[type[Exception], Callable[[Any], Any]]] = [
        (TypeError, lambda m: array_of(m, "float32").set(np.zeros((4, 6, 8)))),
        (TypeError, lambda m: array_of(m, "float32").set([1.0])),
        (ValueError, lambda m: array_of(m, "float32").set(np.zeros((4, 6), "float32"))),
        (RuntimeError, lambda m: array_of(m, "float32")[:, ::2].set(np.zeros((4, 3, 8), "float32"))),
        (ValueError, lambda m: m.ndarray((2,), "datetime64[s]")),
        (TypeError, lambda m: m.RawModule("text")),
        (TypeError, lambda m: m.RawModule(code="text", options=["-DA"])),
        (TypeError, lambda m: m.RawKernel("text", "name", ["-DA"])),
        (TypeError, lambda m: np.asarray(array_of(m, "float32"))),
    ]
    for error, ask in wrong:
        for module in (cupy, cuda_emulator_backend):
            with pytest.raises(error):
                ask(module)
