"""Choices of the lesson on optimizers: surfaces, optimizers, schedules, penalties."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from fluidnb import layers, optimizer, regularizer
from fluidnb.layers import learning_rate_scheduler as schedules
from fluidnb.program import Variable
from fluidnb.utils.docstrings import first_sentence


@dataclass(frozen=True, slots=True)
class Surface:
    """A function of two numbers to minimize."""

    words: str  # its difficulty
    height: Callable[[Variable, Variable], Variable]  # builds the elementwise function of x and y
    start: tuple[float, float]  # start of the optimizers
    x: tuple[float, float]  # drawn range of x
    y: tuple[float, float]  # drawn range of y
    noise: float = 0.0  # noise of gradients, as from mini-batches


@dataclass(frozen=True, slots=True)
class Kind:
    """A choice."""

    words: str  # its effect
    make: Callable[..., Any]  # creates it from the learning rate, and for optimizers the penalty
    rate: float = 0.0  # its default learning rate


def _saddle(x: Variable, y: Variable) -> Variable:
    up = layers.square(y)
    return 0.5 * layers.square(x) - 0.5 * up + 0.1 * layers.square(up)


#: Name -> surface.
SURFACES = {
    "bowl": Surface(
        "A long bowl: steep across, flat along. A rate that is good for one direction is wrong for the other.",
        lambda x, y: 0.05 * layers.square(x) + layers.square(y), (-4.2, 1.6), (-5.0, 5.0), (-2.4, 2.4),
    ),
    "rosenbrock": Surface(
        "A bent valley (Rosenbrock's): easy to enter, slow to follow to the minimum at (1, 1).",
        lambda x, y: 0.03 * layers.square(1.0 - x) + 0.1 * layers.square(y - layers.square(x)),
        (-1.5, 0.3), (-2.0, 2.0), (-0.9, 2.1),
    ),
    "saddle": Surface(
        "A saddle: at (0, 0) the gradient is 0, but it is not a minimum. The minima are above and below it.",
        _saddle, (-2.3, 0.02), (-2.8, 2.8), (-2.4, 2.4),
    ),
    "noise": Surface(
        "A bowl whose gradients are noisy, as those of small batches are: a constant rate never converges.",
        lambda x, y: 0.5 * layers.square(x) + 0.8 * layers.square(y), (-3.4, 2.2), (-4.2, 4.2), (-3.1, 3.1), 1.2,
    ),
}  # fmt: skip

#: Optimizers whose step depends on the size of a whole layer, of which the lesson's two numbers are none.
OF_LAYERS = ("Lamb", "LarsMomentum")
_DESCRIBED = {
    "SGD": Kind("One step against the gradient, times the rate. No state.", optimizer.SGD, 0.4),
    "Momentum": Kind(
        "Keeps a velocity: each step adds the gradient to 0.9 of the one before. It accelerates and oscillates.",
        partial(optimizer.Momentum, momentum=0.9), 0.06,
    ),
    "Adagrad": Kind(
        "Keeps the sum of squared gradients of each element and divides by its root, so steps only get shorter.",
        optimizer.Adagrad, 0.8,
    ),
    "Adam": Kind(
        "Keeps averages of the gradient and of its square; the step is the one over the root of the other, so its "
        "length hardly depends on how steep it is.",
        optimizer.Adam, 0.3,
    ),
    "RMSProp": Kind(
        "Divides by the root of an average of squared gradients, which forgets: steps need not get shorter.",
        optimizer.RMSProp, 0.12,
    ),
    "Ftrl": Kind(
        "Computes the value from sums of gradients and of their squares. Without its own penalties it behaves like "
        "Adagrad.",
        optimizer.Ftrl, 0.8,
    ),
    "Adamax": Kind(
        "Adam with the largest recent gradient in place of the root of the average square.",
        optimizer.Adamax, 0.3,
    ),
    "Adadelta": Kind("Scales steps by earlier steps, so the first ones are very small.", optimizer.Adadelta, 30.0),
    "DecayedAdagrad": Kind("Adagrad whose sum forgets old gradients.", optimizer.DecayedAdagrad, 0.12),
}  # fmt: skip


def _plain(name: str) -> Kind:
    """An optimizer with the first sentence of its documentation, its defaults and the learning rate 0.1."""
    made = getattr(optimizer, name)
    return Kind(first_sentence(made.__doc__ or "").replace("``", ""), made, 0.1)


#: Name -> optimizer, called with the learning rate and ``regularization``; those that are not described above follow.
OPTIMIZERS = _DESCRIBED | {n: _plain(n) for n in optimizer.SHORT if n not in _DESCRIBED and n not in OF_LAYERS}

#: Name -> learning rate schedule, created from (learning rate).
SCHEDULES = {
    "constant": Kind("The rate is constant.", lambda rate: rate),
    "exponential": Kind(
        "Times 0.7 every 10 steps.", lambda rate: schedules.exponential_decay(rate, decay_steps=10, decay_rate=0.7)
    ),
    "inverse": Kind(
        "The rate over 1 + step / 10.", lambda rate: schedules.inverse_time_decay(rate, decay_steps=10, decay_rate=1.0)
    ),
    "piecewise": Kind(
        "A tenth from step 30 on.", lambda rate: schedules.piecewise_decay(boundaries=[30], values=[rate, rate / 10])
    ),
    "warmup": Kind("Grows from 0 in the first 15 steps.", lambda rate: schedules.linear_lr_warmup(rate, 15, 0.0, rate)),
}

#: Name -> weight decay.
DECAYS = {
    "none": Kind("No penalty.", lambda: None),
    "L2": Kind("Adds 0.2 of the value to its gradient: pulls to the origin.", lambda: regularizer.L2Decay(0.2)),
    "L1": Kind("Adds 0.2 times the sign to the gradient: pulls to the axes.", lambda: regularizer.L1Decay(0.2)),
}
