"""Renderings of a running loop: a line for terminals, a bar with curves and means for notebooks."""

from collections.abc import Sequence
from dataclasses import dataclass

from fluidnb.utils.escapes import escape
from fluidnb.viz.base.curves import PALETTE, Curve, bars
from fluidnb.viz.base.curves_svg import Trace, curves_svg, traces
from fluidnb.viz.base.styled_text import COLOURS, mixed
from fluidnb.viz.base.svg import FONT

_BAR, _ROWS = 16, 8
_AMBER = "#d97706"


@dataclass(frozen=True, slots=True)
class PassRow:
    """A finished pass."""

    number: int  # number of the pass, from 1
    step: int  # finished steps of all passes at its end
    seconds: float  # its duration
    means: tuple[tuple[str, float], ...] = ()  # (name, mean over the steps of the pass) of each watched value
    tests: tuple[tuple[str, float], ...] = ()  # the same for the validation after it

    @property
    def values(self) -> list[tuple[str, str]]:
        """The means of the pass and of its validation, with their names."""
        pairs = [*self.means, *((f"test {name}", value) for name, value in self.tests)]
        return [(name, f"{value:.4g}") for name, value in pairs]

    @property
    def text(self) -> str:
        """The pass as a line."""
        return "  ".join([f"pass {self.number}", *map(" ".join, self.values), f"in {duration(self.seconds)}"])


@dataclass(frozen=True, slots=True)
class State:
    """A loop at one moment."""

    title: str
    step: int  # finished steps of all passes
    total: int | None  # steps of all passes, or None if unknown
    pass_id: int  # the current pass, from 0
    passes: int
    seconds: float  # time since the start
    curves: Sequence[Curve] = ()  # watched values
    done: bool = False  # whether the loop is finished
    tests: Sequence[Curve] = ()  # the watched values in a validation after each pass
    rows: Sequence[PassRow] = ()  # the finished passes
    notes: Sequence[str] = ()  # warnings of non-finite values
    began: int = 0  # finished steps at the start of the current pass
    sums: Sequence[float] = ()  # the sums of the watched values since then
    smooth: int | None = None  # steps over which curves are smoothed in the picture; None chooses automatically
    beside: Sequence[Trace] = ()  # curves of other runs

    @property
    def part(self) -> float | None:
        """The finished fraction, from 0 to 1; None if the total is unknown."""
        if self.done:
            return 1.0
        return min(self.step / self.total, 1.0) if self.total else None

    @property
    def words(self) -> list[str]:
        """Steps, pass, rate and time as phrases."""
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
        """(name, last value) of each watched value."""
        return [(c.name, f"{c.last:.4g}" if c.count else "not fetched yet") for c in self.curves]


def progress_text(state: State, size: int = 24) -> str:
    """The line for a terminal."""
    parts = [state.title]
    if state.part is not None:
        full = round(_BAR * state.part)
        parts.append("━" * full + "╌" * (_BAR - full))
    parts += state.words
    for curve, (name, value) in zip(state.curves, state.values, strict=True):
        parts.append(f"{name} {value} {bars(curve, size)}".rstrip())
    return "  ".join(parts)


def progress_html(state: State) -> str:
    """The bar, the curves and the means for a notebook."""
    colour = COLOURS["optimizer"] if state.done else COLOURS["forward"]
    part = 100 * (state.part if state.part is not None else 1)
    values = "".join(
        f'<span style="color:{mixed(hue)};font-weight:700">{escape(name)}</span> {escape(value)} '
        for (name, value), hue in zip(state.values, PALETTE * len(state.values), strict=False)
    )
    drawn = [*state.beside, *traces(state.curves, state.tests)]
    plot = curves_svg(drawn, state.total, smooth=state.smooth) if any(t.curve.points for t in drawn) else ""
    noted = f'<div style="border-left:3px solid {_AMBER};padding-left:6px">{{}}</div>'
    notes = "".join(noted.format(escape(note)) for note in state.notes)
    return (
        f'<div class="fluidnb" style="font-family:{escape(FONT)};font-size:12px;line-height:1.6;overflow-x:auto">'
        f'<b>{escape(state.title)}</b> <span style="display:inline-block;width:160px;height:8px;border-radius:4px;'
        f'background:rgba(136,146,158,.3);vertical-align:middle"><span style="display:block;width:{part:.1f}%;'
        f'height:8px;border-radius:4px;background:{colour}"></span></span> <span>'
        f"{escape('  '.join(state.words))}</span> {values}{notes}{'<br>' + plot if plot else ''}{rows_html(state.rows)}"
        "</div>"
    )


def rows_html(rows: Sequence[PassRow]) -> str:
    """The means of the last passes as a table."""
    if not any(row.values for row in rows):
        return ""
    names = [name for name, _ in rows[-1].values]
    cell = '<td style="text-align:right;padding:0 10px 0 0;white-space:nowrap">{}</td>'
    parts = ["".join(cell.format(f"<b>{escape(text)}</b>") for text in ("pass", *names, "time"))]
    if len(rows) > _ROWS:
        parts.append(cell.format("…"))
    for row in rows[-_ROWS:]:
        texts = [str(row.number), *(value for _, value in row.values), duration(row.seconds)]
        parts.append("".join(cell.format(escape(text)) for text in texts))
    body = "".join(f"<tr>{part}</tr>" for part in parts)
    return (
        '<table style="border-collapse:collapse;font-size:12px;margin:4px 0;font-variant-numeric:tabular-nums">'
        f"{body}</table>"
    )


def duration(seconds: float) -> str:
    """A duration as text.

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
