"""Normalisation by moments along the axes of a view, and its gradient, for both places."""

from dataclasses import dataclass
from math import prod

import numpy as np

from fluidnb.op import Array, Binder
from fluidnb_kernels.emit import reading, writing, written
from fluidnb_kernels.norm.launch import Lines, inverses, vector
from fluidnb_kernels.sliding import channel_first

Axes = tuple[int, ...]

#: The largest epsilon of batch_norm and layer_norm: 0.001 as an attribute has it, which is a float32 and a bit more.
LARGEST_EPSILON = float(np.float32(0.001))


def kept(shape: tuple[int, ...], axes: Axes) -> tuple[int, ...]:
    """A shape with 1 along some axes."""
    return tuple(1 if i in axes else n for i, n in enumerate(shape))


def count(shape: tuple[int, ...], axes: Axes) -> int:
    """The number of elements along some axes."""
    return prod(shape[i] for i in axes)


@dataclass(frozen=True, slots=True)
class View:
    """The groups of elements that an operator normalises."""

    shape: tuple[int, ...]  # of X and Y
    axes: Axes  # along which moments are taken
    shared: Axes  # along which a factor serves
    fixed: bool = False  # whether moments are constants
    layout: str = "NCHW"  # of the images

    @property
    def moments(self) -> tuple[int, ...]:
        """The shape of moments."""
        return kept(self.shape, self.axes)

    @property
    def factors(self) -> tuple[int, ...]:
        """The shape of Scale and Bias."""
        return kept(self.shape, self.shared)

    def image(self, b: Binder, slot: str) -> Array:
        """An input of the shape of X."""
        return reading(b, channel_first(b[slot], self.layout), self.shape)

    def moment(self, b: Binder, slot: str) -> Array:
        """Moments: an output, or a workspace where it has no consumer."""
        return b.tmp(self.moments, b["X"].dtype) if b[slot] is None else b[slot].reshape(self.moments)

    def factor(self, b: Binder, slot: str) -> Array:
        """Scale, Bias or the gradient of one; None where it is left out."""
        return None if b[slot] is None else b[slot].reshape(self.factors)


def normalise(b: Binder, v: View, lines: Lines, mean: str, spread: str, inverted: bool = False) -> None:
    """Emit Y from X, Scale and Bias; ``lines``: these groups for a GPU; ``inverted``: ``spread`` is 1 / deviation."""
    if b.on_cuda:
        return lines.forward(b, mean, spread, inverted)
    x, means, saved, out = v.image(b, "X"), v.moment(b, mean), v.moment(b, spread), channel_first(b["Y"], v.layout)
    centred, other = b.like(x), b.tmp(saved.shape, saved.dtype)
    variance, inverse = (other, saved) if inverted else (saved, other)
    emit_moments(b, x, v.axes, means, variance, centred)
    emit_inverse(b, variance, b.attr("epsilon"), inverse)
    y = writing(b, out, v.shape)
    emit_affine(b, centred, inverse, v.factor(b, "Scale"), v.factor(b, "Bias"), y)
    return written(b, out, y)


def normalise_grad(b: Binder, v: View, lines: Lines, mean: str, spread: str, inverted: bool = False) -> None:
    """Emit the gradients of `normalise`."""
    epsilon = b.attr("epsilon", 1e-5)
    if b.on_cuda:
        means, saved = vector(b, mean, b["X"]), vector(b, spread, b["X"])
        return lines.backward(b, means, saved if inverted else inverse_of(b, saved, epsilon))
    x, saved, out = v.image(b, "X"), b[spread].reshape(v.moments), b["X@GRAD"]
    centred = b.like(x)
    b(np.subtract, x, b[mean].reshape(v.moments), out=centred)
    inverse = saved if inverted else inverse_of(b, saved, epsilon)
    out = None if out is None else channel_first(out, v.layout)
    dx = None if out is None else writing(b, out, v.shape)
    emit_norm_grad(
        b, centred, inverse, v.factor(b, "Scale"), v.image(b, "Y@GRAD"), v.axes, v.shared, dx,
        v.factor(b, "Scale@GRAD"), v.factor(b, "Bias@GRAD"),
    )  # fmt: skip
    return None if dx is None else written(b, out, dx)


def inverse_of(b: Binder, variance: Array, epsilon: float) -> Array:
    """Emit 1 / sqrt(variance + epsilon) into a workspace."""
    if b.on_cuda:
        return inverses(b, variance, epsilon)
    out = b.like(variance)
    emit_inverse(b, variance, epsilon, out)
    return out


