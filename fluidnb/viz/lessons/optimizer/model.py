"""The lesson on optimizers: a program for each optimizer minimizes a function of two numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from fluidnb import layers
from fluidnb.errors import NotFound, OpValueError, near
from fluidnb.initializer import NumpyArrayInitializer
from fluidnb.param_attr import ParamAttr
from fluidnb.program import Variable
from fluidnb.runtime import Executor, Scope
from fluidnb.viz.lessons.common import isolated_programs
from fluidnb.viz.lessons.optimizer.choices import DECAYS, OPTIMIZERS, SCHEDULES, SURFACES, Surface
from fluidnb.viz.program.model import OpRow
from fluidnb.viz.program.reader import read_program

#: Steps and optimizers of a lesson at most.
MOST_STEPS, MOST_TRACKS = 400, 6

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Choice:
    """An optimizer with its settings.

    Args:
        name: a key of `OPTIMIZERS`.
        rate: the learning rate.
        schedule: a key of `SCHEDULES`.
        decay: a key of `DECAYS`.

    Example:
        >>> Choice("Adam", 0.1).title
        'Adam 0.1'
    """

    name: str
    rate: float
    schedule: str = "constant"
    decay: str = "none"

    @property
    def title(self) -> str:
        """A short name with its settings."""
        more = [part for part in (self.schedule, self.decay) if part not in ("constant", "none")]
        return " ".join([self.name, f"{self.rate:g}", *more])


@dataclass(frozen=True, slots=True)
class Track:
    """The path of one optimizer.

    Args:
        choice: the optimizer.
        points: its position before the first step and after each.
        heights: the surface there, without noise.
        gradients: the gradient of each step.
        rates: the learning rate of each step.
        accumulators: accumulator -> its values before the first step and after each.
        ops: the operators of its schedule and of its update.
    """

    choice: Choice
    points: tuple[Point, ...]
    heights: tuple[float, ...]
    gradients: tuple[Point, ...]
    rates: tuple[float, ...]
    accumulators: Mapping[str, tuple[tuple[float, ...], ...]]
    ops: tuple[OpRow, ...]

    @property
    def lost(self) -> int | None:
        """The step in which its values become too large or non-finite; None if they do not."""
        return next((i for i, height in enumerate(self.heights) if not math.isfinite(height)), None)


@dataclass(frozen=True, slots=True)
class OptimizerLesson:
    """Optimizers on a surface.

    Args:
        surface: a key of `SURFACES`.
        tracks: the path of each.
        steps: number of steps.
    """

    surface: str
    tracks: tuple[Track, ...]
    steps: int


def parse_choice(text: str) -> Choice:
    """Parses an optimizer from text.

    Args:
        text: ``Adam``, ``Adam:0.1``, or with a schedule and a penalty ``SGD:0.4:exponential:L2``.

    Returns:
        The choice.

    Raises:
        NotFound: there is no such optimizer, schedule or penalty.
        OpValueError: the rate is not a number.

    Example:
        >>> parse_choice("adam:0.1"), parse_choice("SGD").rate
        (Choice(name='Adam', rate=0.1, schedule='constant', decay='none'), 0.4)
    """
    name, rate, schedule, decay = (text.split(":") + [""] * 3)[:4]
    name = _known("optimizer", name, OPTIMIZERS)
    try:
        number = float(rate) if rate else OPTIMIZERS[name].rate
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number < 0:
        error = OpValueError("A learning rate is a number, 0 or more.", expected="for example 0.1", received=rate)
        error.where = None
        raise error
    schedule = _known("schedule", schedule or "constant", SCHEDULES)
    return Choice(name, number, schedule, _known("penalty", decay or "none", DECAYS))


def read_optimizer_lesson(surface: str, choices: Sequence[Choice], steps: int = 60) -> OptimizerLesson:
    """Runs optimizers on a surface.

    Args:
        surface: a key of `SURFACES`.
        choices: the optimizers, 6 at most.
        steps: number of steps, 400 at most.

    Returns:
        Their paths.

    Raises:
        NotFound: there is no such surface, optimizer, schedule or penalty.
        OpValueError: too many steps or optimizers.

    Example:
        >>> lesson = read_optimizer_lesson("bowl", [Choice("SGD", 0.5)], 2)
        >>> [tuple(round(v, 3) for v in point) for point in lesson.tracks[0].points]
        [(-4.2, 1.6), (-3.99, 0.0), (-3.79, 0.0)]
    """
    if not 1 <= steps <= MOST_STEPS or not 1 <= len(choices) <= MOST_TRACKS:
        error = OpValueError(
            "The lesson is for a few optimizers and steps.",
            expected=f"1 to {MOST_TRACKS} optimizers, 1 to {MOST_STEPS} steps",
            received=f"{len(choices)} optimizers, {steps} steps",
        )
        error.where = None
        raise error
    surface = _known("surface", surface, SURFACES)
    return OptimizerLesson(surface, tuple(_track(surface, choice, steps) for choice in choices), steps)


def heights(surface: str, points: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The heights of a surface, computed by its program.

    Args:
        points: float32, shape [n, 2].

    Example:
        >>> heights("bowl", np.array([[2.0, 1.0]], "float32"))
        array([1.2], dtype=float32)
    """
    with isolated_programs() as (main, _):
        out = _height(SURFACES[surface], layers.data("point", [2]))
        [height] = Executor().run(main, feed={"point": points}, fetch_list=[out], scope=Scope())
    flat: np.ndarray[Any, Any] = height[:, 0]
    return flat


