"""Products of matrices with cuBLAS's names, made by the project's own kernel on the emulator."""

import ctypes
import threading

from fluidnb_kernels.cuda.gemm import call_of
from fluidnb_kernels.cuda_emulator_backend.memory import CUDARuntimeError, on_device
from fluidnb_kernels.cuda_emulator_backend.runtime import CUDA_R_16BF, CUDA_R_16F, CUDA_R_32F, CUDA_R_64F
from fluidnb_kernels.cuda_emulator_backend.streams import streams

CUBLAS_OP_N, CUBLAS_OP_T = 0, 1
CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_64F = 68, 70
CUBLAS_GEMM_DEFAULT = -1
CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16
_DTYPES = {CUDA_R_32F: "float32", CUDA_R_64F: "float64", CUDA_R_16F: "float16", CUDA_R_16BF: "bfloat16"}


class _Handles(threading.local):
    """The cuBLAS handle of a thread: each thread has a separate one."""

    stream = math_mode = 0


_handles = _Handles()


def setStream(handle: int, stream: int) -> None:
    """Sets the stream of a handle."""
    _handles.stream = stream


def getMathMode(handle: int) -> int:
    """The math mode of a handle."""
    return _handles.math_mode


def setMathMode(handle: int, mode: int) -> None:
    """Sets the math mode of a handle; products here are always added up in float32."""
    _handles.math_mode = mode


def gemmStridedBatchedEx(
    handle: int, transa: int, transb: int, m: int, n: int, k: int, alpha: int, A: int, Atype: int, lda: int,
    strideA: int, B: int, Btype: int, ldb: int, strideB: int, beta: int, C: int, Ctype: int, ldc: int, strideC: int,
    batchCount: int, computeType: int, algo: int,
) -> None:  # fmt: skip
    """C = alpha · op(A) · op(B) + beta · C for matrices in column order; see cuBLAS's documentation."""
    for given in (
        handle, transa, transb, m, n, k, alpha, A, Atype, lda, strideA, B, Btype, ldb, strideB, beta, C, Ctype, ldc,
        strideC, batchCount, computeType, algo,
    ):  # fmt: skip
        if not isinstance(given, int):
            raise TypeError(f"cublasGemmStridedBatchedEx: {type(given).__name__} cannot be interpreted as an integer")
    number = ctypes.c_double if computeType == CUBLAS_COMPUTE_64F else ctypes.c_float
    by, plus = number.from_address(alpha).value, number.from_address(beta).value
    if lda < (k if transa else m) or ldb < (n if transb else k) or ldc < m or not Atype == Btype == Ctype:
        raise CUDARuntimeError("CUBLAS_STATUS_INVALID_VALUE")
    for address in (A, B, C):
        if not on_device(address):
            raise CUDARuntimeError("cudaErrorIllegalAddress: an illegal memory access was encountered")
    # Read in row order, every matrix is transposed: C' = B' · A'.
    launch = call_of(
        _DTYPES[Ctype], (B, A, C), (n, m, k), (ldb, lda, ldc), (strideB, strideA, strideC), bool(transb), bool(transa),
        by, plus, batchCount,
    )  # fmt: skip
    streams[_handles.stream].push(lambda: launch.kernel.on("emulator")(launch.grid, launch.block, launch.args))