def emit_mean(b: Binder, x: Array, axes: Axes, out: Array) -> None:
    """Emit a mean along axes, which are kept with size 1."""
    total = b.tmp(out.shape, out.dtype)
    b(np.add.reduce, x, axes, out.dtype, total, True)
    b(np.multiply, total, b.const(1 / max(count(x.shape, axes), 1), out.dtype), out=out)


def emit_moments(b: Binder, x: Array, axes: Axes, mean: Array, variance: Array, centred: Array) -> None:
    """Emit the mean and the (biased) variance along axes, and the values less their mean."""
    squares = b.like(centred)
    emit_mean(b, x, axes, mean)
    b(np.subtract, x, mean, out=centred)
    b(np.multiply, centred, centred, out=squares)
    emit_mean(b, squares, axes, variance)


def emit_inverse(b: Binder, variance: Array, epsilon: float, out: Array) -> None:
    """Emit 1 / sqrt(variance + epsilon)."""
    t, u = b.tmp(out.shape, out.dtype), b.tmp(out.shape, out.dtype)
    b(np.add, variance, b.const(epsilon, out.dtype), out=t)
    b(np.sqrt, t, out=u)
    b(np.reciprocal, u, out=out)


def emit_affine(b: Binder, centred: Array, inverse: Array, scale: Array | None, bias: Array | None, y: Array) -> None:
    """Emit y = centred · inverse · scale + bias, without a factor or summand that is None.

    Where y has its dtype, the steps are made in y: what no step touches twice may leave the cache.
    """
    steps: list[tuple[np.ufunc, Array]] = [(np.multiply, inverse)]
    if scale is not None and scale.shape == inverse.shape:
        factor = b.tmp(inverse.shape, inverse.dtype)
        b(np.multiply, inverse, scale, out=factor)
        steps = [(np.multiply, factor)]
    elif scale is not None:
        steps.append((np.multiply, scale))
    if bias is not None:
        steps.append((np.add, bias))
    value, work = centred, y if y.dtype == centred.dtype else centred
    for k, (function, operand) in enumerate(steps):
        target = y if k == len(steps) - 1 else work
        b(function, value, operand, out=target)
        value = target


def emit_norm_grad(
    b: Binder, centred: Array, inverse: Array, scale: Array | None, g: Array, axes: Axes, shared: Axes,
    dx: Array | None, dscale: Array | None, dbias: Array | None,
) -> None:  # fmt: skip
    """Emit the gradients of a normalisation with its own moments; outputs without a consumer are None.

    With x̂ = centred · inverse: dscale = Σ g x̂ and dbias = Σ g along ``shared``; with h = g · scale,
    dx = inverse · (h - mean(h) - x̂ · mean(h x̂)), means along ``axes``.
    """
    b(np.multiply, centred, inverse, out=centred)
    products = b.like(centred)
    if dscale is not None or dx is not None and axes == shared:
        dscale = b.tmp(kept(g.shape, shared), centred.dtype) if dscale is None else dscale
        b(np.multiply, centred, g, out=products)
        b(np.add.reduce, products, shared, dscale.dtype, dscale, True)
    if dbias is not None or dx is not None and axes == shared:
        dbias = b.tmp(kept(g.shape, shared), centred.dtype) if dbias is None else dbias
        b(np.add.reduce, g, shared, dbias.dtype, dbias, True)
    if dx is None:
        return
    small = kept(g.shape, axes)
    m1, m2 = b.tmp(small, centred.dtype), b.tmp(small, centred.dtype)
    factor = inverse
    if axes == shared:  # the sums that are there already serve; the scale comes in at the end
        part = b.const(1 / max(count(g.shape, axes), 1), centred.dtype)
        b(np.multiply, dbias, part, out=m1)
        b(np.multiply, dscale, part, out=m2)
        if scale is not None:
            factor = b.tmp(small, centred.dtype)
            b(np.multiply, inverse, scale, out=factor)
    else:
        if scale is not None:
            h = b.like(centred)
            b(np.multiply, g, scale, out=h)
            g = h
        emit_mean(b, g, axes, m1)
        b(np.multiply, g, centred, out=products)
        emit_mean(b, products, axes, m2)
    b(np.multiply, centred, m2, out=products)
    b(np.subtract, g, products, out=centred)
    b(np.subtract, centred, m1, out=products)
    b(np.multiply, products, factor, out=dx)
