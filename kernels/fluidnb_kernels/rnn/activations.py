"""The four activations of recurrent networks, and their slopes, as functions of arrays."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluidnb.op import Array


@dataclass(frozen=True, slots=True)
class Activation:
    """An activation."""

    apply: Callable[[Array, Array], object]  # ``apply(x, out)``; ``out`` may be ``x``
    slope: Callable[[Array, Array], object]  # ``slope(y, out)``: the derivative where the activation gave ``y``


def _sigmoid(x: Array, out: Array) -> None:
    """½ tanh(½ x) + ½, which is quicker than with exp."""
    np.multiply(x, 0.5, out)
    np.tanh(out, out)
    np.multiply(out, 0.5, out)
    np.add(out, 0.5, out)


def _identity(x: Array, out: Array) -> None:
    if out is not x:
        np.copyto(out, x)


#: By their names in attributes.
ACTIVATIONS = {
    "sigmoid": Activation(_sigmoid, lambda y, out: np.multiply(np.subtract(1, y, out), y, out)),
    "tanh": Activation(np.tanh, lambda y, out: np.subtract(1, np.multiply(y, y, out), out)),
    "relu": Activation(lambda x, out: np.maximum(x, 0, out=out), lambda y, out: np.greater(y, 0, out=out)),
    "identity": Activation(_identity, lambda y, out: out.fill(1)),
}

#: The same as expressions of x in C.
IN_C = {"sigmoid": "(T)1 / ((T)1 + exp(-x))", "tanh": "tanh(x)", "relu": "x > (T)0 ? x : (T)0", "identity": "x"}

#: Their slopes as expressions of their value y.
SLOPES_IN_C = {
    "sigmoid": "((T)1 - y) * y", "tanh": "(T)1 - y * y", "relu": "y > (T)0 ? (T)1 : (T)0", "identity": "(T)1",
}  # fmt: skip

#: The names in the order of the numbers that gru_unit gives them.
BY_NUMBER = ("identity", "sigmoid", "tanh", "relu")


class Squash:
    """The activations of a candidate and of gates; σ(x) = ½ tanh(½ x) + ½, so one call of tanh does the usual ones."""

    __slots__ = ("_candidate", "_gate", "_half", "_usual")

    def __init__(self, candidate: Activation, gate: Activation, dtype: Any) -> None:
        self._candidate, self._gate = candidate.apply, gate.apply
        self._usual = candidate is ACTIVATIONS["tanh"] and gate is ACTIVATIONS["sigmoid"]
        self._half = np.array(0.5, dtype)  # an array is quicker to multiply with than a number

    def __call__(self, z: Array) -> None:
        """Apply them to parts [parts, …], in place."""
        gates = z[1:]
        if self._usual:
            np.multiply(gates, self._half, gates)
            np.tanh(z, z)
            np.multiply(gates, self._half, gates)
            np.add(gates, self._half, gates)
        else:
            self._candidate(z[:1], z[:1])
            self._gate(gates, gates)
