"""The lesson on optimizers: a program for each optimizer minimizes a function of two numbers."""

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
from fluidnb.viz.lessons.common import isolated_programs, without_line
from fluidnb.viz.lessons.optimizer.choices import DECAYS, OPTIMIZERS, SCHEDULES, SURFACES, Surface
from fluidnb.viz.program.model import OpRow
from fluidnb.viz.program.reader import read_program

#: Steps and optimizers of a lesson at most.
MOST_STEPS, MOST_TRACKS = 400, 6
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Choice:
    """An optimizer with its settings."""

    name: str  # a key of `OPTIMIZERS`
    rate: float  # the learning rate
    schedule: str = "constant"  # a key of `SCHEDULES`
    decay: str = "none"  # a key of `DECAYS`

    @property
    def title(self) -> str:
        """A short name with its settings."""
        more = [part for part in (self.schedule, self.decay) if part not in ("constant", "none")]
        return " ".join([self.name, f"{self.rate:g}", *more])


@dataclass(frozen=True, slots=True)
class Track:
    """The path of one optimizer."""

    choice: Choice
    points: tuple[Point, ...]  # its position before the first step and after each
    heights: tuple[float, ...]  # the surface there, without noise
    gradients: tuple[Point, ...]  # the gradient of each step
    rates: tuple[float, ...]  # the learning rate of each step
    # accumulator -> its values before the first step and after each
    accumulators: Mapping[str, tuple[tuple[float, ...], ...]]
    ops: tuple[OpRow, ...]  # the operators of its schedule and of its update

    @property
    def lost(self) -> int | None:
        """The step in which its values become too large or non-finite; None if they do not."""
        return next((i for i, height in enumerate(self.heights) if not math.isfinite(height)), None)


@dataclass(frozen=True, slots=True)
class OptimizerLesson:
    """Optimizers on a surface."""

    surface: str  # a key of `SURFACES`
    tracks: tuple[Track, ...]  # the path of each
    steps: int


def parse_choice(text: str) -> Choice:
    """Parses an optimizer from text."""
    name, rate, schedule, decay = (text.split(":") + [""] * 3)[:4]
    name = _known("optimizer", name, OPTIMIZERS)
    try:
        number = float(rate) if rate else OPTIMIZERS[name].rate
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number < 0:
        text = "A learning rate is a number, 0 or more."
        raise without_line(OpValueError(text, expected="for example 0.1", received=rate))
    schedule = _known("schedule", schedule or "constant", SCHEDULES)
    return Choice(name, number, schedule, _known("penalty", decay or "none", DECAYS))


def read_optimizer_lesson(surface: str, choices: Sequence[Choice], steps: int = 60) -> OptimizerLesson:
    """Runs up to 6 optimizers on a surface, up to 400 steps."""
    if not 1 <= steps <= MOST_STEPS or not 1 <= len(choices) <= MOST_TRACKS:
        raise without_line(OpValueError(
            "The lesson is for a few optimizers and steps.",
            expected=f"1 to {MOST_TRACKS} optimizers, 1 to {MOST_STEPS} steps",
            received=f"{len(choices)} optimizers, {steps} steps",
        ))  # fmt: skip
    surface = _known("surface", surface, SURFACES)
    return OptimizerLesson(surface, tuple(_track(surface, choice, steps) for choice in choices), steps)


def heights(surface: str, points: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The heights of a surface at float32 points, shape [n, 2], computed by its program."""
    with isolated_programs() as (main, _):
        out = _height(SURFACES[surface], layers.data("point", [2]))
        [height] = Executor().run(main, feed={"point": points}, fetch_list=[out], scope=Scope())
    flat: np.ndarray[Any, Any] = height[:, 0]
    return flat


@lru_cache(maxsize=64)
def _track(surface: str, choice: Choice, steps: int) -> Track:
    """Builds and runs the program of one optimizer; cached."""
    shape = SURFACES[surface]
    _known("optimizer", choice.name, OPTIMIZERS)
    _known("schedule", choice.schedule, SCHEDULES)
    _known("penalty", choice.decay, DECAYS)
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
        optimizer = OPTIMIZERS[choice.name].make(rate, regularization=DECAYS[choice.decay].make())
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
        choice, tuple(map(_pair, points)), _floats(heights(surface, points)),
        tuple(_pair(slope) for _, slope in inputs), tuple(rate for rate, _ in inputs), accumulators, ops,
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
    text = f"The lesson has no {what} {name}."
    raise without_line(NotFound(text, expected=", ".join(known), received=name, hint=near(name, known)))
