"""Products by cuBLAS."""

from collections.abc import Sequence

import numpy as np

from fluidnb_kernels.cuda import backend

#: dtype name -> cudaDataType_t
_TYPES = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 14}


def gemm(
    dtype: str, addresses: Sequence[int], sizes: Sequence[int], rows: Sequence[int], steps: Sequence[int], tx: bool,
    ty: bool, alpha: float, beta: float, batch: int,
) -> None:  # fmt: skip
    """Put a product into the current stream; half precision is added up in float32, float32 as it is (no TF32)."""
    library, cuda = backend.cublas(), backend.cupy().cuda
    handle = cuda.device.get_cublas_handle()
    library.setStream(handle, cuda.get_current_stream().ptr)
    (m, n, k), (x, y, out), type_ = sizes, addresses, _TYPES[dtype]
    wide = dtype == "float64"
    numbers = np.array([alpha, beta], np.float64 if wide else np.float32)
    compute = library.CUBLAS_COMPUTE_64F if wide else library.CUBLAS_COMPUTE_32F
    # cuBLAS counts columns first: what it reads is transposed, and out' = y' x'. One row may have any length.
    lead = [max(row, 1) for row in rows]
    # Otherwise parts of a product of bfloat16 are added in bfloat16: on an H100, 7 of 990 numbers were 0.02 off. The
    # handle is the thread's, which a user's own products by cupy have, too.
    mode = library.getMathMode(handle)
    library.setMathMode(handle, mode | library.CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)
    library.gemmStridedBatchedEx(
        handle, int(ty), int(tx), n, m, k, numbers.ctypes.data, y, type_, max(lead[1], k if ty else n), steps[1],
        x, type_, max(lead[0], m if tx else k), steps[0], numbers.ctypes.data + numbers.itemsize,
        out, type_, max(lead[2], n), steps[2], batch, compute, library.CUBLAS_GEMM_DEFAULT,
    )  # fmt: skip
    library.setMathMode(handle, mode)
