"""The calls of a pooling: element by element of all windows at once, or window by window."""

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np

from fluidnb.op import Array, Binder
from fluidnb.op.masked_copy import masked_copy
from fluidnb_kernels.pool.rules import Bins, adaptive_bins, clipped_bins, divisors, lowest, pool_axes, shares_out
from fluidnb_kernels.sliding import Axis, image, innermost, padded


def in_turn(axes: Sequence[Axis]) -> bool:
    """Whether it is cheaper to iterate over the windows than over the elements of one."""
    return prod(a.window for a in axes) > 4 * prod(a.out for a in axes)


def axes_and_bins(b: Binder, x: Array, largest: bool) -> tuple[Sequence[Axis], list[Bins]]:
    """The windows along each axis, and where they are pooled one by one their elements within the image."""
    axes = pool_axes(b, x.shape[2:])
    if shares_out(b):
        return axes, [adaptive_bins(axis.size, axis.out) for axis in axes]
    inside = largest or b.attr("exclusive", True) or b.attr("global_pooling", False)
    return axes, [clipped_bins(axis) for axis in axes] if inside and in_turn(axes) else []


# ---- all windows at once


def emit_pool(b: Binder, x: Array, out: Array, axes: Sequence[Axis], largest: bool) -> None:
    """Emit a pooling, axis after axis."""
    inner, combine = innermost(x), np.maximum if largest else np.add
    whole, inside = padded(b, x, axes, lowest(x.dtype) if largest else 0, inner)
    if inside is not None:
        b(np.copyto, inside, x)
    steps = [i for i, a in enumerate(axes) if a.window > 1 or a.stride > 1 or a.reach != a.out]
    for i in steps:
        shape = (*whole.shape[: i + 2], axes[i].out, *whole.shape[i + 3 :])
        target = out if i == steps[-1] else image(b, shape, x.dtype, inner)
        parts = [whole[(slice(None),) * (i + 2) + (axes[i].tap(k),)] for k in range(axes[i].window)]
        if len(parts) == 1:
            b(np.copyto, target, parts[0])
        else:
            b(combine, parts[0], parts[1], out=target)
        for part in parts[2:]:
            b(combine, target, part, out=target)
        whole = target
    if not steps:
        b(np.copyto, out, whole)
    if not largest:
        b(np.divide, out, _divisor(b, axes, x.dtype), out=out)


def _divisor(b: Binder, axes: Sequence[Axis], dtype: Any) -> Array:
    counts = divisors(b, axes, dtype)
    return b.const(float(counts.flat[0]), dtype) if (counts == counts.flat[0]).all() else counts


def _taps(whole: Array, axes: Sequence[Axis]) -> Iterator[Array]:
    """The first elements of all windows, the second elements, …"""
    for taps in product(*(range(a.window) for a in axes)):
        yield whole[(..., *(a.tap(i) for a, i in zip(axes, taps, strict=True)))]


def emit_pool_grad(b: Binder, x: Array, out: Array, g: Array, dx: Array, axes: Sequence[Axis], largest: bool) -> None:
    """Emit the gradient of a pooling; the first of several largest elements takes it all."""
    inner = innermost(x)
    total, inside = padded(b, dx, axes, None, inner)
    apart = all(a.stride >= a.window for a in axes)  # each element is in one window at most
    if not (apart and all(a.stride == a.window and a.reach == a.out * a.stride for a in axes)):
        b(np.copyto, total, b.const(0, x.dtype))
    spare = None if apart else image(b, g.shape, x.dtype, inner)
    shares = _mean_shares(b, g, axes, inner) if not largest else _first_shares(b, x, out, g, axes, inner)
    for target, emit in zip(_taps(total, axes), shares, strict=True):
        if apart:
            emit(target)
        else:
            emit(spare)
            b(np.add, target, spare, out=target)
    if inside is not None:
        b(np.copyto, dx, inside)


def emit_taken(b: Binder, x: Array, y: Array, out: Array, axes: Sequence[Axis]) -> None:
    """Emit for each window the element of y at the first maximum of x."""
    inner = innermost(x)
    (xs, room), (ys, other) = padded(b, x, axes, lowest(x.dtype), inner), padded(b, y, axes, 0, inner)
    for target, given in ((room, x), (other, y)):
        if target is not None:
            b(np.copyto, target, given)
    best, hit = image(b, out.shape, x.dtype, inner), image(b, out.shape, bool, inner)
    for k, (element, value) in enumerate(zip(_taps(xs, axes), _taps(ys, axes), strict=True)):
        if k:
            b(np.greater, element, best, out=hit)
            b(masked_copy, best, element, hit)
            b(masked_copy, out, value, hit)
        else:
            b(np.copyto, best, element)
            b(np.copyto, out, value)


def _mean_shares(b: Binder, g: Array, axes: Sequence[Axis], inner: int | None) -> Iterator[Any]:
    """For each element of a window, what emits its share of the gradient into an array."""
    share = image(b, g.shape, g.dtype, inner)
    parts = np.float32(1) / divisors(b, axes, np.float32)  # of this precision in Paddle, whatever the dtype of g
    same = (parts == parts.flat[0]).all()
    b(np.multiply, g, b.const(float(parts.flat[0]), g.dtype) if same else parts.astype(g.dtype), out=share)
    for _ in range(prod(a.window for a in axes)):
        yield lambda target: b(np.copyto, target, share)


