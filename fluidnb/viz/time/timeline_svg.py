"""SVG and HTML renderings of a timeline: a box for each operator in the colour of its role."""

from fluidnb.utils.escapes import escape
from fluidnb.values.place import CPUPlace, Place
from fluidnb.viz.base.html import lines_html
from fluidnb.viz.base.styled_text import COLOURS, cut_text
from fluidnb.viz.base.svg import CHAR, heading, new_uid, svg_element
from fluidnb.viz.time.timeline import Bar, Timeline, time_text, timeline_lines

_WIDTH, _TOP, _LANE, _BOTTOM = 900, 28, 30, 24
_SMALL = CHAR * 11 / 12
#: Narrower boxes are merged with neighbours of the same role.
_NARROW = 0.7


def timeline_svg(timeline: Timeline, uid: str = "") -> str:
    """A timeline as one SVG element; a box has the id ``{uid}bar_{i}``."""
    uid = uid or new_uid()
    names = [timeline.label(lane) for lane in timeline.lanes]
    left = round(18 + max(map(len, names), default=1) * _SMALL)
    width, height = left + _WIDTH + 12, _TOP + max(len(names), 1) * _LANE + _BOTTOM
    words = f"{len(timeline.bars)} operators in {time_text(timeline.length)}"
    if timeline.clocks:
        words += "; " + "; ".join(timeline.clocks)
    parts = [heading("timeline", words)]
    scale = _WIDTH / (timeline.length or 1)
    rows = {lane: _TOP + row * _LANE for row, lane in enumerate(timeline.lanes)}
    for name, y in zip(names, rows.values(), strict=True):
        parts.append(f'<text x="1" y="{y + 17}" font-size="11" fill-opacity=".75">{escape(name)}</text>')
    for i, group in enumerate(_groups(timeline, scale)):
        parts.append(f'<g id="{uid}bar_{i}">{_box(group, scale, left, rows[_lane(group[0])])}</g>')
    base = _TOP + len(names) * _LANE
    for n, start in enumerate(timeline.runs[1:], 2):
        x = left + start * scale
        parts.append(
            f'<g><title>run {n}</title><path d="M{x:.1f} {_TOP - 4}V{base}" stroke="currentColor" '
            f'stroke-opacity=".6" stroke-dasharray="3 3"/></g>'
        )
    for k in range(5):
        x, anchor = left + k * _WIDTH / 4, ("start", "middle", "middle", "middle", "end")[k]
        parts.append(
            f'<path d="M{x:.1f} {base}v4" stroke="currentColor" stroke-opacity=".5"/><text x="{x:.1f}" y="{base + 16}" '
            f'text-anchor="{anchor}" font-size="11" fill-opacity=".75">{time_text(k * timeline.length / 4)}</text>'
        )
    style = "white-space:pre;max-width:none"
    return svg_element(parts, f"timeline: {words}", width, height, uid=f"{uid}timeline", style=style)


def timeline_html(timeline: Timeline, uid: str = "", top: int = 12) -> str:
    """HTML rendering: the picture, and the ``top`` rows of the table of times."""
    table = timeline_lines(timeline, 0, top)[1 + len(timeline.clocks) + len(timeline.lanes) :]
    return (
        f'<div class="fluidnb" style="line-height:normal"><div style="overflow:auto">'
        f"{timeline_svg(timeline, uid)}</div>{lines_html(table)}</div>"
    )


def _groups(timeline: Timeline, scale: float) -> list[list[Bar]]:
    """Operators with a separate box, and runs of those that are too narrow."""
    groups: list[list[Bar]] = []
    open_: dict[tuple[Place, int], list[Bar]] = {}
    for bar in timeline.bars:
        narrow = (bar.end - bar.start) * scale < _NARROW
        near = open_.get(_lane(bar))
        if narrow and near and near[-1].event.role == bar.event.role and (bar.start - near[-1].end) * scale < _NARROW:
            near.append(bar)
            continue
        group = [bar]
        groups.append(group)
        open_[_lane(bar)] = group if narrow else []
    return groups


def _lane(bar: Bar) -> tuple[Place, int]:
    return bar.event.place, bar.depth


def _box(group: list[Bar], scale: float, left: int, y: int) -> str:
    first, last = group[0], group[-1]
    x, wide = left + first.start * scale, max((last.end - first.start) * scale, 0.5)
    colour = COLOURS[first.event.role]
    if len(group) > 1:
        hover = f"{len(group)} operators from {first.event.label} to {last.event.label}"
    else:
        place = "" if first.event.place is CPUPlace() else f" on {first.event.place}"
        hover = f"{first.event.label}\n{time_text(first.end - first.start)}{place}\n{first.event.cell}"
    edge = f' stroke="{colour}" stroke-width=".7"' if wide > 2 else ""
    chars = int((wide - 6) / _SMALL)
    name = first.event.type
    text = ""
    if len(group) == 1 and chars >= 4:
        text = f'<text x="{x + 3:.1f}" y="{y + 17}" font-size="11">{escape(cut_text(name, chars))}</text>'
    return (
        f'<title>{escape(hover.strip())}</title><rect x="{x:.1f}" y="{y + 2}" width="{wide:.1f}" height="{_LANE - 6}" '
        f'fill="{colour}" fill-opacity="{".5" if wide > 2 else ".8"}"{edge}/>{text}'
    )
