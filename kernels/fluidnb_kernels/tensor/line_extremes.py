"""The largest and smallest elements of lines of a tensor on a GPU, and where they are."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fluidnb.op import Array, Binder
from fluidnb_kernels.cuda import CTYPES, Source, ctype, each_line, lines_along
from fluidnb_kernels.emit import FLOATS

#: The dtypes that have an order here.
ORDERED = (*FLOATS, "int32", "int64")


def _order(largest: bool, none_first: bool) -> str:
    return f"ranking<{str(largest).lower()}, {str(none_first).lower()}>"


def _kernels() -> Iterator[str]:
    for t in (CTYPES[d] for d in ORDERED):
        for largest in (True, False):
            yield from (f"find<{t}, {index}, {_order(largest, True)}>" for index in ("int", "long long"))
            yield f"top<{t}, {_order(largest, False)}>"
        yield f"top<{t}, {_order(True, True)}>"


CUDA = Source(__file__, "line_extremes.cu", _kernels)


def find(b: Binder, x: Array, axis: int | None, out: Array, largest: bool) -> None:
    """Emit the place of each line's largest or smallest element, NaN before all others; one line without axis."""
    sizes = (1, x.size, 1) if axis is None else lines_along(x.shape, axis)
    each_line(b, CUDA, f"find<{ctype(x.dtype)}, {ctype(out.dtype)}, {_order(largest, True)}>", *sizes, x, out)


def top(b: Binder, x: Array, k: int, axis: int, largest: bool = True, none_first: bool = False) -> None:
    """Emit Out and Indices of top_k."""
    name = f"top<{ctype(x.dtype)}, {_order(largest, none_first)}>"
    each_line(b, CUDA, name, *lines_along(x.shape, axis), x, b["Out"], b["Indices"], np.int64(k))
