"""SVG and HTML renderings of the roles of distributed training: trainers on the left, servers on the right."""

from fluidnb.memory.stats import size_text
from fluidnb.utils.escapes import escape
from fluidnb.viz.base.styled_text import COLOURS, cut_text
from fluidnb.viz.base.svg import CHAR, heading, svg_element
from fluidnb.viz.roles.model import Link, Role, RolesPicture
from fluidnb.viz.roles.text import link_words, state_words, title

_LINE, _PAD, _GAP, _SPACE, _TOP = 17, 10, 70, 14, 30
_CHARS = 38  # the longest line of a box
_HELD = 4  # variables of a server that are listed
_BOXES = 6  # roles of a kind that are drawn
_WIDEST, _THINNEST = 6.0, 1.0  # widths of lines


def roles_svg(picture: RolesPicture) -> str:
    """The roles as boxes, with a line between each trainer and each server, wider where more bytes flow."""
    links = {link.server: link for link in picture.links}
    left = [(role.name, _trainer_rows(role)) for role in picture.trainers[:_BOXES]]
    right = [(role.name, _server_rows(role, links[role.name])) for role in picture.servers[:_BOXES]]
    left_width, right_width = _width(left), _width(right)
    start = left_width + _GAP
    heights = [sum(_height(rows) + _SPACE for _, rows in column) for column in (left, right)]
    tall = max(heights)
    more = [_more(len(picture.trainers), "trainers"), _more(len(picture.servers), "servers")]
    parts = [heading("roles", picture.words)]
    edges: list[dict[str, float]] = []
    boxes = []
    for column, x, wide, high, colour, rest in (
        (left, 1, left_width, heights[0], COLOURS["forward"], more[0]),
        (right, start, right_width, heights[1], COLOURS["optimizer"], more[1]),
    ):
        y = _TOP + (tall - high) / 2
        middles = {}
        for name, rows in column:
            boxes.append(_box(x, y, wide, rows, colour))
            middles[name] = y + _height(rows) / 2
            y += _height(rows) + _SPACE
        if rest:
            boxes.append(f'<text x="{x + 2}" y="{y + 6:.1f}" fill-opacity=".75">{escape(rest)}</text>')
        edges.append(middles)
    most = max((link.gradients + link.parameters for link in picture.links), default=0) or 1
    for trainer, y0 in edges[0].items():
        for server, y1 in edges[1].items():
            parts.append(_line(picture, trainer, links[server], (left_width + 1, y0), (start, y1), most))
    bottom = 12 if any(more) else 0
    style = "white-space:pre;max-width:100%;height:auto"
    label = f"roles: {picture.words}"
    return svg_element([*parts, *boxes], label, start + right_width + 2, _TOP + tall + bottom, style=style)


def roles_html(picture: RolesPicture) -> str:
    """The picture for a notebook."""
    return f'<div class="fluidnb" style="overflow-x:auto;line-height:normal">{roles_svg(picture)}</div>'


def _trainer_rows(role: Role) -> list[str]:
    return [role.name, *role.words, *(state_words(role.state) if role.state else ())]


def _server_rows(role: Role, link: Link) -> list[str]:
    held = [f"{row.name}  {row.facts}" for row in role.held[:_HELD]]
    if len(role.held) > _HELD:
        held.append(f"and {len(role.held) - _HELD} more")
    whole = f"keeps {len(role.held)} variable{'s' * (len(role.held) != 1)}, {size_text(role.size)}"
    flows = [word.strip() for word in link_words(link)]
    return [title(role), whole, *("  " + row for row in held), *role.words, *flows, *(
        state_words(role.state) if role.state else ()
    )]  # fmt: skip


def _width(column: list[tuple[str, list[str]]]) -> float:
    return 2 * _PAD + CHAR * min(_CHARS, max(len(row) for _, rows in column for row in rows))


def _height(rows: list[str]) -> float:
    return len(rows) * _LINE + _PAD


def _more(count: int, what: str) -> str:
    return f"and {count - _BOXES} more {what}" if count > _BOXES else ""


def _box(x: float, y: float, width: float, rows: list[str], colour: str) -> str:
    """A box with lines of text, the first one bold."""
    texts = "".join(
        f'<text x="{x + _PAD}" y="{y + _LINE * (i + 1):.1f}" font-weight="{400 if i else 700}" xml:space="preserve">'
        f"{escape(cut_text(row, _CHARS))}</text>"
        for i, row in enumerate(rows)
    )
    return (
        f'<rect x="{x}" y="{y:.1f}" width="{width:.1f}" height="{_height(rows):.1f}" rx="5" fill="{colour}" '
        f'fill-opacity=".10" stroke="{colour}"/>{texts}'
    )


def _line(
    picture: RolesPicture, trainer: str, link: Link, begin: tuple[float, float], end: tuple[float, float], most: int
) -> str:
    """The line between a trainer and a server, with its numbers as a tooltip."""
    words = ["  ".join(word.strip() for word in link_words(link))]
    flow = picture.flows.get((trainer, link.server))
    if flow is not None:
        words.append(
            f"sent {size_text(flow.sent)}, received {size_text(flow.received)}, {flow.seconds:.2f} s in its calls"
        )
    wide = _THINNEST + (_WIDEST - _THINNEST) * (link.gradients + link.parameters) / most
    (x0, y0), (x1, y1) = begin, end
    bend = (x1 - x0) / 2
    return (
        f"<g><title>{escape(f'{trainer} and {link.server}: ' + '; '.join(words))}</title>"
        f'<path d="M{x0:.1f} {y0:.1f}C{x0 + bend:.1f} {y0:.1f} {x1 - bend:.1f} {y1:.1f} {x1:.1f} {y1:.1f}" fill="none" '
        f'stroke="currentColor" stroke-opacity=".45" stroke-width="{wide:.1f}"/></g>'
    )
