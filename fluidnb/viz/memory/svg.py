"""SVG and HTML renderings of memory: time from left to right, bytes upwards, a box for each buffer."""

from itertools import pairwise

from fluidnb.memory import size_text
from fluidnb.utils.escapes import escape
from fluidnb.viz.base.html import lines_html
from fluidnb.viz.base.styled_text import COLOURS, cut_text, legible, plural
from fluidnb.viz.base.svg import CHAR, heading, new_uid, svg_element
from fluidnb.viz.memory.model import ArenaMap, Buffer, MemoryPicture
from fluidnb.viz.memory.pools import pool_lines
from fluidnb.viz.memory.text import live_table, memory_lines

_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 860, 280, 84, 42, 34
#: Height of an empty picture.
_EMPTY = 24
#: Boxes drawn at most, the largest first.
_MOST = 1500
#: Width of a character by font size 11.
_SMALL = CHAR * 11 / 12


def arena_svg(arena: ArenaMap, uid: str = "") -> str:
    """An arena over time as one SVG element; a buffer's box has the id ``{uid}buffer_{i}``.

    A box has the colour of the role of the operator that writes it first; the line is the sum of live bytes, the dashed
    line its peak.
    """
    uid = uid or new_uid()
    width = _LEFT + _WIDTH + 12
    height = _TOP + _HEIGHT + _BOTTOM if arena.buffers else _EMPTY
    title, words = f"memory of block {arena.block}", "empty arena"
    if arena.buffers:
        words = f"{arena.words}, {arena.fragmentation:.0%} lost to gaps and rounding"
    parts = [heading(title, words)]
    shown = sorted(range(len(arena.buffers)), key=lambda i: -arena.buffers[i].size)[:_MOST]
    if shown:
        draw = _Drawing(arena)
        boxes = [draw.box(uid, i, arena.buffers[i]) for i in sorted(shown)]
        parts += [*draw.grid(), *boxes, draw.live(), draw.peak(), *draw.axis()]
    left = len(arena.buffers) - len(shown)
    if left:
        parts.append(
            f'<text x="{width - 12}" y="16" text-anchor="end" fill-opacity=".75">'
            f"{left:,} smaller {'buffers are' if left > 1 else 'buffer is'} not drawn</text>"
        )
    label, style = f"{title}: {words}", "white-space:pre;max-width:none"
    return svg_element(parts, label, width, height, uid=f"{uid}memory", style=style)


def memory_html(picture: MemoryPicture, uid: str = "") -> str:
    """HTML rendering: a map of each arena, the buffers live at its peak, and the pools."""
    parts = []
    for i, arena in enumerate(picture.maps):
        parts.append(f'<div style="overflow:auto">{arena_svg(arena, f"{uid}{i}_" if uid else "")}</div>')
        if not arena.buffers:
            continue
        count = plural(len(arena.at_peak), "buffer")
        table = lines_html(live_table(arena, 40))
        parts.append(f"<details><summary>{count} live at the peak</summary>{table}</details>")
    lines = memory_lines(MemoryPicture((), (), picture.earlier, picture.changed))
    parts += [lines_html(lines)] if lines else []
    for pool in picture.pools:
        where = ", ".join(filter(None, (pool.stats.place, pool.device)))
        words = escape(f"memory of {where} by holder: {size_text(pool.stats.used)} used")
        parts.append(f"<details><summary>{words}</summary>{lines_html(pool_lines(pool, 'pool', 0, 40))}</details>")
    return f'<div class="fluidnb" style="line-height:normal">{"".join(parts)}</div>'


