"""Depthwise convolutions on a GPU: each channel is a separate group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from fluidnb.op import Binder
from fluidnb_kernels.cuda import CTYPES, Source, ctype
from fluidnb_kernels.cuda.grid import THREADS, each
from fluidnb_kernels.cuda.sliding_windows import numbers_of
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.sliding import Axis

Array = Any


def _kernels() -> Iterator[str]:
    for dtype in FLOATS:
        yield from (f"{name}<{CTYPES[dtype]}>" for name in ("apart", "apart_images", "apart_filter"))


CUDA = Source(__file__, "depthwise.cu", _kernels)


def _sizes(x: Array, w: Array, axes: Sequence[Axis]) -> tuple[Any, ...]:
    """The windows, how many filters there are, and how many of them each channel has."""
    return *numbers_of(axes), np.int64(len(w)), np.int64(len(w) // x.shape[1])


def convolve_apart(b: Binder, x: Array, w: Array, out: Array, axes: Sequence[Axis]) -> None:
    """Emit a convolution.

    Args:
        x: images [n, c, …].
        w: filter [f, 1, window…], f a multiple of c.
        out: [n, f, …], written.
    """
    each(b, CUDA, f"apart<{ctype(x.dtype)}>", out.size, x, w, out, *_sizes(x, w, axes))


def images_apart(b: Binder, g: Array, w: Array, dx: Array, axes: Sequence[Axis]) -> None:
    """Emit the gradient of its images.

    Args:
        g: gradient of the result [n, f, …].
        w: filter [f, 1, window…].
        dx: gradient of the images [n, c, …], written.
    """
    each(b, CUDA, f"apart_images<{ctype(g.dtype)}>", dx.size, g, w, dx, *_sizes(dx, w, axes))


def filter_apart(b: Binder, x: Array, g: Array, dw: Array, axes: Sequence[Axis]) -> None:
    """Emit the gradient of its filter.

    Args:
        x: images [n, c, …].
        g: gradient of the result [n, f, …].
        dw: gradient of the filter [f, 1, window…], written.
    """
    if dw.size:
        products = len(x) * prod(a.out for a in axes)
        threads = min(THREADS, max(32, 1 << max(products - 1, 0).bit_length()))
        kernel = CUDA[f"apart_filter<{ctype(x.dtype)}>"]
        b(kernel, (dw.size,), (threads,), 0, x, g, dw, *_sizes(x, dw, axes), np.int64(len(x)))
