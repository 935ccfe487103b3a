"""The CUDA kernels of losses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fluidnb.op import Binder
from fluidnb_kernels.cuda import CTYPES, Source, ctype
from fluidnb_kernels.cuda.axis_reduction import fold_types
from fluidnb_kernels.cuda.cast import of_dtype
from fluidnb_kernels.cuda.grid import each
from fluidnb_kernels.emit import FLOATS

Array = Any

#: What a pointer is where there is no array.
NOTHING = np.uintp(0)

_TERMS = (
    "log_loss", "log_loss_grad", "hinge_loss", "hinge_loss_grad", "huber_loss", "huber_loss_grad",
    "modified_huber_loss", "modified_huber_loss_grad", "rank_loss", "rank_loss_grad", "margin_rank_loss",
    "margin_rank_loss_grad", "kldiv_loss", "scaled", "bce_loss", "bce_loss_grad", "taught", "taught_grad",
)  # fmt: skip
_WHOLE = ("sigmoid_loss", "sigmoid_loss_grad", "kldiv_loss_grad", "label_smooth")
_LINES = (
    "cross_entropy", "cross_entropy_grad", "soft_grad", "bpr_loss", "bpr_loss_grad", "smooth_l1_loss",
    "smooth_l1_loss_grad", "nll_loss", "nll_total", "nll_loss_grad",
)  # fmt: skip


def _folds(*names: str) -> Iterator[str]:
    yield from (f"fold<f::{name}, {types}>" for name in names for types in fold_types(FLOATS))


def _kernels_of_terms() -> Iterator[str]:
    for dtype in FLOATS:
        yield from (f"terms<f::{name}, {CTYPES[dtype]}>" for name in _TERMS)
        yield from (f"{name}<{CTYPES[dtype]}>" for name in _WHOLE)
    yield from _folds("others", "total", "mean", "kldiv", "kldiv_mean")


def _kernels_of_lines() -> Iterator[str]:
    yield from (f"{name}<{CTYPES[dtype]}>" for name in _LINES for dtype in FLOATS)
    yield from _folds("soft_part", "soft", "total", "minus")


#: Losses of each element, and those of rows.
TERMS = Source(__file__, "elementwise_losses.cu", _kernels_of_terms)
LINES = Source(__file__, "row_losses.cu", _kernels_of_lines)


def terms(b: Binder, name: str, operands: list[Array], one: Array, two: Array = NOTHING, *numbers: float) -> None:
    """Emit a loss of each element.

    Args:
        name: its name in ``elementwise_losses.cu``.
        operands: up to four arrays of one size; those after the first are cast to its dtype.
    """
    x = operands[0]
    rest = [of_dtype(b, y, x.dtype) for y in operands[1:]]
    a, c = (*map(np.float64, numbers), *[np.float64(0)] * 2)[:2]
    each(b, TERMS, f"terms<f::{name}, {ctype(x.dtype)}>", x.size, *[x, *rest, x, x, x][:4], one, two, a, c)


def wanted(b: Binder, slot: str) -> Array:
    """An output, or NOTHING where it has no consumer."""
    return b[slot] if b.wants(slot) else NOTHING
