"""The four activations of recurrent networks, and their slopes, as calls of numpy's functions."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from fluidnb.op import Array
from fluidnb_kernels.one_call import Emit


@cache
def number(value: float, dtype: Any) -> Array:
    """A number as an array that cannot be written: quicker to compute with, and native code can read it."""
    array = np.array(value, dtype)
    array.flags.writeable = False
    return array


@dataclass(frozen=True, slots=True)
class Activation:
    """An activation."""

    apply: Callable[[Emit, Array, Array], None]  # ``apply(emit, x, out)``; ``out`` may be ``x``
    slope: Callable[[Emit, Array, Array], None]  # ``slope(emit, y, out)``: the derivative where it gave ``y``


def _sigmoid(emit: Emit, x: Array, out: Array) -> None:
    """½ tanh(½ x) + ½, which is quicker than with exp."""
    half = number(0.5, x.dtype)
    emit(np.multiply, x, half, out)
    emit(np.tanh, out, out)
    emit(np.multiply, out, half, out)
    emit(np.add, out, half, out)


def _sigmoid_slope(emit: Emit, y: Array, out: Array) -> None:
    emit(np.subtract, number(1, y.dtype), y, out)
    emit(np.multiply, out, y, out)


def _tanh_slope(emit: Emit, y: Array, out: Array) -> None:
    emit(np.multiply, y, y, out)
    emit(np.subtract, number(1, y.dtype), out, out)


def _identity(emit: Emit, x: Array, out: Array) -> None:
    if out is not x:
        emit(np.copyto, out, x)


#: By their names in attributes.
ACTIVATIONS = {
    "sigmoid": Activation(_sigmoid, _sigmoid_slope),
    "tanh": Activation(lambda emit, x, out: emit(np.tanh, x, out), _tanh_slope),
    "relu": Activation(
        lambda emit, x, out: emit(np.maximum, x, number(0, x.dtype), out=out),
        lambda emit, y, out: emit(np.greater, y, number(0, y.dtype), out),
    ),
    "identity": Activation(_identity, lambda emit, y, out: emit(np.copyto, out, number(1, y.dtype))),
}

#: The same as expressions of x in C.
IN_C = {"sigmoid": "(T)1 / ((T)1 + exp(-x))", "tanh": "tanh(x)", "relu": "x > (T)0 ? x : (T)0", "identity": "x"}

#: Their slopes as expressions of their value y.
SLOPES_IN_C = {
    "sigmoid": "((T)1 - y) * y", "tanh": "(T)1 - y * y", "relu": "y > (T)0 ? (T)1 : (T)0", "identity": "(T)1",
}  # fmt: skip

#: The names in the order of the numbers that gru_unit gives them.
BY_NUMBER = ("identity", "sigmoid", "tanh", "relu")


def squash(emit: Emit, candidate: Activation, gate: Activation, z: Array) -> None:
    """Apply the activations of a candidate and of gates to parts [parts, …], in place.

    σ(x) = ½ tanh(½ x) + ½, so one call of tanh does the usual ones.
    """
    gates, half = z[1:], number(0.5, z.dtype)
    if candidate is ACTIVATIONS["tanh"] and gate is ACTIVATIONS["sigmoid"]:
        emit(np.multiply, gates, half, gates)
        emit(np.tanh, z, z)
        emit(np.multiply, gates, half, gates)
        emit(np.add, gates, half, gates)
    else:
        candidate.apply(emit, z[:1], z[:1])
        gate.apply(emit, gates, gates)
