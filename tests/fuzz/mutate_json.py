"""Random changes of programs of Paddle 3, which are JSON."""

from __future__ import annotations

import copy
import random
from typing import Any

#: What a value of a program of Paddle 3 may be instead.
VALUES: list[Any] = [
    None, True, 0, -1, 1 << 31, 1 << 40, 1 << 70, 1e308, float("nan"), "", "x", "0.t_f32", "0.t_i64", "1.relu", "1.if",
    "1.while", "0.combine", "p", "\x00", "a/../../b", [], {}, [1, 2], {"#": "0.t_vec", "D": []},
]  # fmt: skip
#: What a number of a model may be instead.
NUMBERS = (-(2**63), -(2**31), -2, -1, 0, 1, 2, 3, 7, 11, 2**31 - 1, 2**31, 2**40, 2**63 - 1)


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a tree of JSON."""
    keys = list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    return [place for key in keys for place in ((tree, key), *places(tree[key]))]


def changed(program: Any, dice: random.Random, changes: int) -> Any:
    """A program of Paddle 3 with random changes."""
    program = copy.deepcopy(program)
    for _ in range(changes):
        where, key = dice.choice(places(program))
        how = dice.random()
        if how < 0.3 and isinstance(where[key], int | float):
            where[key] = dice.choice(NUMBERS)
        elif how < 0.6:
            where[key] = dice.choice(VALUES)
        elif how < 0.7:
            del where[key]
        elif how < 0.9:
            other, k = dice.choice(places(program))
            where[key] = copy.deepcopy(other[k])
        elif isinstance(where, list):
            where.insert(key, copy.deepcopy(where[key]))
    return program
