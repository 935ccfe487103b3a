"""The four activations of recurrent networks, and their slopes, as functions of arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = Any


@dataclass(frozen=True, slots=True)
class Activation:
    """An activation.

    Args:
        apply: ``apply(x, out)``; ``out`` may be ``x``.
        slope: ``slope(y, out)``: the derivative where the activation gave ``y``.

    Example:
        >>> out = np.zeros(2); ACTIVATIONS["relu"].slope(np.array([0.0, 3.0]), out); out
        array([0., 1.])
    """

    apply: Callable[[Array, Array], object]
    slope: Callable[[Array, Array], object]


def _sigmoid(x: Array, out: Array) -> None:
    np.negative(x, out)
    np.exp(out, out)
    np.add(out, 1, out)
    np.reciprocal(out, out)


def _sigmoid_slope(y: Array, out: Array) -> None:
    np.subtract(1, y, out)
    np.multiply(out, y, out)


def _tanh_slope(y: Array, out: Array) -> None:
    np.multiply(y, y, out)
    np.subtract(1, out, out)


def _relu(x: Array, out: Array) -> None:
    np.maximum(x, 0, out=out)


def _relu_slope(y: Array, out: Array) -> None:
    np.greater(y, 0, out=out)


def _identity(x: Array, out: Array) -> None:
    if out is not x:
        np.copyto(out, x)


def _one(y: Array, out: Array) -> None:
    out.fill(1)


#: By their names in attributes.
ACTIVATIONS = {
    "sigmoid": Activation(_sigmoid, _sigmoid_slope),
    "tanh": Activation(np.tanh, _tanh_slope),
    "relu": Activation(_relu, _relu_slope),
    "identity": Activation(_identity, _one),
}

#: The names in the order of the numbers that gru_unit gives them.
BY_NUMBER = ("identity", "sigmoid", "tanh", "relu")
