"""Gradient and update norms of each parameter over training."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluidnb.errors import NotFound
from fluidnb.op import GRAD
from fluidnb.program import Program, default_main_program, hooks
from fluidnb.runtime import Executor
from fluidnb.runtime.scope import Scope, global_scope
from fluidnb.values.array_stats import stats_of
from fluidnb.values.device_context import copy_of
from fluidnb.values.selected_rows import SelectedRows
from fluidnb.values.tensor import array_of
from fluidnb.viz.base.curves import Curve
from fluidnb.viz.base.styled_text import Line, columns, cut, plural

_BARS = 32


@dataclass(frozen=True, slots=True)
class ParameterRow:
    """One parameter over the steps."""

    name: str
    gradient: Curve  # norms of its gradient
    update: Curve  # norms of its update in each step
    weights: float = 0.0  # its norm after the last step


@dataclass(frozen=True, slots=True)
class GradientPicture:
    """All parameters over the steps."""

    rows: tuple[ParameterRow, ...] = ()  # one for each parameter, in the program's order
    steps: int = 0
    without: tuple[str, ...] = ()  # parameters that have no gradient

    def range(self, what: str) -> tuple[float, float]:
        """The range of a scale: smallest and largest finite positive norm."""
        values = [v for row in self.rows for _, v in getattr(row, what).points if math.isfinite(v) and v > 0]
        high = max(values, default=1.0)
        return max(min(values, default=1.0), high * 1e-12), high


class Gradients:
    """Runs training steps and records the norms of gradients and updates.

    In addition to ``exe.run`` a step copies the parameters and fetches their gradients. By default it runs the main
    program in the global scope.
    """

    def __init__(self, program: Program | None = None, scope: Scope | None = None) -> None:
        self._program = default_main_program() if program is None else program
        self._scope = global_scope() if scope is None else scope
        names = [p.name for p in self._program.all_parameters() if p.trainable]
        written = {n for op in self._program.desc.blocks[0].ops for row in op.outs.values() for n in row}
        self._names = [n for n in names if n + GRAD in written]
        if not self._names:
            raise NotFound(
                "No parameter of this program has a gradient.", expected="a program with backward",
                received=f"parameters {', '.join(names)}" if names else "no parameters",
                hint="append_backward(loss), or an optimizer's minimize(loss).",
            )  # fmt: skip
        self._without = tuple(n for n in names if n not in self._names)
        self._gradients = {n: Curve(n) for n in self._names}
        self._updates = {n: Curve(n) for n in self._names}
        self._steps = 0

    def run(
        self, executor: Executor, feed: Mapping[str, Any] | None = None, fetch_list: Sequence[Any] = (),
        return_numpy: bool = True,
    ) -> list[Any]:  # fmt: skip
        """Runs one step."""
        if hooks.before_run is not None:  # a session sets initial values of parameters here
            hooks.before_run(self._program, self._scope)
        before = {n: copy_of(self._value(n)) for n in self._names}
        fetches = [*fetch_list, *(n + GRAD for n in self._names)]
        out = executor.run(self._program, feed, fetches, scope=self._scope, return_numpy=return_numpy)
        count = len(fetch_list)
        for name, gradient in zip(self._names, out[count:], strict=True):
            self._gradients[name].add(self._steps, norm(gradient))
            now = self._value(name)
            self._updates[name].add(self._steps, stats_of(now).norm(now, before[name]))
        self._steps += 1
        return out[:count]

    def picture(self) -> GradientPicture:
        """The recorded norms."""
        rows = [ParameterRow(n, self._gradients[n], self._updates[n], norm(self._value(n))) for n in self._names]
        return GradientPicture(tuple(rows), self._steps, self._without)

    def _value(self, name: str) -> Any:
        variable = self._scope.find_var(name)
        array = array_of(None if variable is None else variable.value)
        return np.zeros(1) if array is None else array


def norm(value: Any) -> float:
    """The L2 norm of a tensor."""
    if isinstance(value, SelectedRows):
        value = value.value
    array = value if array_of(value) is None else array_of(value)
    return stats_of(array).norm(array)


def gradient_lines(picture: GradientPicture, width: int = 0) -> list[Line]:
    """Text rendering: lines of bars for gradients and for updates, each on one logarithmic scale."""
    scales = {what: picture.range(what) for what in ("gradient", "update")}
    drawn = zip(("drawn", "updates drawn"), scales.values(), strict=True)
    parts = [plural(picture.steps, "step"), *(f"{word} from {low:.2g} to {high:.2g}" for word, (low, high) in drawn)]
    lines: list[Line] = [[("gradients  ", "bold"), (", ".join(parts), "dim")]]
    size = max(min(_BARS, (width - 52) // 2), 6) if width else _BARS
    rows: list[list[Line]] = []
    for row in picture.rows:
        share = row.update.last / row.weights if row.weights else math.nan
        rows.append([
            [(row.name, "name")],
            [(log_bars(row.gradient, *scales["gradient"], size), "backward")], [_last(row.gradient)],
            [(log_bars(row.update, *scales["update"], size), "optimizer")], [_last(row.update)],
            [(f"{100 * share:.2g}% of it" if math.isfinite(share) else "", "dim")],
        ])  # fmt: skip
    lines += columns(rows, width)
    if picture.without:
        lines.append([("no gradient  ", "warn"), (", ".join(picture.without), "")])
    return [cut(line, width) for line in lines] if width else lines


def _last(curve: Curve) -> tuple[str, str]:
    return (f"{curve.last:.2g}", "") if math.isfinite(curve.last) else ("NaN", "warn")


def log_bars(curve: Curve, low: float, high: float, size: int) -> str:
    """A curve as a line of bars on a logarithmic scale."""
    values = [v for _, v in curve.points]
    count = min(size, len(values))
    chosen = [values[i * len(values) // count] for i in range(count)]
    span = math.log(high / low) if high > low else 1.0

    def bar(value: float) -> str:
        if not math.isfinite(value):
            return "x"
        if value <= 0:
            return "·"
        return "▁▂▃▄▅▆▇█"[round(7 * min(max(math.log(value / low) / span, 0), 1))] if high > low else "▄"

    return "".join(map(bar, chosen))
