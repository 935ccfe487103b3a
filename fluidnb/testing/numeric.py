"""Gradients by central differences, in float64: along random directions, away from kinks."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluidnb.testing.one_op import OneOp

Array = np.ndarray[Any, Any]
#: Inputs of at most this many elements are moved element by element, larger ones along random directions.
EVERY_ELEMENT = 64
DIRECTIONS = 8
#: How often a direction is drawn again when there is a kink on the way.
PATIENCE = 20


@dataclass(frozen=True, slots=True)
class Slope:
    """The slope of the loss along one direction."""

    direction: Array  # an array of the input's shape
    value: float  # the slope by central differences


class Loss:
    """The sum of outputs, each times its cotangent, as a function of one input."""

    def __init__(self, one: OneOp, name: str, cotangents: Mapping[str, Any]) -> None:
        self._one, self._program = one, one.program()
        self._outputs = {grad.removesuffix("@GRAD"): g for grad, g in cotangents.items()}
        self.array = one.array(name)

    def along(self, direction: Array, step: float) -> float:
        """Its value a step along a direction away."""
        kept = self.array.copy()
        self.array += step * direction
        results = self._one.run(self._program, list(self._outputs))
        self.array[...] = kept
        return float(sum((np.asarray(results[n]) * g).sum() for n, g in self._outputs.items()))


def slopes(one: OneOp, name: str, cotangents: Mapping[str, Any], delta: float) -> Iterator[Slope]:
    """Slopes of the loss in an input.

    Where the slopes to both sides differ by more than the curvature explains, there is a kink (an argument of relu near
    0, a tie of two maxima): that direction is left out, and a random one is drawn again.

    Yields:
        A slope for each element of a small input, else for some random directions.
    """
    loss = Loss(one, name, cotangents)
    array = loss.array
    if array.size <= EVERY_ELEMENT:
        for index in np.ndindex(*array.shape):
            unit = np.zeros(array.shape)
            unit[index] = 1
            slope = _slope(loss, unit, delta)
            if slope is not None:
                yield Slope(unit, slope)
        return
    rng = np.random.default_rng(array.size)
    for _ in range(DIRECTIONS):
        for _ in range(PATIENCE):
            direction = rng.standard_normal(array.shape)
            direction /= np.abs(direction).max()
            slope = _slope(loss, direction, delta)
            if slope is not None:
                yield Slope(direction, slope)
                break
        else:
            raise AssertionError(f"{name} has a kink in every direction; give the test other values.")


def _slope(loss: Loss, direction: Array, delta: float) -> float | None:
    """The central difference; None where a kink is between the two ends."""
    here, above, below = (loss.along(direction, step) for step in (0.0, delta, -delta))
    near_above, near_below = loss.along(direction, delta / 2), loss.along(direction, -delta / 2)
    wide, narrow = above - 2 * here + below, near_above - 2 * here + near_below
    # a smooth function's second difference falls by 4 when the step is halved; that of a kink does not
    noise = 1e-9 * max(1.0, abs(here))
    if abs(wide) > noise / delta * 1e-3 and abs(wide) > 1e-7 and abs(narrow) > 0.4 * abs(wide):
        return None
    return (above - below) / (2 * delta)
