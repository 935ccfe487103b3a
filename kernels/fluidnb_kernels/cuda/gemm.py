"""Products of matrices on a device."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Binder
from fluidnb_kernels.cuda.source import Source
from fluidnb_kernels.cuda.types import CTYPES, ctype

Array = Any

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
        b: the binder.
        x: [m, k], or [batch, m, k]; rows may lie apart (a slice of columns), elements of a row lie side by side.
        y: [k, n], or [batch, k, n], likewise.
        out: [m, n], or [batch, m, n], likewise; not read where ``beta`` is 0.
        tx: whether ``x`` lies transposed, as [..., k, m].
        ty: whether ``y`` lies transposed, as [..., n, k].
        alpha: number.
        beta: number.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("mul", {"X": [[1.0, 2.0]], "Y": [[3.0], [4.0]]})["Out"]
        array([[11.]])
    """
    if out.size:
        b(launch, x, y, out, tx, ty, alpha, beta)


def launch(x: Array, y: Array, out: Array, tx: bool, ty: bool, alpha: float, beta: float) -> None:
    """What `gemm` emits.

    Args:
        x: as in `gemm`.
        y: as in `gemm`.
        out: as in `gemm`.
        tx: as in `gemm`.
        ty: as in `gemm`.
        alpha: as in `gemm`.
        beta: as in `gemm`.
    """
    (m, n), k = out.shape[-2:], x.shape[-2] if tx else x.shape[-1]
    batch = out.shape[0] if out.ndim == 3 else 1
    kernel = CUDA[f"gemm<{ctype(out.dtype)}, {_FLAGS[tx]}, {_FLAGS[ty]}>"]
    grid = -(-n // _SIDE), -(-m // _SIDE), min(batch, _MOST)
    sizes = np.int32(m), np.int32(n), np.int32(k)
    rows, steps = [_row(a) for a in (x, y, out)], [_step(a) for a in (x, y, out)]
    operands = _address(x), _address(y), _address(out)
    kernel(grid, (_THREADS,), 0, *operands, *sizes, *rows, *steps, np.float64(alpha), np.float64(beta), np.int32(batch))


def _row(a: Array) -> np.int64:
    """How far rows lie apart, in elements."""
    return np.int64(a.strides[-2] // a.itemsize)


def _step(a: Array) -> np.int64:
    """How far the matrices of a batch lie apart, in elements; a matrix that meets each one stays."""
    return np.int64(a.strides[0] // a.itemsize if a.ndim == 3 else 0)


def _address(a: Array) -> np.uint64:
    """Where it begins: rows that lie apart are not contiguous, which a launch would ask of an array."""
    return np.uint64(a.ctypes.data if isinstance(a, np.ndarray) else a.data.ptr)
