"""The faces of a loop that is under way: a line for terminals, a bar with curves for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from fluidnb.viz.curves import PALETTE, Curve, bars, curves_svg
from fluidnb.viz.spans import COLOURS
from fluidnb.viz.svg import FONT

_BAR = 16


@dataclass(frozen=True, slots=True)
class State:
    """A loop at one moment.

    Args:
        title: what is under way.
        step: steps done, over all passes.
        total: steps there are, over all passes, or None.
        pass_id: the pass under way, from 0.
        passes: how many there are.
        seconds: time since the start.
        curves: watched values.
        done: whether the loop came to its end.
    """

    title: str
    step: int
    total: int | None
    pass_id: int
    passes: int
    seconds: float
    curves: Sequence[Curve] = ()
    done: bool = False

    @property
    def part(self) -> float | None:
        """The part that is done, from 0 to 1; None when the end is not known."""
        if self.done:
            return 1.0
        return min(self.step / self.total, 1.0) if self.total else None

    @property
    def words(self) -> list[str]:
        """Steps, pass, rate and time, each as a phrase."""
        words = [f"{self.step:,}/{self.total:,}" if self.total else f"{self.step:,} steps"]
        if self.passes > 1:
            words.append(f"pass {self.pass_id + 1}/{self.passes}")
        rate = self.step / self.seconds if self.seconds > 0 else 0.0
        if rate:
            words.append(f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.2g}/s")
        if self.done:
            words.append(f"in {duration(self.seconds)}")
        elif self.total and rate:
            words.append(f"{duration(max(self.total - self.step, 0) / rate)} left")
        return words

    @property
    def values(self) -> list[tuple[str, str]]:
        """Each watched value: name, last value."""
        return [(c.name, f"{c.last:.4g}" if c.count else "not fetched yet") for c in self.curves]


def text_face(state: State, size: int = 24) -> str:
    """The line for a terminal.

    Args:
        state: the loop.
        size: characters of a curve.

    Returns:
        One line.

    Example:
        >>> text_face(State("training", 50, 100, 0, 1, 2.0))
        'training  ━━━━━━━━╌╌╌╌╌╌╌╌  50/100  25/s  2.0 s left'
    """
    parts = [state.title]
    if state.part is not None:
        full = round(_BAR * state.part)
        parts.append("━" * full + "╌" * (_BAR - full))
    parts += state.words
    for curve, (name, value) in zip(state.curves, state.values, strict=True):
        parts.append(f"{name} {value} {bars(curve, size)}".rstrip())
    return "  ".join(parts)


def html_face(state: State) -> str:
    """The bar and the curves for a notebook.

    Args:
        state: the loop.

    Returns:
        One element.

    Example:
        >>> "50/100" in html_face(State("training", 50, 100, 0, 1, 2.0))
        True
    """
    colour = COLOURS["optimizer"] if state.done else COLOURS["forward"]
    part = 100 * (state.part if state.part is not None else 1)
    values = "".join(
        f'<span style="color:{hue};font-weight:700">{escape(name)}</span> {escape(value)} '
        for (name, value), hue in zip(state.values, PALETTE * len(state.values), strict=False)
    )
    plot = curves_svg(state.curves, state.total) if any(c.points for c in state.curves) else ""
    return (
        f'<div class="fluidnb" style="font-family:{escape(FONT)};font-size:12px;line-height:1.6">'
        f'<b>{escape(state.title)}</b> <span style="display:inline-block;width:160px;height:8px;border-radius:4px;'
        f'background:rgba(136,146,158,.3);vertical-align:middle"><span style="display:block;width:{part:.1f}%;'
        f'height:8px;border-radius:4px;background:{colour}"></span></span> <span style="opacity:.75">'
        f"{escape('  '.join(state.words))}</span> {values}{'<br>' + plot if plot else ''}</div>"
    )


def duration(seconds: float) -> str:
    """A time span as people say it.

    Example:
        >>> duration(0.5), duration(75), duration(7325)
        ('0.5 s', '1:15 min', '2:02 h')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes}:{rest:02} min"
    return f"{minutes // 60}:{minutes % 60:02} h"
