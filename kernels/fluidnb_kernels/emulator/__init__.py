"""CUDA kernels on the processor, for tests and for machines without a GPU: the same ``.cu`` text, cupy's call shape.

g++ compiles a file once, each CUDA thread becomes a fiber, and what a GPU leaves undefined is a mistake that names the
kernel's line: a barrier that some threads miss, a warp mask that does not fit, shared memory read before it is written.
Results may not depend on the order in which threads run; `running` chooses it.

Example:
    >>> from fluidnb_kernels import emulator
    >>> text = 'extern "C" __global__ void twice(float* x, int n) { int i = threadIdx.x; if (i < n) x[i] *= 2; }'
    >>> x = np.arange(3, dtype=np.float32)
    >>> emulator.RawKernel(text, "twice")((1,), (32,), (x, np.int32(3))); x
    array([0., 2., 4.], dtype=float32)

Source: DESIGN, "CUDA".
"""

from fluidnb_kernels.emulator.compiler import CompileError, missing
from fluidnb_kernels.emulator.raw import EmulatorError, RawKernel, RawModule, running

__all__ = ["CompileError", "EmulatorError", "RawKernel", "RawModule", "missing", "running"]