class _Drawing:
    """Coordinates and elements of the picture."""

    def __init__(self, arena: ArenaMap) -> None:
        self._arena = arena
        self._step = _WIDTH / max(len(arena.steps), 1)
        self._byte = _HEIGHT / max(arena.size, 1)
        # the width of an operator is divided among its calls
        self._edges: list[float] = []
        for i, step in enumerate(arena.steps):
            self._edges += [_LEFT + (i + k / step.calls) * self._step for k in range(step.calls)]
        self._edges.append(_LEFT + _WIDTH)

    def _y(self, offset: float) -> float:
        return _TOP + _HEIGHT - offset * self._byte

    def grid(self) -> list[str]:
        """Grid lines at round numbers of bytes, and the top of the arena."""
        size = self._arena.size
        unit = 1
        while size / unit > 6:
            unit *= 2
        lines = [
            f'<path d="M{_LEFT} {self._y(k * unit):.1f}h{_WIDTH}" stroke="currentColor" stroke-opacity=".13"/>'
            f'<text x="{_LEFT - 6}" y="{self._y(k * unit) + 4:.1f}" text-anchor="end" font-size="11" '
            f'fill-opacity=".75">{size_text(k * unit)}</text>'
            for k in range(size // unit + 1)
        ]
        return [*lines, f'<path d="M{_LEFT} {_TOP}h{_WIDTH}" stroke="currentColor" stroke-opacity=".45"/>']

    def box(self, uid: str, i: int, buffer: Buffer) -> str:
        arena = self._arena
        maker, last = arena.maker(buffer), arena.steps[arena.step_of(buffer.last)]
        x, right = self._edges[buffer.first], self._edges[buffer.last + 1]
        y, high = self._y(buffer.offset + buffer.size), buffer.size * self._byte
        colour, name = COLOURS[maker.role], arena.called(buffer)
        hover = (
            f"{', '.join(buffer.names) or name}\n{size_text(buffer.size)} at {buffer.offset}, "
            f"first accessed by {maker.text}, last accessed by {last.text}\n{maker.location}"
        )
        text = ""
        chars = int((right - x - 6) / _SMALL)
        if high >= 12 and chars >= 4:
            shown = escape(cut_text(name, chars))
            text = f'<text x="{x + 3:.1f}" y="{y + high / 2 + 3.5:.1f}" font-size="11">{shown}</text>'
        edge = f' stroke="{colour}" stroke-width=".8"' if high >= 2 and right - x >= 2 else ""
        return (
            f'<g id="{uid}buffer_{i}"><title>{escape(hover.strip())}</title><rect x="{x:.1f}" y="{y:.1f}" '
            f'width="{max(right - x, 0.6):.1f}" height="{max(high, 0.6):.1f}" fill="{colour}" '
            f'fill-opacity=".{"5" if buffer.names else "28"}"{edge}/>{text}</g>'
        )

    def live(self) -> str:
        """The sum of live bytes as a step line; the maximum where calls are narrower than a pixel."""
        columns: dict[int, int] = {}
        for call, live in enumerate(self._arena.live):
            for x in {int(self._edges[call] * 2), max(int(self._edges[call + 1] * 2) - 1, int(self._edges[call] * 2))}:
                columns[x] = max(columns.get(x, 0), live)
        points = [f"{x / 2:.1f} {self._y(live):.1f}" for x, live in sorted(columns.items())]
        path = "L".join(points)
        return f'<path d="M{path}" fill="none" stroke="currentColor" stroke-width="1.2" stroke-opacity=".8"/>'

    def peak(self) -> str:
        arena = self._arena
        x = (self._edges[arena.peak_call] + self._edges[arena.peak_call + 1]) / 2
        anchor = "end" if x > _LEFT + _WIDTH / 2 else "start"
        return (
            f'<path d="M{x:.1f} {_TOP - 8}V{_TOP + _HEIGHT}" stroke="#d97706" stroke-width="1.4" '
            f'stroke-dasharray="4 3"/>'
            f'<text x="{x + (-5 if anchor == "end" else 5):.1f}" y="{_TOP - 5}" text-anchor="{anchor}" font-size="11" '
            f'{legible("#d97706")} font-weight="700">{escape(size_text(arena.peak))} at '
            f"{escape(arena.peak_step.text)}</text>"
        )

    def axis(self) -> list[str]:
        """The operators: roles as bars, and some indices."""
        steps, base = self._arena.steps, _TOP + _HEIGHT
        parts = []
        changes = [0, *(i for i in range(1, len(steps)) if steps[i].role != steps[i - 1].role), len(steps)]
        for a, b in pairwise(changes):
            x, wide = _LEFT + a * self._step, (b - a) * self._step
            role = steps[a].role
            parts.append(f'<rect x="{x:.1f}" y="{base + 3}" width="{wide:.1f}" height="4" fill="{COLOURS[role]}"/>')
            if wide > len(role) * _SMALL + 8:
                parts.append(
                    f'<text x="{x + wide / 2:.1f}" y="{base + 31}" text-anchor="middle" font-size="11" '
                    f'{legible(COLOURS[role])} font-weight="700">{role}</text>'
                )
        every = next(n * p for p in (1, 10, 100, 1000, 10000) for n in (1, 2, 5) if n * p * self._step >= 36)
        for i in range(0, len(steps), every):
            parts.append(
                f'<text x="{_LEFT + (i + 0.5) * self._step:.1f}" y="{base + 19}" text-anchor="middle" font-size="11" '
                f'fill-opacity=".75">{steps[i].index}</text>'
            )
        return parts
