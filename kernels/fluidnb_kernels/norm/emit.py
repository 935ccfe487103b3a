"""Moments, normalisation and its gradient, along any axes of a view."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Binder

Array = Any
Axes = tuple[int, ...]

#: The largest epsilon of batch_norm and layer_norm: 0.001 as an attribute has it, which is a float32 and a bit more.
LARGEST_EPSILON = float(np.float32(0.001))


def kept(shape: tuple[int, ...], axes: Axes) -> tuple[int, ...]:
    """A shape with 1 along some axes.

    Example:
        >>> kept((2, 3, 4), (0, 2))
        (1, 3, 1)
    """
    return tuple(1 if i in axes else n for i, n in enumerate(shape))


def count(shape: tuple[int, ...], axes: Axes) -> int:
    """How many elements there are along some axes.

    Example:
        >>> count((2, 3, 4), (0, 2))
        8
    """
    n = 1
    for i in axes:
        n *= shape[i]
    return n


def emit_mean(b: Binder, x: Array, axes: Axes, out: Array) -> None:
    """Emit a mean along axes, which stay with size 1.

    Args:
        out: of the shape `kept`, written.
    """
    total = b.tmp(out.shape, out.dtype)
    b(np.add.reduce, x, axes, out.dtype, total, True)
    b(np.multiply, total, b.const(1 / max(count(x.shape, axes), 1), out.dtype), out=out)


def emit_moments(b: Binder, x: Array, axes: Axes, mean: Array, variance: Array, centred: Array) -> None:
    """Emit the mean and the (biased) variance along axes, and the values less their mean.

    Args:
        mean: of the shape `kept`, written.
    """
    squares = b.like(centred)
    emit_mean(b, x, axes, mean)
    b(np.subtract, x, mean, out=centred)
    b(np.multiply, centred, centred, out=squares)
    emit_mean(b, squares, axes, variance)


def emit_inverse(b: Binder, variance: Array, epsilon: float, out: Array) -> None:
    """Emit 1 / sqrt(variance + epsilon).

    Args:
        out: of the same shape, written.
    """
    t, u = b.tmp(out.shape, out.dtype), b.tmp(out.shape, out.dtype)
    b(np.add, variance, b.const(epsilon, out.dtype), out=t)
    b(np.sqrt, t, out=u)
    b(np.reciprocal, u, out=out)


def emit_affine(b: Binder, centred: Array, inverse: Array, scale: Array | None, bias: Array | None, y: Array) -> None:
    """Emit y = centred · inverse · scale + bias.

    Args:
        centred: values less their mean; not kept.
        scale: factors, or None for 1.
        bias: summands, or None for 0.
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
    for k, (function, operand) in enumerate(steps):
        target = y if k == len(steps) - 1 else centred
        b(function, centred, operand, out=target)


def emit_norm_grad(
    b: Binder,
    centred: Array,
    inverse: Array,
    scale: Array | None,
    g: Array,
    axes: Axes,
    shared: Axes,
    dx: Array | None,
    dscale: Array | None,
    dbias: Array | None,
) -> None:
    """Emit the gradients of a normalisation with its own moments.

    With x̂ = centred · inverse: dscale = Σ g x̂ and dbias = Σ g along ``shared``; with h = g · scale,
    dx = inverse · (h - mean(h) - x̂ · mean(h x̂)), means along ``axes``.

    Args:
        centred: values less their mean; becomes x̂.
        scale: factors with size 1 along ``shared``, or None.
        dx: written, or None.
        dscale: written, or None; has size 1 along ``shared``.
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
