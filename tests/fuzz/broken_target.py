"""A target whose cases crash, hang and raise, to see that the farm notices."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from typing import Any

from fluidnb.utils.escapes import visible
from tests.fuzz.oracle import RESULT, Outcome, judge


def case(dice: random.Random) -> dict[str, Any]:
    """The number of the seed, found by what it draws, and parts of which one matters."""
    first = dice.random()
    seed = next(n for n in range(100) if random.Random(n).random() == first)
    return {"seed": seed, "parts": [1, 7, 2, 3]}


def run(one: dict[str, Any]) -> Outcome:
    """Do what the seed says."""
    if one["seed"] == 1:
        os.abort()
    if one["seed"] == 2:
        time.sleep(600)
    if one["seed"] == 3 and 7 in one["parts"]:
        try:
            visible(3)  # type: ignore[arg-type]
        except TypeError as error:
            return judge(error)
    return Outcome(RESULT)


def smaller(one: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Cases with a part less."""
    for i in range(len(one["parts"])):
        yield one | {"parts": one["parts"][:i] + one["parts"][i + 1 :]}


def show(one: dict[str, Any]) -> str:
    """The case."""
    return repr(one)
