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
    """One parameter over the steps.

    Args:
        name: its name.
        gradient: norms of its gradient.
        update: norms of its update in each step.
        weights: its norm after the last step.
    """

    name: str
    gradient: Curve
    update: Curve
    weights: float = 0.0


@dataclass(frozen=True, slots=True)
class GradientPicture:
    """All parameters over the steps.

    Args:
        rows: one for each parameter, in the program's order.
        steps: number of steps.
        without: parameters that have no gradient.
    """

    rows: tuple[ParameterRow, ...] = ()
    steps: int = 0
    without: tuple[str, ...] = ()

    def range(self, what: str) -> tuple[float, float]:
        """The range of a scale: smallest and largest finite positive norm.

        Args:
            what: ``gradient`` or ``update``.
        """
        values = [v for row in self.rows for _, v in getattr(row, what).points if math.isfinite(v) and v > 0]
        high = max(values, default=1.0)
        return max(min(values, default=1.0), high * 1e-12), high


class Gradients:
    """Runs training steps and records the norms of gradients and updates.

    In addition to ``exe.run`` a step copies the parameters and fetches their gradients.

    Args:
        program: a program with backward; default the main program.
        scope: scope of the parameters; default the global scope.

    Raises:
        NotFound: no parameter of the program has a gradient.

    Example:
        >>> x = fluid.layers.data("x", shape=[2])
        >>> loss = fluid.layers.mean(fluid.layers.fc(x, 1, bias_attr=False))
        >>> pairs = fluid.optimizer.SGD(0.5).minimize(loss)
        >>> exe = fluid.Executor(); ran = exe.run(fluid.default_startup_program())
        >>> gradients = Gradients()
        >>> for step in range(3):
        ...     out = gradients.run(exe, {"x": np.full((1, 2), 3.0, "float32")}, [loss])
        >>> row = gradients.picture().rows[0]
        >>> row.name, round(row.gradient.last, 4), round(row.update.last, 4)
        ('fc_0.w_0', 4.2426, 2.1213)
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
        """Runs one step.

        Args:
            executor: runs it.
            feed: what to feed.
            fetch_list: variables to fetch.
            return_numpy: see ``Executor.run``.

        Returns:
            Their values.

        Raises:
            FluidError: what ``exe.run`` raises; nothing is recorded then.
        """
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
    """The L2 norm of a tensor.

    Example:
        >>> norm(np.array([3.0, -4.0]))
        5.0
    """
    if isinstance(value, SelectedRows):
        value = value.value
    array = value if array_of(value) is None else array_of(value)
    return stats_of(array).norm(array)


def gradient_lines(picture: GradientPicture, width: int = 0) -> list[Line]:
    """Text rendering: lines of bars for gradients and for updates, each on one logarithmic scale.

    Args:
        picture: the recorded norms.
        width: characters a line may have; 0 for any number.

    Returns:
        The lines.

    Example:
        >>> from fluidnb.viz import plain
        >>> gradient, update = Curve("w"), Curve("w")
        >>> for step in range(4): gradient.add(step, 10.0**-step); update.add(step, 10.0 ** (-step - 1))
        >>> print(plain(gradient_lines(GradientPicture((ParameterRow("w", gradient, update, 2.0),), 4))))
        gradients  4 steps, drawn from 0.001 to 1, updates drawn from 0.0001 to 0.1
        w  █▆▃▁  0.001  █▆▃▁  0.0001  0.005% of it
    """
    parts = [plural(picture.steps, "step")]
    for what, word in (("gradient", "drawn"), ("update", "updates drawn")):
        low, high = picture.range(what)
        parts.append(f"{word} from {low:.2g} to {high:.2g}")
    lines: list[Line] = [[("gradients  ", "bold"), (", ".join(parts), "dim")]]
    size = max(min(_BARS, (width - 52) // 2), 6) if width else _BARS
    scales = {what: picture.range(what) for what in ("gradient", "update")}
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
    """A curve as a line of bars on a logarithmic scale.

    Example:
        >>> c = Curve("w")
        >>> for step, value in enumerate((0.0, 0.01, 1.0, float("nan"))): c.add(step, value)
        >>> log_bars(c, 0.01, 1.0, 8)
        '·▁█x'
    """
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
