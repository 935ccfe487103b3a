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
    """Merges adjacent dimensions that are alike."""

    size: int  # how many elements it counts
    in_x: bool  # whether X has it, and is not repeated along it
    in_y: bool  # whether Y has it


class Band(NamedTuple):
    """X as (outer, mid, inner), of which Y has mid."""

    outer: int  # how often Y is repeated
    mid: int  # the elements of Y
    inner: int  # how many elements of X beside each other meet one of Y


def merged(x: Shape, y: Shape, out: Shape) -> list[Dim]:
    """The dimensions of two operands, of which neighbours differ and none has size 1."""
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
    """Whether X and Y have one shape."""
    return all(dim.in_x and dim.in_y for dim in dims)


def band(dims: list[Dim]) -> Band | None:
    """Y as a band of X, where it is one."""
    places = [i for i, dim in enumerate(dims) if dim.in_y]
    if len(places) > 1 or not all(dim.in_x for dim in dims):
        return None
    if not places:
        return Band(1, 1, prod(dim.size for dim in dims))
    (at,) = places
    return Band(*(prod(dim.size for dim in part) for part in (dims[:at], dims[at : at + 1], dims[at + 1 :])))


def six(dims: list[Dim], order: Sequence[int], *tensors: Iterable[bool]) -> list[Any]:
    """Dimensions as the kernels take them: six sizes, then the six steps of each tensor, as scalars."""
    left = MOST - len(dims)
    rows = [[1] * left + [dims[i].size for i in order]]
    for tensor in tensors:
        has, steps, step = list(tensor), [0] * len(dims), 1
        for i in reversed(range(len(dims))):
            if has[i]:
                steps[i], step = step, step * dims[i].size
        rows.append([0] * left + [steps[i] for i in order])
    return [np.int64(n) for row in rows for n in row]
