"""cuBLAS's own functions: cupy's refuse to work while a stream is captured, though cuBLAS does not.

The library is the one that cupy is linked with; handles are cupy's.
"""

import ctypes
import importlib
from functools import cache
from typing import Any

CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_64F = 68, 70
CUBLAS_GEMM_DEFAULT = -1
CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16

_POINTER, _INT, _LONG = ctypes.c_void_p, ctypes.c_int, ctypes.c_longlong
_MATRIX = [_POINTER, _INT, _INT, _LONG]  # address, type, leading dimension, stride
#: function -> the types of its arguments, as cublas_api.h has them
ARGUMENTS = {
    "cublasSetStream_v2": [_POINTER, _POINTER],
    "cublasGetMathMode": [_POINTER, _POINTER],
    "cublasSetMathMode": [_POINTER, _INT],
    "cublasGemmStridedBatchedEx": [
        _POINTER, *[_INT] * 5, _POINTER, *_MATRIX, *_MATRIX, _POINTER, *_MATRIX, *[_INT] * 3,
    ],
}  # fmt: skip


@cache
def _cupys() -> Any:
    """The module of cupy that is linked with cuBLAS; cupy then finds the library in NVIDIA's wheels too."""
    return importlib.import_module("cupy.cuda").cublas


@cache
def _function(name: str) -> Any:
    """A function of cuBLAS; a library finds the functions of those it is linked with."""
    found = getattr(ctypes.CDLL(_cupys().__file__), name)
    found.argtypes, found.restype = ARGUMENTS[name], ctypes.c_int
    return found


def setStream(handle: int, stream: int) -> None:
    """Sets the stream of a handle."""
    _cupys().check_status(_function("cublasSetStream_v2")(handle, stream))


def getMathMode(handle: int) -> int:
    """The math mode of a handle."""
    mode = _INT()
    _cupys().check_status(_function("cublasGetMathMode")(handle, ctypes.addressof(mode)))
    return mode.value


def setMathMode(handle: int, mode: int) -> None:
    """Sets the math mode of a handle."""
    _cupys().check_status(_function("cublasSetMathMode")(handle, mode))


def gemmStridedBatchedEx(
    handle: int, transa: int, transb: int, m: int, n: int, k: int, alpha: int, A: int, Atype: int, lda: int,
    strideA: int, B: int, Btype: int, ldb: int, strideB: int, beta: int, C: int, Ctype: int, ldc: int, strideC: int,
    batchCount: int, computeType: int, algo: int,
) -> None:  # fmt: skip
    """C = alpha · op(A) · op(B) + beta · C for matrices in column order; see cuBLAS's documentation."""
    status = _function("cublasGemmStridedBatchedEx")(
        handle, transa, transb, m, n, k, alpha, A, Atype, lda, strideA, B, Btype, ldb, strideB, beta, C, Ctype, ldc,
        strideC, batchCount, computeType, algo,
    )  # fmt: skip
    _cupys().check_status(status)