def _first_shares(b: Binder, x: Array, out: Array, g: Array, axes: Sequence[Axis], inner: int | None) -> Iterator[Any]:
    """The same for the largest element: an element takes the gradient that no element before it has taken."""
    whole, inside = padded(b, x, axes, lowest(x.dtype), inner)
    if inside is not None:
        b(np.copyto, inside, x)
    hit, free = image(b, g.shape, bool, inner), image(b, g.shape, bool, inner)
    elements = list(_taps(whole, axes))
    for k, element in enumerate(elements):
        # A copy for a window of one, what is left for the last: some element of the window was the largest.
        if len(elements) == 1:
            yield lambda target: b(np.copyto, target, g)
            return
        if k == len(elements) - 1 and inside is None:
            yield lambda target: b(np.multiply, g, free, out=target)
            return
        b(np.equal, element, out, out=hit)
        if k == 0:
            b(np.logical_not, hit, out=free)
        else:
            b(np.logical_and, hit, free, out=hit)
            b(np.greater, free, hit, out=free)
        yield lambda target: b(np.multiply, g, hit, out=target)


# ---- one window, which is the whole image


def takes_all(x: Array, bins: Sequence[Bins]) -> bool:
    """Whether the mean of each whole image is a product of matrices: five times as fast as numpy's sums."""
    whole = [(one.starts, one.ends) for one in bins] == [((0,), (size,)) for size in x.shape[2:]]
    return whole and x.dtype.char in "fd" and x.size > 0 and (x.flags.c_contiguous or innermost(x) is not None)


def emit_mean(b: Binder, x: Array, out: Array) -> None:
    """Emit the mean of each whole image."""
    n, c, *sizes = x.shape
    size, inner = prod(sizes), innermost(x)
    if inner == 1:
        sums, ones = b.tmp((n, 1, c), x.dtype), np.ones((1, size), x.dtype)
        b(np.matmul, ones, np.moveaxis(x, 1, -1).reshape(n, size, c), out=sums)
        sums = sums.reshape(n, c, *[1] * len(sizes))
    elif inner == 0:
        sums, ones = b.tmp((c, 1, n), x.dtype), np.ones((1, size), x.dtype)
        b(np.matmul, ones, np.moveaxis(x, 0, -1).reshape(c, size, n), out=sums)
        sums = np.moveaxis(sums, -1, 0)[(..., *[None] * (len(sizes) - 1))]
    else:
        sums, ones = b.tmp((n, c, *[1] * len(sizes)), x.dtype), np.ones((size, 1), x.dtype)
        b(np.matmul, x.reshape(n * c, size), ones, out=sums.reshape(n * c, 1))
    b(np.divide, sums, b.const(size, x.dtype), out=out)


def emit_mean_grad(b: Binder, g: Array, dx: Array) -> None:
    """Emit its gradient."""
    share = b.like(g)
    part = np.float32(1) / np.float32(prod(dx.shape[2:]))  # of this precision in Paddle, whatever the dtype
    b(np.multiply, g, b.const(float(part), g.dtype), out=share)
    b(np.copyto, dx, share)


# ---- window by window


def pool_bins(x: Array, out: Array, bins: Sequence[Bins], largest: bool) -> None:
    """Pool windows of any size along each axis."""
    around = tuple(range(2, x.ndim))
    for spot, part in _windows(x, bins):
        if largest:
            np.maximum.reduce(part, around, out=out[(..., *spot)], initial=lowest(x.dtype))
        else:
            np.divide(np.add.reduce(part, around), prod(part.shape[2:]), out[(..., *spot)])


def pool_bins_grad(x: Array, out: Array, g: Array, dx: Array, bins: Sequence[Bins], largest: bool) -> None:
    """The gradient of `pool_bins`."""
    dx[...] = 0
    n, c = np.indices(x.shape[:2], sparse=True)
    for (spot, part), (_, target) in zip(_windows(x, bins), _windows(dx, bins), strict=True):
        share = g[(..., *spot)]
        if part.size == 0:
            continue
        if largest:
            first = part.reshape(*x.shape[:2], -1).argmax(-1)
            target[(n, c, *np.unravel_index(first, part.shape[2:]))] += share
        else:
            part_of_one = np.float32(1) / np.float32(prod(part.shape[2:]))
            target += (share * share.dtype.type(part_of_one)).reshape(*share.shape, *[1] * len(bins))


def pool_bins_taken(x: Array, y: Array, out: Array, bins: Sequence[Bins]) -> None:
    """For each window the element of y at the first maximum of x."""
    for (spot, part), (_, values) in zip(_windows(x, bins), _windows(y, bins), strict=True):
        if part.size:
            first = part.reshape(*x.shape[:2], -1).argmax(-1)[..., None]
            out[(..., *spot)] = np.take_along_axis(values.reshape(*x.shape[:2], -1), first, -1)[..., 0]
        else:
            out[(..., *spot)] = 0


def _windows(x: Array, bins: Sequence[Bins]) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Each window's place in the output, and its elements."""
    for spot in product(*(range(len(b.starts)) for b in bins)):
        yield spot, x[(..., *(b.slices()[i] for b, i in zip(bins, spot, strict=True)))]
