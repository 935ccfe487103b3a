"""Shared parts of operators that select training regions: sampling, box classes, targets as box deltas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fluidnb.op import Array, Context

#: How near two overlaps are that count as equal, as in Fluid.
NEAR = 1e-5


def reservoir(candidates: Array, most: int, generator: np.random.Generator | None) -> Array:
    """At most ``most`` of the candidates: a uniform sample, or the first ones without a generator.

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

    Source: Girshick et al., "Rich Feature Hierarchies for Accurate Object Detection" (2014).
    """
    one, half = boxes.dtype.type(1), boxes.dtype.type(0.5)
    size, goal = (v[:, 2:] - v[:, :2] + one for v in (boxes, targets))
    middle, aim = boxes[:, :2] + half * size, targets[:, :2] + half * goal
    return np.concatenate([(aim - middle) / size, np.log(goal / size)], 1)


def one_row_each(c: Context, slot: str, what: str) -> None:
    """Require, while running, that an input has a row for each sequence of another one."""
    if c.runtime:
        images, rows = len(c.lod(what)[-1]) - 1, c[slot].shape[0]
        c.require(
            rows == images, f"Input({slot}) of {c.definition.type} must have a row for each image.",
            expected=f"{images}, as {what} has sequences", received=rows,
        )  # fmt: skip


def same_sequences(c: Context, like: str, *slots: str) -> None:
    """Require that inputs have the sequences of another one, while running."""
    if not c.runtime:
        return
    for slot in slots:
        c.require(
            c.lod(slot)[0] == c.lod(like)[0], f"The images of {slot} and {like} must have as many rows.",
            expected=f"{list(c.lod(like)[0])}, as {like} has", received=list(c.lod(slot)[0]),
        )  # fmt: skip


def write_sampled(
    sampled: Callable[[Any, Any], Sequence[Sequence[Array]]], stream: Any, operands: tuple[Any, ...],
    outs: Sequence[Array | None],
) -> None:  # fmt: skip
    """Write the examples of every image, drawn from a stream or the first ones."""
    write_rows(outs, sampled(operands, None if stream is None else stream.rewind()))


def write_rows(outs: Sequence[Array | None], rows: Sequence[Sequence[Array]]) -> None:
    """Write for each output its rows of all images, one image after the other; outputs without a consumer are None."""
    for k, out in enumerate(outs):
        if out is not None and out.size:
            out[...] = np.concatenate([own[k].reshape(-1, *out.shape[1:]) for own in rows])
