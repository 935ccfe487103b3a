"""Sources and launches of CUDA kernels, and ``fluid.cuh``, which their files include.

A family's kernels are a ``.cu`` file beside its operators. `Source` names the file, ``source["row_sum<float>"]`` one
kernel in it, and a kernel that binds emits launches of it as it emits calls of numpy: arrays are arguments.
"""

from fluidnb_kernels.cuda.dtypes import allocate, cast, of_dtype, settle, wide_dtype, writing_as, written_as
from fluidnb_kernels.cuda.grid import BLOCKS, THREADS, block_of, by_rows, each, elementwise, threads_of
from fluidnb_kernels.cuda.line_grid import each_line, lines_along
from fluidnb_kernels.cuda.source import Function, Source, sources
from fluidnb_kernels.cuda.types import CTYPES, address_of, ctype, elements, typed, vector, widths

__all__ = [
    "BLOCKS", "CTYPES", "Function", "Source", "THREADS", "address_of", "allocate", "block_of", "by_rows", "cast",
    "ctype", "each", "each_line", "elements", "elementwise", "lines_along", "of_dtype", "settle", "sources",
    "threads_of", "typed", "vector", "wide_dtype", "widths", "writing_as", "written_as",
]  # fmt: skip
