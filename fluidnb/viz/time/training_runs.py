"""Recorded training runs: a table, and a plot of their curves."""

from collections.abc import Sequence
from typing import Protocol

from fluidnb.utils.escapes import escape
from fluidnb.viz.base.curves import PALETTE, bars
from fluidnb.viz.base.curves_svg import Trace, curves_svg
from fluidnb.viz.base.styled_text import Line, columns, mixed
from fluidnb.viz.base.svg import FONT
from fluidnb.viz.time.progress_renderings import State, duration


class RecordedRun(Protocol):
    """A recorded run: number, name, last state, and ``done``, ``interrupted`` or ``failed``."""

    number: int
    name: str
    state: State
    ended: str


def overlaid(runs: Sequence[RecordedRun], name: str | None = None) -> list[Trace]:
    """The curves of runs, one colour for each run; of one watched value, or all."""
    overlay: list[Trace] = []
    for run in runs:
        colour = PALETTE[(run.number + 2) % len(PALETTE)]
        for curves, dots in ((run.state.curves, False), (run.state.tests, True)):
            overlay += [
                Trace(c, f"{run.name}: {'test ' * dots}{c.name}", colour, dots)
                for c in curves
                if name in (None, c.name) and c.points
            ]
    return overlay


def training_runs_lines(runs: Sequence[RecordedRun], width: int = 0) -> list[Line]:
    """Text rendering: a line for each run."""
    if not runs:
        return [[("no runs yet: start one with %fluid train", "dim")]]
    rows: list[list[Line]] = []
    for run in runs:
        curve = run.state.curves[0] if run.state.curves else None
        rows.append([
            [(str(run.number), "dim")], [(run.name, "name")], [(_reached(run), "")], [(_last_values(run.state), "")],
            [("" if curve is None else bars(curve, 16), "forward")],
        ])  # fmt: skip
    return columns(rows, width)


def training_runs_html(runs: Sequence[RecordedRun], smooth: int | None = None) -> str:
    """HTML rendering: the table, and a plot for each watched value, smoothed over some steps."""
    cell = '<td style="text-align:left;padding:0 14px 0 0">{}</td>'
    parts = []
    for run in runs:
        colour = PALETTE[(run.number + 2) % len(PALETTE)]
        name = f'<b style="color:{mixed(colour)}">{escape(run.name)}</b>'
        texts = (_reached(run), _last_values(run.state))
        row = cell.format(run.number) + cell.format(name) + "".join(cell.format(escape(text)) for text in texts)
        parts.append(f"<tr>{row}</tr>")
    names = list(dict.fromkeys(c.name for run in runs for c in run.state.curves if c.points))
    plots = "".join(
        f'<div style="margin-top:6px"><b>{escape(name)}</b></div>{curves_svg(overlaid(runs, name), smooth=smooth)}'
        for name in names
    )
    body = "".join(parts) or "<tr><td>no runs yet: start one with %fluid train</td></tr>"
    return (
        f'<div class="fluidnb" style="font-family:{escape(FONT)};font-size:12px;overflow-x:auto">'
        f'<table style="border-collapse:collapse;font-size:12px">{body}</table>{plots}</div>'
    )


def _reached(run: RecordedRun) -> str:
    """Steps and end of a run."""
    state = run.state
    whole = state.total and run.ended != "done"
    steps = f"{state.step:,} of {state.total:,} steps" if whole else f"{state.step:,} steps"
    return f"{steps}  {run.ended}  {duration(state.seconds)}"


def _last_values(state: State) -> str:
    """The means of the last pass and of its validation, else the last values."""
    values = (state.rows[-1].values if state.rows else []) or state.values
    return "  ".join(map(" ".join, values))
