"""Products on GPUs: of batches of matrices with broadcasting and transposes, and of vectors."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import product as combinations
from typing import NamedTuple

from fluidnb.op import Array, Binder
from fluidnb_kernels.cuda import Source, of_dtype, typed, wide_dtype, writing_as, written_as
from fluidnb_kernels.cuda.gemm import gemm
from fluidnb_kernels.elementwise.broadcast import Dim, aligned, merged, summed
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.math.same_shape import scaled
from fluidnb_kernels.reduce.reduction_kernels import NUMBERS
from fluidnb_kernels.tensor.strided_copy import fill, fold

Shape = tuple[int, ...]


#: Products of vectors.
CUDA = Source(__file__, "matrix_products.cu", typed(
    ("cross", NUMBERS), ("shifted shifted_weights", FLOATS),
    ("bilinear bilinear_y bilinear_outer", ("float32", "float64")),
))  # fmt: skip


class Side(NamedTuple):
    """An operand of a product."""

    array: Array  # [..., rows, columns]; contiguous
    down: bool = False  # whether it lies transposed, as [..., columns, rows]

    @property
    def turned(self) -> Side:
        """Its transpose, in the same memory."""
        return Side(self.array, not self.down)

    @property
    def batch(self) -> Shape:
        """The sizes of its batches."""
        shape: Shape = self.array.shape[:-2]
        return shape


#: The operands of one product; None where there is none.
Pair = tuple[Side | None, Side | None]


def multiplied(b: Binder, x: Side, y: Side, out: Array, alpha: float = 1.0, beta: float = 0.0) -> None:
    """Emit ``out = alpha · x · y + beta · out`` for each matrix of batches that broadcast as in numpy."""
    if not x.array.shape[-2 if x.down else -1]:  # cuBLAS does not say what it makes of no terms
        fill(b, out, alpha * 0) if beta == 0 else scaled(b, out, out, beta)
    if not out.size or not x.array.size:
        return
    dims = merged(*_aligned(x, y), out.shape[:-2])
    if dims and not dims[-1].in_y and not x.down:  # rows of a batch that meet one matrix are one tall matrix
        *dims, last = dims
        tall = last.size
    else:
        tall = 1
    sizes = [[d.size if had else 1 for d, had in zip(dims, has, strict=True)] for has in _which(dims)]
    m, k = x.array.shape[-2:]
    one, other = x.array.reshape(*sizes[0], m * tall, k), y.array.reshape(*sizes[1], *y.array.shape[-2:])
    whole = out.reshape(*(d.size for d in dims), out.shape[-2] * tall, out.shape[-1])
    lead = max(range(len(dims)), key=lambda i: dims[i].size, default=-1)
    for at in combinations(*([slice(None)] if i == lead else range(d.size) for i, d in enumerate(dims))):
        in_x, in_y = (tuple(i if had else 0 for i, had in zip(at, has, strict=True)) for has in _which(dims))
        gemm(b, one[in_x], other[in_y], whole[at], x.down, y.down, alpha, beta)


def _aligned(x: Side, y: Side) -> tuple[Shape, Shape]:
    """The batches of both operands, with as many dimensions."""
    return aligned(x.batch, y.batch, -1)


def _which(dims: list[Dim]) -> tuple[list[bool], list[bool]]:
    """Two masks of dimensions: those of x, and those of y."""
    return [d.in_x for d in dims], [d.in_y for d in dims]


def summed_product(b: Binder, x: Side, y: Side, out: Array, shape: Shape, alpha: float) -> None:
    """Emit ``out = alpha · x · y``, added up over batches that ``out``, of a shape [..., rows, columns], lacks."""
    one, other = _aligned(x, y)
    batch = tuple(m if n == 1 else n for n, m in zip(one, other, strict=True))
    padded = (1,) * (len(batch) + 2 - len(shape)) + shape
    if x.down and not y.down and one == other and math.prod(padded[:-2]) == 1:
        # the sum over a batch is one product of tall matrices
        x, y = (Side(s.array.reshape(math.prod(s.array.shape[:-1]), s.array.shape[-1]), s.down) for s in (x, y))
        return multiplied(b, x, y, out.reshape(shape[-2:]), alpha)
    axes = summed(padded, (*batch, *shape[-2:]))
    if not axes:
        return multiplied(b, x, y, out.reshape(shape), alpha)
    wide = wide_dtype(out.dtype)  # what is rounded before it is summed is off
    x, y = (Side(of_dtype(b, side.array, wide), side.down) for side in (x, y))
    whole, sums = b.tmp((*batch, *shape[-2:]), wide), writing_as(b, out, wide)
    multiplied(b, x, y, whole, alpha)
    fold(b, whole, sums, whole.shape, axes)
    return written_as(b, out, sums)


def sum_of_products(
    b: Binder, pairs: Iterable[tuple[Side | None, Side | None]], out: Array, alpha: float = 1.0
) -> None:
    """Emit ``out = alpha · the sum of x · y`` over pairs; a pair with None counts as 0."""
    there = [(x, y) for x, y in pairs if x is not None and y is not None]
    if not there:
        return fill(b, out)
    wide = out if len(there) == 1 else writing_as(b, out, wide_dtype(out.dtype))
    for i, (x, y) in enumerate(there):
        left, right = (Side(of_dtype(b, side.array, wide.dtype), side.down) for side in (x, y))
        multiplied(b, left, right, wide, alpha, 1.0 if i else 0.0)
    return written_as(b, out, wide)
