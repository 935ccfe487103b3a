"""Sources and launches of CUDA kernels, and ``fluid.cuh``, which their files include.

A family's kernels are a ``.cu`` file beside its operators. `Source` names the file, ``source["row_sum<float>"]`` one
kernel in it, and a kernel that binds emits launches of it as it emits calls of numpy: arrays are arguments.
"""

from fluidnb_kernels.cuda.source import Function, Source, sources
from fluidnb_kernels.cuda.types import CTYPES, address_of, ctype, elements, typed, vector, widths

__all__ = ["CTYPES", "Function", "Source", "address_of", "ctype", "elements", "sources", "typed", "vector", "widths"]
