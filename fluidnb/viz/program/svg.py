"""SVG rendering of a program: a row for each operator, boxes for nested blocks, lines for data flow.

Colours are of middle lightness on a transparent background and text has the colour of the page, so that one picture is
readable in light and dark themes. It needs no external resources.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from fluidnb.utils.escapes import escape
from fluidnb.utils.text_width import text_width
from fluidnb.viz.base.styled_text import COLOURS, COMPARED, cut_text, legible, plural
from fluidnb.viz.base.svg import CHAR, heading, new_uid, svg_element
from fluidnb.viz.program.data_flow import Edge, lanes
from fluidnb.viz.program.model import BlockRow, OpRow, ProgramPicture

#: Height of a row, indent of a nested block, left margin, and distance of the data-flow lines.
_ROW, _INDENT, _LEFT, _LANE = 26, 30, 30, 7
_CODE, _FACTS, _LOCATION, _BAR = 62, 30, 26, 72
#: Ground and text of an SVG that is no part of a page.
_GROUND = (
    "svg:root{background:#fff;color:#1f2328}"
    "@media(prefers-color-scheme:dark){svg:root{background:#0d1117;color:#e6edf3}}"
)
#: Role of an operator, or its state in a comparison -> its colour.
_COLOURS = COLOURS | COMPARED
#: Style of a piece -> attributes.
_ATTRIBUTES = {
    "dim": ' fill-opacity=".75"',
    **{role: f' {legible(colour)} font-weight="700"' for role, colour in _COLOURS.items()},
}


@dataclass(slots=True)
class _Row:
    """A row of the picture: an operator or a heading."""

    depth: int
    op: OpRow | None = None
    text: str = ""
    role: str = ""


def program_svg(picture: ProgramPicture, uid: str = "", limit: int = 400) -> str:
    """A program as one SVG element, of ``limit`` operators at most; the others are counted.

    An operator's group has the id ``{uid}op_{block}_{index}``, a block's box ``{uid}block_{index}``.
    """
    uid = uid or new_uid()
    rows, boxes = _rows(picture, limit)
    ops = [(i, row.op) for i, row in enumerate(rows) if row.op is not None]
    facts = min(max((text_width(op.facts) for _, op in ops), default=0), _FACTS)
    location = min(max((text_width(op.location) for _, op in ops), default=0), _LOCATION)
    # an operator may use free space of the columns beside it
    code = min(max((text_width(op.text) for _, op in ops), default=10), _CODE + _FACTS - facts + _LOCATION - location)
    deep = max((row.depth for row in rows), default=0) * _INDENT
    right = _LEFT + deep + code * CHAR + 20
    drawn = lanes(ops)
    x_took = right + 14 + (max((e.lane for e in drawn), default=-1) + 1) * _LANE
    took = max((text_width(op.took) for _, op in ops), default=0)
    x_facts = x_took + (max(took * CHAR, _BAR) + 16 if took else 0)
    x_location = x_facts + facts * CHAR + 16
    head = (text_width(picture.title) + text_width(picture.counts) + 2) * CHAR
    size = (max(x_location + location * CHAR, head) + 8, 30 + len(rows) * _ROW + 6)
    parts = [heading(picture.title, picture.counts, 18)]
    parts += [_box(uid, block, first, last, depth, right) for block, first, last, depth in boxes]
    parts += [_edge(edge, right) for edge in drawn]
    parts += [_row(uid, i, row, right, x_facts, x_location, code) for i, row in enumerate(rows)]
    parts += [_took(i, op, x_took, x_facts - 16) for i, op in ops if op.took]
    label, style = f"{picture.title}: {picture.counts}", "white-space:pre;max-width:none"
    return svg_element(parts, label, *size, uid=f"{uid}program", style=style)


def file_svg(picture: ProgramPicture, uid: str = "", limit: int = 400) -> str:
    """The same for a file: with a ground and a colour of text, for viewers in light and dark."""
    return program_svg(picture, uid, limit).replace(">", f"><style>{_GROUND}</style>", 1)


def _rows(picture: ProgramPicture, limit: int) -> tuple[list[_Row], list[tuple[int, int, int, int]]]:
    """The rows, and the boxes of nested blocks as (block, first row, last row, depth)."""
    rows: list[_Row] = []
    boxes: list[tuple[int, int, int, int]] = []
    left = 0

    def block(b: BlockRow, depth: int) -> None:
        nonlocal left
        role = ""
        for op in b.ops:
            if len(rows) >= limit:
                left += 1
            else:
                if depth == 0 and op.role != role:
                    role = op.role
                    rows.append(_Row(0, text=role, role=role))
                rows.append(_Row(depth, op))
            for inner in op.blocks:
                first = len(rows)
                block(inner, depth + 1)
                if len(rows) > first:
                    boxes.append((inner.index, first, len(rows) - 1, depth + 1))
        left += b.left

    block(picture.root, 0)
    for loose in picture.loose:
        rows.append(_Row(0, text=f"block {loose.index}: no operator runs it"))
        block(loose, 1)
    if left:
        rows.append(_Row(0, text=f"… {plural(left, 'more op')}"))
    return rows, boxes


def _top(row: int) -> int:
    return 30 + row * _ROW


def _box(uid: str, block: int, first: int, last: int, depth: int, right: float) -> str:
    x, y = _LEFT + (depth - 1) * _INDENT + 6, _top(first) - 2
    wide = right - x + 6 - 2 * depth
    return (
        f'<g id="{uid}block_{block}"><title>block {block}</title><rect x="{x}" y="{y}" width="{wide:.0f}" '
        f'height="{(last - first + 1) * _ROW}" rx="7" fill="currentColor" fill-opacity=".045" stroke="currentColor" '
        f'stroke-opacity=".35" stroke-dasharray="4 3"/></g>'
    )


def _row(uid: str, i: int, row: _Row, right: float, x_facts: float, x_location: float, code: int) -> str:
    y = _top(i)
    if row.op is None:
        colour = f'{legible(_COLOURS[row.role])} font-weight="700"' if row.role else 'fill-opacity=".75"'
        return f'<text x="1" y="{y + 16}" {colour}>{escape(row.text)}</text>'
    op, x = row.op, _LEFT + row.depth * _INDENT
    colour = _COLOURS[op.role]
    hover = f"{op.text}\n{op.location}" + (f":  {op.source}" if op.source else "")
    chars = min(code, int((right - x - 14) / CHAR))
    wide = right - x - 6 - 2 * row.depth
    facts, location = escape(cut_text(op.facts, _FACTS)), escape(cut_text(op.location, _LOCATION))
    return (
        f'<g id="{uid}op_{op.block}_{op.index}" class="fluidnb-op {op.role}"><title>{escape(hover.strip())}</title>'
        f'<text x="{x - 6}" y="{y + 16}" text-anchor="end" fill-opacity=".75">{op.index}</text>'
        f'<rect x="{x}" y="{y + 1}" width="{wide:.0f}" height="{_ROW - 5}" rx="5" fill="{colour}" '
        f'fill-opacity=".13" stroke="{colour}" stroke-opacity=".75"/>'
        f'<text x="{x + 7}" y="{y + 16}">{"".join(op_tspans(op, chars))}</text>'
        f'<text x="{x_facts:.0f}" y="{y + 16}" fill-opacity=".75">{facts}</text>'
        f'<text x="{x_location:.0f}" y="{y + 16}" fill-opacity=".75">{location}</text></g>'
    )


def _took(i: int, op: OpRow, left: float, right: float) -> str:
    """The time of an operator over a bar of its share."""
    y, colour = _top(i), _COLOURS[op.role]
    return (
        f'<rect x="{left:.0f}" y="{y + 1}" width="{max(op.share * (right - left), 1):.1f}" height="{_ROW - 5}" '
        f'fill="{colour}" fill-opacity=".35"/>'
        f'<text x="{right:.0f}" y="{y + 16}" text-anchor="end">{escape(op.took)}</text>'
    )


def op_tspans(op: OpRow, chars: int) -> Iterator[str]:
    """The line of an operator, its type in the colour of its role, cut to a number of columns."""
    for look, pieces in groupby(op.pieces, lambda piece: _ATTRIBUTES.get(piece[1], "")):
        text = "".join(text for text, _ in pieces)
        shown = cut_text(text, max(chars, 1))
        chars -= text_width(text)
        yield f"<tspan{look}>{escape(shown)}</tspan>"
        if chars <= 0:
            return


def _edge(edge: Edge, right: float) -> str:
    x, start = right + 8 + edge.lane * _LANE, right - 4
    a, b = _top(edge.first) + 16, _top(edge.last) + 7
    path = f"M{start:.0f} {a}H{x - 4:.0f}Q{x:.0f} {a} {x:.0f} {a + 4}V{b - 4}Q{x:.0f} {b} {x - 4:.0f} {b}H{start:.0f}"
    return (
        f'<g><title>{escape(edge.name)}</title><path fill="none" stroke="currentColor" stroke-opacity=".38" '
        f'd="{path}"/>'
        f'<circle cx="{start:.0f}" cy="{a}" r="1.6" fill-opacity=".55"/>'
        f'<path d="M{start + 5:.0f} {b - 3}L{start:.0f} {b}L{start + 5:.0f} {b + 3}z" fill-opacity=".55"/></g>'
    )
