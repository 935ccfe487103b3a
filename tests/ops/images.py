"""Convolution, pooling and normalisation written out plainly, to hold the operators against."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

Array = np.ndarray


def last(x: Array) -> Array:
    """[n, c, …] as [n, …, c]."""
    return np.ascontiguousarray(np.moveaxis(x, 1, -1))


def pairs(paddings: Sequence[int], rank: int) -> list[tuple[int, int]]:
    """Padding before and behind for each axis."""
    if len(paddings) == rank:
        return [(p, p) for p in paddings]
    return [(paddings[2 * i], paddings[2 * i + 1]) for i in range(rank)]


def conv(x: Array, w: Array, strides=None, paddings=None, dilations=None, groups: int = 1) -> Array:
    """The convolution of [n, c, …] with [f, c / groups, window…], window by window."""
    rank = x.ndim - 2
    strides, dilations = strides or [1] * rank, dilations or [1] * rank
    x = np.pad(x, [(0, 0), (0, 0), *pairs(paddings or [0] * rank, rank)])
    reach = [d * (k - 1) + 1 for d, k in zip(dilations, w.shape[2:], strict=True)]
    sizes = [(n - r) // s + 1 for n, r, s in zip(x.shape[2:], reach, strides, strict=True)]
    out = np.zeros((x.shape[0], w.shape[0], *sizes))
    filters, channels = w.shape[0] // groups, w.shape[1]
    for f in range(w.shape[0]):
        group = f // filters
        seen = x[:, group * channels : (group + 1) * channels]
        for spot in product(*map(range, sizes)):
            steps = zip(spot, strides, reach, dilations, strict=True)
            window = seen[(..., *(slice(i * s, i * s + r, d) for i, s, r, d in steps))]
            out[(slice(None), f, *spot)] = (window * w[f]).reshape(x.shape[0], -1).sum(1)
    return out


def transposed(x: Array, w: Array, strides=None, paddings=None, dilations=None, groups: int = 1, extra=None) -> Array:
    """The transposed convolution of [n, c, …] with [c, f / groups, window…]: each element adds a window."""
    rank = x.ndim - 2
    strides, dilations = strides or [1] * rank, dilations or [1] * rank
    reach = [d * (k - 1) + 1 for d, k in zip(dilations, w.shape[2:], strict=True)]
    more = extra or [0] * rank
    sizes = [(n - 1) * s + r + e for n, s, r, e in zip(x.shape[2:], strides, reach, more, strict=True)]
    filters, channels = w.shape[1], x.shape[1] // groups
    out = np.zeros((x.shape[0], filters * groups, *sizes))
    for c in range(x.shape[1]):
        group = c // channels
        for spot in product(*map(range, x.shape[2:])):
            steps = zip(spot, strides, reach, dilations, strict=True)
            window = tuple(slice(i * s, i * s + r, d) for i, s, r, d in steps)
            value = x[(slice(None), c, *spot)].reshape(-1, *[1] * (rank + 1))
            out[(slice(None), slice(group * filters, (group + 1) * filters), *window)] += value * w[c]
    cut = pairs(paddings or [0] * rank, rank)
    return out[(..., *(slice(a, n - b) for (a, b), n in zip(cut, sizes, strict=True)))]


def windows(sizes, ksize, strides, paddings, ceil: bool) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...], int]]:
    """Each window: its place, its part of the image, and its size without what hangs over the padding behind."""
    counts = []
    for n, k, s, (a, b) in zip(sizes, ksize, strides, paddings, strict=True):
        counts.append((n + a + b - k + (s - 1 if ceil else 0)) // s + 1)
    for spot in product(*map(range, counts)):
        parts, full = [], 1
        for i, n, k, s, (a, _) in zip(spot, sizes, ksize, strides, paddings, strict=True):
            start = i * s - a
            parts.append(slice(max(start, 0), min(start + k, n)))
            full *= min(start + k, n + a) - start
        yield spot, tuple(parts), full


def pool(x: Array, kind: str, ksize, strides=None, paddings=None, ceil_mode=False, exclusive=True) -> Array:
    """The pooling of [n, c, …], window by window."""
    rank = x.ndim - 2
    found = {}
    for spot, part, full in windows(
        x.shape[2:], ksize, strides or [1] * rank, pairs(paddings or [0] * rank, rank), ceil_mode
    ):
        window = x[(..., *part)].reshape(*x.shape[:2], -1)
        found[spot] = window.max(-1) if kind == "max" else window.sum(-1) / (window.shape[-1] if exclusive else full)
    out = np.zeros((*x.shape[:2], *(max(axis) + 1 for axis in zip(*found, strict=True))))
    for spot, value in found.items():
        out[(..., *spot)] = value
    return out


def adaptive_mean(x: Array, counts: Sequence[int]) -> Array:
    """The means of windows that share out the image."""
    out = np.zeros((*x.shape[:2], *counts))
    for spot in product(*map(range, counts)):
        part = tuple(
            slice(int(np.floor(i * n / k)), int(np.ceil((i + 1) * n / k)))
            for i, n, k in zip(spot, x.shape[2:], counts, strict=True)
        )
        out[(..., *spot)] = x[(..., *part)].reshape(*x.shape[:2], -1).mean(-1)
    return out


def normal(x: Array, axes: tuple[int, ...], epsilon: float = 1e-5) -> Array:
    """x less its mean, over its standard deviation, along axes."""
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + np.float32(epsilon))
