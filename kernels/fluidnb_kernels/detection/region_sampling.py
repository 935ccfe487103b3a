"""Shared parts of operators that select training regions: sampling, box classes, targets as box deltas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidnb.op import Context

Array = Any

#: How near two overlaps are that count as equal, as in Fluid.
NEAR = 1e-5


def reservoir(candidates: Array, most: int, generator: np.random.Generator | None) -> Array:
    """At most ``most`` of the candidates: a uniform sample, or the first ones without a generator.

    Args:
        candidates: numbers [n].
        generator: random numbers, or None.

    Returns:
        [min(n, most)].

    Example:
        >>> reservoir(np.array([5, 6, 7]), 2, None)
        array([5, 6])

    Source: Vitter, "Random sampling with a reservoir" (1985).
    """
    most = max(most, 0)
    if len(candidates) <= most:
        return candidates
    chosen = candidates[:most].copy()
    if generator is not None:
        draws = generator.random(len(candidates) - most)
        for i, draw in enumerate(draws, most):
            spot = int(draw * (i + 1))
            if spot < most:
                chosen[spot] = candidates[i]
    return chosen


def deltas(boxes: Array, targets: Array) -> Array:
    """Box regression targets: offsets of centers over the size of a box, and logarithms of the ratio of sizes.

    Args:
        boxes: [n, 4]: left, top, right, bottom, which are pixels.
        targets: [n, 4]: what each box should become.

    Returns:
        [n, 4].

    Example:
        >>> deltas(np.array([[0.0, 0.0, 3.0, 3.0]]), np.array([[2.0, 0.0, 5.0, 3.0]]))
        array([[0.5, 0. , 0. , 0. ]])

    Source: Girshick et al., "Rich Feature Hierarchies for Accurate Object Detection" (2014).
    """
    one, half = boxes.dtype.type(1), boxes.dtype.type(0.5)
    size, goal = (v[:, 2:] - v[:, :2] + one for v in (boxes, targets))
    middle, aim = boxes[:, :2] + half * size, targets[:, :2] + half * goal
    return np.concatenate([(aim - middle) / size, np.log(goal / size)], 1)


def one_row_each(c: Context, slot: str, what: str) -> None:
    """Require that an input describes each image by height, width and scale.

    Raises:
        RuleError: it has another shape, or another number of rows.
    """
    info, name = c[slot].shape, c.definition.type
    c.require(
        len(info) == 2 and info[1] in (3, -1), f"Input({slot}) of {name} must describe images.",
        expected="[images, 3]: height, width, scale", received=list(info),
    )  # fmt: skip
    if c.runtime:
        images = len(c.lod(what)[-1]) - 1
        c.require(
            info[0] == images, f"Input({slot}) of {name} must have a row for each image.",
            expected=f"{images}, as {what} has sequences", received=info[0],
        )  # fmt: skip


def same_sequences(c: Context, like: str, *slots: str) -> None:
    """Require that inputs have the sequences of another one, while running.

    Raises:
        RuleError: the sequences differ.
    """
    if not c.runtime:
        return
    for slot in slots:
        c.require(
            c.lod(slot)[-1] == c.lod(like)[-1], f"The images of {slot} and {like} must have as many rows.",
            expected=f"{list(c.lod(like)[-1])}, as {like} has", received=list(c.lod(slot)[-1]),
        )  # fmt: skip


def parts(level: Sequence[int]) -> list[slice]:
    """The rows of each sequence.

    Example:
        >>> parts((0, 2, 5))
        [slice(0, 2, None), slice(2, 5, None)]
    """
    return [slice(i, j) for i, j in zip(level[:-1], level[1:], strict=True)]


def write_rows(outs: Sequence[Array | None], rows: Sequence[Sequence[Array]]) -> None:
    """Write for each output its rows of all images, one image after the other.

    Args:
        outs: outputs, written; None for one that is not wanted.
        rows: for each image an array for each output.
    """
    for k, out in enumerate(outs):
        if out is not None and out.size:
            out[...] = np.concatenate([own[k].reshape(-1, *out.shape[1:]) for own in rows])
