"""The dimensions of two tensors that numpy broadcasts, as few of them as there can be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from fluidnb_kernels.elementwise.broadcast import Shape

#: Dimensions that a kernel takes at most.
MOST = 6


class Dim(NamedTuple):
    """Merges adjacent dimensions that are alike.

    Args:
        size: how many elements it counts.
        in_x: whether X has it, and is not repeated along it.
        in_y: whether Y has it.
    """

    size: int
    in_x: bool
    in_y: bool


class Band(NamedTuple):
    """X as (outer, mid, inner), of which Y has mid.

    Args:
        outer: how often Y is repeated.
        mid: the elements of Y.
        inner: how many elements of X beside each other meet one of Y.
    """

    outer: int
    mid: int
    inner: int


def merged(x: Shape, y: Shape, out: Shape) -> list[Dim]:
    """The dimensions of two operands.

    Returns:
        Dimensions of which neighbours differ, none of size 1.

    Example:
        >>> merged((2, 3, 4, 5), (1, 3, 1, 1), (2, 3, 4, 5))
        [Dim(size=2, in_x=True, in_y=False), Dim(size=3, in_x=True, in_y=True), Dim(size=20, in_x=True, in_y=False)]
    """
    dims: list[Dim] = []
    for n, m, size in zip(x, y, out, strict=True):
        kind = n == size, m == size
        if size == 1:
            continue
        if dims and dims[-1][1:] == kind:
            dims[-1] = Dim(dims[-1].size * size, *kind)
        else:
            dims.append(Dim(size, *kind))
    return dims


def alike(dims: list[Dim]) -> bool:
    """Whether X and Y have one shape.

    Args:
        dims: what `merged` gives.

    Example:
        >>> alike(merged((2, 3), (2, 3), (2, 3))), alike(merged((2, 3), (1, 3), (2, 3)))
        (True, False)
    """
    return all(dim.in_x and dim.in_y for dim in dims)


def band(dims: list[Dim]) -> Band | None:
    """Y as a band of X, where it is one.

    Args:
        dims: what `merged` gives.

    Example:
        >>> band(merged((2, 3), (1, 3), (2, 3))), band(merged((2, 3), (1, 1), (2, 3)))
        (Band(outer=2, mid=3, inner=1), Band(outer=1, mid=1, inner=6))
    """
    places = [i for i, dim in enumerate(dims) if dim.in_y]
    if len(places) > 1 or not all(dim.in_x for dim in dims):
        return None
    if not places:
        return Band(1, 1, prod(dim.size for dim in dims))
    (at,) = places
    return Band(*(prod(dim.size for dim in part) for part in (dims[:at], dims[at : at + 1], dims[at + 1 :])))


def six(dims: list[Dim], order: Sequence[int], *tensors: Iterable[bool]) -> list[Any]:
    """Dimensions as the kernels take them.

    Args:
        order: their places in the order in which the kernel counts elements.
        tensors: for each tensor, which of ``dims`` it has.

    Returns:
        Six sizes, then the six steps of each tensor, as scalars.

    Example:
        >>> dims = merged((2, 1), (1, 3), (2, 3))
        >>> [int(n) for n in six(dims, [1, 0], (True, False))]
        [1, 1, 1, 1, 3, 2, 0, 0, 0, 0, 0, 1]
    """
    left = MOST - len(dims)
    rows = [[1] * left + [dims[i].size for i in order]]
    for tensor in tensors:
        has, steps, step = list(tensor), [0] * len(dims), 1
        for i in reversed(range(len(dims))):
            if has[i]:
                steps[i], step = step, step * dims[i].size
        rows.append([0] * left + [steps[i] for i in order])
    return [np.int64(n) for row in rows for n in row]
