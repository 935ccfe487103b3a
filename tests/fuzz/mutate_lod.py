"""Mutations of the sequences of a fed tensor."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from fluidnb.values import LoDTensor


def mutated_lod(given: Any, dice: random.Random) -> tuple[str, Any]:
    """Other sequences for the same rows; offsets may end elsewhere, or be no offsets at all.

    Args:
        given: an array or LoDTensor.
        dice: where chance comes from.

    Returns:
        What was done, in words, and what to feed.

    Raises:
        FluidError: the tensor refuses the offsets at once.
    """
    array = np.asarray(given)
    n = len(array) if array.ndim else 1
    old = [list(level) for level in given.lod_] if isinstance(given, LoDTensor) else []
    level = old[-1] if old else [0, n]
    cut = dice.randrange(n + 1)
    ways: dict[str, Callable[[], Any]] = {
        "none": lambda: [],
        "one": lambda: [[0, n]],
        "each row": lambda: [list(range(n + 1))],
        "two parts": lambda: [[0, cut, n]],
        "an empty one first": lambda: [[0, *level]],
        "an empty one last": lambda: [[*level, n]],
        "empty ones": lambda: [sorted([*level, *level])[1:-1] if len(level) > 1 else level],
        "two levels": lambda: [[0, len(level) - 1], level],
        "two levels, each by itself": lambda: [list(range(len(level))), level],
        "two levels with an empty group": lambda: [[0, 0, len(level) - 1], level],
        "three levels": lambda: [[0, 1], [0, len(level) - 1], level],
        "the upper level only": lambda: [old[0]] if old else [],
        "one sequence less": lambda: [[*level[:-2], n] if len(level) > 2 else level],
        "too short": lambda: [[*level[:-1], max(n - 1, 0)]],
        "too long": lambda: [[*level[:-1], n + 1]],
        "not from zero": lambda: [[1, *level[1:]]],
        "down": lambda: [[0, n, max(n - 1, 0), n]],
        "no offsets": lambda: [[]],
        "only zero": lambda: [[0]],
        "levels that do not meet": lambda: [[0, 9], level],
        "no rows": lambda: [[0, 0]],
    }
    way = dice.choice(list(ways))
    if way == "no rows":
        array = array[:0] if array.ndim else array
    tensor = LoDTensor()
    tensor.set(array)
    before = dice.random() < 0.5  # offsets of other rows, which the tensor could not compare with
    other = LoDTensor() if before else tensor
    other.set_lod(ways[way]())
    if before:
        other.set(array)
    return way, other
