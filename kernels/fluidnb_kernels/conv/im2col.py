"""Windows of images unrolled into columns on a GPU, and columns rolled up into images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from fluidnb.op import Array, Binder
from fluidnb_kernels.cuda import Source, ctype, each, elements, wide_dtype
from fluidnb_kernels.cuda.sliding_windows import numbers_of
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.sliding import Axis
from fluidnb_kernels.tensor.strided_copy import WORDS


def _kernels() -> Iterator[str]:
    yield from (f"columns<{WORDS[size]}>" for size in (2, 4, 8))
    for dtype in elements(FLOATS):
        for column in dict.fromkeys((dtype, wide_dtype(dtype))):
            yield f"images<{ctype(column)}, {ctype(dtype)}>"


CUDA = Source(__file__, "im2col.cu", _kernels)


def depth_of(x: Array, axes: Sequence[Axis]) -> int:
    """The number of rows of columns: elements of a window in all channels."""
    return int(x.shape[1]) * prod(a.window for a in axes)


def to_columns(b: Binder, x: Array, columns: Array, axes: Sequence[Axis], together: bool = False) -> None:
    """Emit the windows of images as columns [n, depth, windows], or [depth, n, windows] with ``together``."""
    n, channels, places = len(x), x.shape[1], prod(a.out for a in axes)
    steps = (places, n * places) if together else (depth_of(x, axes) * places, places)
    count = n * channels * places
    kernel = f"columns<{WORDS[x.dtype.itemsize]}>"
    each(b, CUDA, kernel, count, x, columns, *numbers_of(axes), *map(np.int64, (channels, *steps)))


def to_images(b: Binder, columns: Array, x: Array, axes: Sequence[Axis]) -> None:
    """Emit images whose elements are the sums of those of columns that came from them."""
    kernel = f"images<{ctype(columns.dtype)}, {ctype(x.dtype)}>"
    each(b, CUDA, kernel, x.size, columns, x, *numbers_of(axes))
