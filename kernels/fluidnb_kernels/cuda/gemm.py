"""Products of matrices on a device."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fluidnb.op import Array, Binder, launches
from fluidnb_kernels.cuda import cublas
from fluidnb_kernels.cuda.dtypes import of_dtype
from fluidnb_kernels.cuda.source import Function, Source
from fluidnb_kernels.cuda.types import CTYPES, address_of

#: Dtypes that have products.
DTYPES = ("float32", "float64", "float16", "bfloat16")
#: Rows and columns that a block makes, and its threads.
_SIDE, _THREADS = 64, 256
_FLAGS = ("false", "true")
_MOST = 65535

CUDA = Source(
    __file__, "gemm.cu", lambda: (f"gemm<{CTYPES[t]}, {x}, {y}>" for t in DTYPES for x in _FLAGS for y in _FLAGS)
)


def gemm(
    b: Binder, x: Array, y: Array, out: Array, tx: bool = False, ty: bool = False, alpha: float = 1.0,
    beta: float = 0.0,
) -> None:  # fmt: skip
    """Emit ``out = alpha · x · y + beta · out``; a matrix beside a batch of them meets each one.

    Args:
        x: [m, k], or [batch, m, k]; rows may lie apart (a slice of columns), elements of a row lie side by side.
        y: [k, n], or [batch, k, n], likewise.
        out: [m, n], or [batch, m, n], likewise; not read where ``beta`` is 0.
        tx: whether ``x`` lies transposed, as [..., k, m].
        ty: whether ``y`` lies transposed, as [..., n, k].
    """
    if out.size:  # a program from a file may mix dtypes
        b(launch, of_dtype(b, x, out.dtype), of_dtype(b, y, out.dtype), out, tx, ty, alpha, beta)


def launch(x: Array, y: Array, out: Array, tx: bool, ty: bool, alpha: float, beta: float) -> None:
    """Launches a product: by cuBLAS on a device, by the kernel of ``gemm.cu`` on the host."""
    sizes, rows, steps, batch = _layout(x, y, out, tx)
    addresses = [address_of(a) for a in (x, y, out)]
    if not isinstance(out, np.ndarray) and sizes[-1]:
        return cublas.gemm(out.dtype.name, addresses, sizes, rows, steps, tx, ty, alpha, beta, batch)
    call = call_of(out.dtype.name, addresses, sizes, rows, steps, tx, ty, alpha, beta, batch)
    return call.kernel.near(out)(call.grid, call.block, call.args)


def _layout(x: Array, y: Array, out: Array, tx: bool) -> tuple[tuple[int, int, int], list[int], list[int], int]:
    """The sizes m, n and k of a product, steps between rows and between matrices, and how many there are."""
    (m, n), k = out.shape[-2:], x.shape[-2] if tx else x.shape[-1]
    rows = [int(a.strides[-2]) // int(a.itemsize) for a in (x, y, out)]
    steps = [int(a.strides[0]) // int(a.itemsize) if a.ndim == 3 else 0 for a in (x, y, out)]
    return (m, n, k), rows, steps, out.shape[0] if out.ndim == 3 else 1


class Launch(NamedTuple):
    """A launch of ``gemm.cu``."""

    kernel: Function
    grid: tuple[int, ...]
    block: tuple[int, ...]
    args: tuple[Any, ...]


def call_of(
    dtype: str, addresses: Sequence[int], sizes: Sequence[int], rows: Sequence[int], steps: Sequence[int], tx: bool,
    ty: bool, alpha: float, beta: float, batch: int,
) -> Launch:  # fmt: skip
    """The launch of ``gemm.cu`` that makes a product; addresses, since a launch refuses arrays with gaps."""
    m, n, _ = sizes
    return Launch(
        CUDA[f"gemm<{CTYPES[dtype]}, {_FLAGS[tx]}, {_FLAGS[ty]}>"],
        (-(-n // _SIDE) * -(-m // _SIDE), 1, min(batch, _MOST)), (_THREADS,),
        (
            *map(np.uint64, addresses), *map(np.int32, sizes), *map(np.int64, rows), *map(np.int64, steps),
            np.float64(alpha), np.float64(beta), np.int32(batch),
        ),
    )  # fmt: skip


def _launches(
    x: Array, y: Array, out: Array, tx: bool, ty: bool, alpha: float, beta: float
) -> tuple[launches.Launch, ...]:
    """The launch of ``gemm.cu`` that a call of `launch` stands for."""
    sizes, rows, steps, batch = _layout(x, y, out, tx)
    call = call_of(out.dtype.name, (0, 0, 0), sizes, rows, steps, tx, ty, alpha, beta, batch)
    return (launches.Launch(call.kernel, call.grid, call.block, 0, (x, y, out, *call.args[3:])),)


launches.register_launches(launch, _launches)
