"""tril_triu, diag_v2, diag_embed, trace and eye on a GPU."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from fluidnb.op import Binder, kernel
from fluidnb_kernels.cuda import Source
from fluidnb_kernels.cuda.fold import fold
from fluidnb_kernels.cuda.rows import by_rows
from fluidnb_kernels.reduce.folds import CUDA as REDUCE
from fluidnb_kernels.reduce.folds import NUMBERS, TOTAL
from fluidnb_kernels.tensor.diagonals import diagonal_view, trace_axes
from fluidnb_kernels.tensor.moves import WORDS, fill, lay, move
from fluidnb_kernels.tensor.picks import word

Array = Any


def _kernels() -> Iterator[str]:
    yield from (f"triangle<{word}>" for size, word in WORDS.items() if size <= 8)


CUDA = Source(__file__, "diagonals.cu", _kernels)


def _keep_on_cuda(b: Binder, x: Array, out: Array) -> None:
    """Emit ``out = x`` in a triangle, 0 elsewhere."""
    rows, columns = x.shape[-2:]
    numbers = np.int64(rows), np.int64(columns), np.int64(b.attr("diagonal", 0)), np.int32(b.attr("lower", False))
    by_rows(b, CUDA, f"triangle<{word(x)}>", x.size // max(columns, 1), columns, x, out, *numbers)


@kernel("tril_triu", place="cuda")
def _triangle_on_cuda(b: Binder) -> None:
    _keep_on_cuda(b, b["X"], b["Out"])


@kernel("tril_triu_grad", place="cuda")
def _triangle_grad_on_cuda(b: Binder) -> None:
    _keep_on_cuda(b, b["Out@GRAD"], b["X@GRAD"])


def _take_on_cuda(b: Binder, x: Array, out: Array, at: tuple[int, ...]) -> None:
    """Emit ``out`` = a diagonal of ``x``; ``at`` is what `diagonal_view` takes beside an array."""
    view = diagonal_view(lay(x), *at)
    move(b, out, x, lay(out, view.shape), view)


def _put_on_cuda(b: Binder, x: Array, out: Array, at: tuple[int, ...], beside: float = 0.0) -> None:
    """Emit ``x`` on a diagonal of ``out``, and one number beside it."""
    fill(b, out, beside)
    view = diagonal_view(lay(out), *at)
    if view.size:
        move(b, out, x, view, lay(x, (*view.shape[:-1], x.size // math.prod(view.shape[:-1]))))


@kernel("diag_v2", place="cuda")
def _diag_on_cuda(b: Binder) -> None:
    x, out, at = b["X"], b["Out"], (b.attr("offset"),)
    if x.ndim == 2:
        return _take_on_cuda(b, x, out, at)
    return _put_on_cuda(b, x, out, at, b.attr("padding_value"))


@kernel("diag_v2_grad", place="cuda")
def _diag_grad_on_cuda(b: Binder) -> None:
    g, dx = b["Out@GRAD"], b["X@GRAD"]
    (_take_on_cuda if dx.ndim == 1 else _put_on_cuda)(b, g, dx, (b.attr("offset", 0),))


def _embedded(b: Binder) -> tuple[int, ...]:
    return b.attr("offset", 0), b.attr("dim1", -2), b.attr("dim2", -1)


@kernel("diag_embed", place="cuda")
def _embed_on_cuda(b: Binder) -> None:
    _put_on_cuda(b, b["Input"], b["Out"], _embedded(b))


@kernel("diag_embed_grad", place="cuda")
def _embed_grad_on_cuda(b: Binder) -> None:
    _take_on_cuda(b, b["Out@GRAD"], b["Input@GRAD"], _embedded(b))


@kernel("trace", place="cuda", dtypes=NUMBERS)
def _trace_on_cuda(b: Binder) -> None:
    x, at = b["Input"], (b.attr("offset", 0), *trace_axes(b))
    line = b.tmp(diagonal_view(lay(x), *at).shape, x.dtype)
    _take_on_cuda(b, x, line, at)
    fold(b, REDUCE, TOTAL, line, [line.ndim - 1], b["Out"])


@kernel("trace_grad", place="cuda")
def _trace_grad_on_cuda(b: Binder) -> None:
    _put_on_cuda(b, b["Out@GRAD"], b["Input@GRAD"], (b.attr("offset", 0), *trace_axes(b)))


@kernel("eye", place="cuda")
def _eye_on_cuda(b: Binder) -> None:
    out = b["Out"]
    _put_on_cuda(b, b.table(np.ones(1, out.dtype)), out, (0,))
