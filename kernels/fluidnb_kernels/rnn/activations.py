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
    """½ tanh(½ x) + ½, which is quicker than with exp."""
    np.multiply(x, 0.5, out)
    np.tanh(out, out)
    np.multiply(out, 0.5, out)
    np.add(out, 0.5, out)


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


class Squash:
    """The activations of a candidate and of gates beside it.

    As σ(x) = ½ tanh(½ x) + ½, one call of tanh does for the usual ones.

    Args:
        candidate: activation of the first part.
        gate: activation of the other parts.
        dtype: of what they get.

    Example:
        >>> z = np.zeros(2); Squash(ACTIVATIONS["tanh"], ACTIVATIONS["sigmoid"], z.dtype)(z); z
        array([0. , 0.5])
    """

    __slots__ = ("_candidate", "_gate", "_half", "_usual")

    def __init__(self, candidate: Activation, gate: Activation, dtype: Any) -> None:
        self._candidate, self._gate = candidate.apply, gate.apply
        self._usual = candidate is ACTIVATIONS["tanh"] and gate is ACTIVATIONS["sigmoid"]
        self._half = np.array(0.5, dtype)  # an array is quicker to multiply with than a number

    def __call__(self, z: Array) -> None:
        """Put them through.

        Args:
            z: [parts, ...], overwritten.
        """
        gates = z[1:]
        if self._usual:
            np.multiply(gates, self._half, gates)
            np.tanh(z, z)
            np.multiply(gates, self._half, gates)
            np.add(gates, self._half, gates)
        else:
            self._candidate(z[:1], z[:1])
            self._gate(gates, gates)
