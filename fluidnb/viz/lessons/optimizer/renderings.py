"""Text and HTML renderings of the lesson on optimizers."""

import math

from fluidnb.utils.escapes import escape
from fluidnb.viz.base.curves import PALETTE, Curve, bars
from fluidnb.viz.base.curves_svg import curves_svg
from fluidnb.viz.base.html import cells_html, span_html, wrapped_html
from fluidnb.viz.base.styled_text import Line, columns, plural, wrapped
from fluidnb.viz.lessons.common import legend, nearest_step
from fluidnb.viz.lessons.optimizer.choices import DECAYS, OPTIMIZERS, SCHEDULES, SURFACES
from fluidnb.viz.lessons.optimizer.map_svg import optimizer_map_svg
from fluidnb.viz.lessons.optimizer.model import OptimizerLesson, Track

#: Term -> explanation, for the legend.
WORDS = {
    "path": "The parameter w, a point of two numbers, after each step. All optimizers start at the same point.",
    "height": "The loss at w. Each step tries to reduce it.",
    "gradient": "The direction of the steepest increase of the loss, with the penalty added.",
    "learning rate": "The step size. A schedule computes it in every step, with separate operators.",
    "accumulators": "The state of an optimizer, in variables with the shape of the parameter.",
    "operators": "The operators that minimize appends after the backward part and the schedule: the whole "
    "optimizer in a program.",
}


def optimizer_lesson_lines(lesson: OptimizerLesson, step: int = -1, width: int = 0) -> list[Line]:
    """Text rendering."""
    step, surface = nearest_step(step, lesson.steps + 1), SURFACES[lesson.surface]
    lines: list[Line] = [[(lesson.surface, "bold"), (f"  {surface.words}", "dim")], []]
    rows: list[list[Line]] = [
        [[(f"after {plural(step, 'step')}", "bold")], [("height", "dim")], [], [("at", "dim")], []]
    ]
    for track in lesson.tracks:
        change = f"{_number(track.heights[0])} → {_number(track.heights[step])}"
        rows.append([
            [(track.choice.title, "name")], [(bars(_curve(track, step)), "forward")], [(change, "")],
            [(_point(track.points[step]), "")], [(_lost(track, step), "warn")],
        ])  # fmt: skip
    lines += columns(rows)
    return wrapped(lines + [line for track in lesson.tracks for line in ([], *_about(track, step))], width)


def optimizer_lesson_html(lesson: OptimizerLesson, step: int = -1, focus: int = 0) -> str:
    """HTML rendering: map, curves of the loss, a table, and details of one optimizer."""
    step, focus = nearest_step(step, lesson.steps + 1), nearest_step(focus, len(lesson.tracks))
    track = lesson.tracks[focus]
    curves = [_curve(t, lesson.steps) for t in lesson.tracks]
    return (
        f'<div class="fluidnb fluidnb-lesson" style="overflow-x:auto;line-height:1.45">'
        f'<div style="margin-bottom:6px">{escape(SURFACES[lesson.surface].words)}</div>'
        f'<div style="display:flex;flex-wrap:wrap;gap:0 16px">'
        f'<div style="flex:0 0 auto">{optimizer_map_svg(lesson, step, focus)}</div>'
        f'<div style="flex:1 1 380px;min-width:0;overflow-x:auto"><b>height</b>, the loss; '
        f"after {plural(step, 'step')} at the line<br>"
        f"{curves_svg(curves, lesson.steps + 1, first=0, width=380, mark=step)}"
        f"{_table(lesson, step, focus)}</div></div>"
        '<div style="border-top:1px solid rgba(128,128,128,.3);padding-top:6px">'
        f"{wrapped_html(_about(track, step))}</div>{legend(WORDS)}</div>"
    )


def _table(lesson: OptimizerLesson, step: int, focus: int) -> str:
    """The position of each optimizer, with its colour."""
    rows = []
    for i, (track, colour) in enumerate(zip(lesson.tracks, PALETTE, strict=False)):
        name = span_html(track.choice.title, "bold" if i == focus else "")
        rows.append([
            f'<span style="color:{colour}">●</span> {name}', escape(_number(track.heights[step])),
            escape(_point(track.points[step])), span_html(_lost(track, step), "warn"),
        ])  # fmt: skip
    return cells_html(rows, ["", "height", "at", ""])


def _about(track: Track, step: int) -> list[Line]:
    """Details of one optimizer: description, inputs of the step, accumulators, operators."""
    choice = track.choice
    lines: list[Line] = [[(choice.title, "bold"), (f"  {OPTIMIZERS[choice.name].words}", "dim")]]
    if choice.schedule != "constant":
        lines.append([("schedule  ", "name"), (SCHEDULES[choice.schedule].words, "dim")])
    if choice.decay != "none":
        lines.append([("penalty  ", "name"), (DECAYS[choice.decay].words, "dim")])
    facts = [(name, "name", _point(values[step])) for name, values in track.accumulators.items()]
    if step:
        facts[:0] = [
            (f"gradient of step {step}", "", _point(track.gradients[step - 1])),
            (f"learning rate of step {step}", "", _number(track.rates[step - 1])),
        ]
    lines += columns([[[(name, style)], [(value, "")]] for name, style, value in facts])
    lines.append([(f"{plural(len(track.ops), 'operator')} that it appended", "")])
    lines += [[("  ", ""), *op.pieces] for op in track.ops]
    return lines


def _curve(track: Track, step: int) -> Curve:
    curve = Curve(track.choice.title)
    for i, height in enumerate(track.heights[: step + 1]):
        curve.add(i, height if abs(height) < 1e6 else math.nan)
    return curve


def _lost(track: Track, step: int) -> str:
    return f"diverged in step {track.lost}" if track.lost is not None and track.lost <= step else ""


def _number(value: float) -> str:
    return f"{value:.4g}"


def _point(values: tuple[float, ...]) -> str:
    text = ", ".join(_number(v + 0.0 if abs(v) > 1e-30 else 0.0) for v in values)
    return f"({text})" if len(values) > 1 else text
