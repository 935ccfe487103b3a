"""Arithmetic of whole arrays, emitted for numpy or as CUDA launches: for formulas that both places share."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partialmethod
from math import prod
from typing import Any

import numpy as np

from fluidnb.op import Array, Binder
from fluidnb_kernels.cuda import cast, of_dtype, wide_dtype
from fluidnb_kernels.cuda.gemm import gemm
from fluidnb_kernels.elementwise.launch import CUDA, binary
from fluidnb_kernels.emit import reading
from fluidnb_kernels.tensor import strided_copy

_UFUNCS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}


@dataclass(frozen=True, slots=True)
class Formulas:
    """Emits arithmetic in one precision; operands broadcast as in numpy."""

    b: Binder  # the binder
    on_cuda: bool  # whether launches are emitted, or calls of numpy
    dtype: np.dtype[Any]  # in which everything is computed

    def read(self, x: Array, shape: Sequence[int] | None = None) -> Array:
        """An operand in the precision and, where one is given, another shape."""
        if self.on_cuda:
            x = of_dtype(self.b, x, self.dtype)
        elif x.dtype != self.dtype:
            own, x = x, self.b.like(x, self.dtype)
            self.b(np.copyto, x, own, casting="unsafe")
        if shape is None:
            return x
        return x.reshape(tuple(shape)) if self.on_cuda else reading(self.b, x, tuple(shape))

    def write(self, out: Array, value: Array) -> None:
        """Emit ``out = value``, of as many elements."""
        value = value.reshape(out.shape)
        if not self.on_cuda:
            self.b(np.copyto, out, value, casting="unsafe")
        elif out.dtype != value.dtype:
            cast(self.b, value, out)
        else:
            strided_copy.move(self.b, out, value)

    def number(self, value: float) -> Array:
        """A constant of one element."""
        if not self.on_cuda:
            return self.b.const(value, self.dtype)
        out = self.b.tmp((1,), self.dtype)
        strided_copy.fill(self.b, out, value)
        return out

    def zeros(self, shape: Sequence[int]) -> Array:
        """Zeros of a shape."""
        out = self.b.tmp(tuple(shape), self.dtype)
        if self.on_cuda:
            strided_copy.fill(self.b, out)
        else:
            self.b(np.copyto, out, self.b.const(0, self.dtype))
        return out

    def _join(self, name: str, x: Array, y: Array) -> Array:
        """Emit x + y, x - y, x · y or x / y."""
        out = self.b.tmp(np.broadcast_shapes(x.shape, y.shape), self.dtype)
        if not self.on_cuda:
            self.b(_UFUNCS[name], x, y, out=out)
            return out
        shapes = [(1,) * (out.ndim - v.ndim) + tuple(v.shape) for v in (x, y)]
        binary(self.b, CUDA, f"f::{name}", x, y, out, (shapes[0], shapes[1], out.shape))
        return out

    add = partialmethod(_join, "add")
    sub = partialmethod(_join, "sub")
    mul = partialmethod(_join, "mul")
    div = partialmethod(_join, "div")

    def product(self, x: Array, y: Array, tx: bool = False, ty: bool = False) -> Array:
        """Emit the product of two matrices, each transposed first or not."""
        shape = x.shape[0 if not tx else 1], y.shape[1 if not ty else 0]
        out = self.b.tmp(shape, self.dtype)
        if self.on_cuda:
            gemm(self.b, x, y, out, tx, ty)
        else:
            self.b(np.matmul, x.T if tx else x, y.T if ty else y, out)
        return out

    def take(self, x: Array, rows: slice, columns: slice) -> Array:
        """Part of a matrix, contiguous on a device."""
        part = x[rows, columns]
        if not self.on_cuda or part.shape[1] == x.shape[1]:
            return part
        out = self.b.tmp(part.shape, x.dtype)
        strided_copy.move(self.b, out, x, of=strided_copy.layout_of(x)[rows, columns])
        return out

    def put(self, out: Array, rows: slice, columns: slice, value: Array) -> None:
        """Emit a write to part of a matrix."""
        if self.on_cuda:
            strided_copy.move(self.b, out, value, to=strided_copy.layout_of(out)[rows, columns])
        else:
            self.b(np.copyto, out[rows, columns], value)

    def total(self, x: Array, axes: Iterable[int]) -> Array:
        """Emit the sums along axes, which stay with size 1."""
        gone = tuple(axes)
        out = self.b.tmp(tuple(1 if i in gone else n for i, n in enumerate(x.shape)), self.dtype)
        if self.on_cuda:
            strided_copy.fold(self.b, x, out, x.shape, gone)
        else:
            self.b(np.add.reduce, x, gone, self.dtype, out, True)
        return out

    def mean(self, x: Array, axes: Iterable[int]) -> Array:
        """Emit the means along axes, which stay with size 1."""
        gone = tuple(axes)
        return self.mul(self.total(x, gone), self.number(1 / max(prod(x.shape[i] for i in gone), 1)))

    def sum_of(self, parts: Iterable[Array | None], shape: Sequence[int]) -> Array:
        """Emit the sum of what is there; zeros of a shape where nothing is."""
        terms = [part for part in parts if part is not None]
        if not terms:
            return self.zeros(shape)
        whole = terms[0]
        for part in terms[1:]:
            whole = self.add(whole, part)
        return whole if whole.shape == tuple(shape) else self.add(self.zeros(shape), whole)


def formulas(b: Binder, on_cuda: bool, like: Array) -> Formulas:
    """Arithmetic in the precision in which kernels compute with an array."""
    return Formulas(b, on_cuda, wide_dtype(np.dtype(like.dtype)))
