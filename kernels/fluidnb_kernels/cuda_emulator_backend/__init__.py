"""The CUDA emulator backend: the part of cupy that the device layer uses, over the emulator.

Kernels run on the emulator, products by the project's own kernel. What goes wrong on a GPU goes wrong here: work waits
in streams until somebody synchronizes, so that a missing wait shows as old values; a device's memory cannot be touched
by the host; addresses of kernels and copies are checked. Names, arguments and numbers are cupy's, as a test holds.
"""

from fluidnb_kernels.cuda_emulator_backend import cublas, cuda
from fluidnb_kernels.cuda_emulator_backend.array import ndarray
from fluidnb_kernels.cuda_emulator_backend.module import RawKernel, RawModule

__all__ = ["RawKernel", "RawModule", "cublas", "cuda", "ndarray"]

#: The version of cupy whose names these are.
__version__ = "14.2.0"