@lru_cache(maxsize=64)
def _track(surface: str, choice: Choice, steps: int) -> Track:
    """Builds and runs the program of one optimizer; cached."""
    shape = SURFACES[surface]
    for what, name, known in (
        ("optimizer", choice.name, OPTIMIZERS), ("schedule", choice.schedule, SCHEDULES),
        ("penalty", choice.decay, DECAYS),
    ):  # fmt: skip
        _known(what, name, known)
    with isolated_programs() as (main, startup):
        main.random_seed = startup.random_seed = 7  # all optimizers get the same noise
        first = NumpyArrayInitializer(np.array([shape.start], "float32"))
        point = layers.create_parameter([1, 2], "float32", name="w", attr=ParamAttr(name="w", initializer=first))
        height = _height(shape, point)
        if shape.noise:
            batch = layers.gaussian_random([1, 2], std=shape.noise)
            height = height + layers.reduce_sum(batch * point)
        loss = layers.reduce_sum(height)
        rate = SCHEDULES[choice.schedule].make(choice.rate)
        optimizer = OPTIMIZERS[choice.name].make(rate, DECAYS[choice.decay].make())
        _, [(_, gradient)] = optimizer.minimize(loss)
        used = optimizer.global_learning_rate(main)
        assert used is not None, "minimize creates it"
        names = [n for n in optimizer.get_opti_var_name_list() if n != used.name]
        exe, scope = Executor(), Scope()
        exe.run(startup, scope=scope)
        seen = [[np.array(scope.var(n).get_tensor()) for n in ("w", *names)]]
        inputs = []
        for _ in range(steps):
            rate_now, slope, *now = exe.run(main, fetch_list=[used, gradient, "w", *names], scope=scope)
            inputs.append((float(rate_now.item()), slope))
            seen.append(now)
    points = np.concatenate([row[0] for row in seen])
    accumulators = {name: tuple(_floats(row[i + 1]) for row in seen) for i, name in enumerate(names)}
    ops = tuple(op for op in read_program(main).root.ops if op.role == "optimizer")
    return Track(
        choice, tuple(_pair(p) for p in points), _floats(heights(surface, points)),
        tuple(_pair(slope) for _, slope in inputs), tuple(rate for rate, _ in inputs), accumulators,
        ops,
    )  # fmt: skip


def _height(surface: Surface, point: Variable) -> Variable:
    x, y = layers.split(point, 2, dim=1)
    return surface.height(x, y)


def _floats(array: Any) -> tuple[float, ...]:
    return tuple(float(v) for v in np.ravel(array))


def _pair(array: Any) -> Point:
    x, y = _floats(array)
    return x, y


def _known(what: str, name: str, known: Mapping[str, Any]) -> str:
    """A name of a table, matched without regard to case."""
    for each in known:
        if each.lower() == name.lower():
            return each
    error = NotFound(
        f"The lesson has no {what} {name}.", expected=", ".join(known), received=name, hint=near(name, known)
    )
    error.where = None
    raise error
