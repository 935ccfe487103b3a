"""SVG rendering of the lesson on backward: forward listing, backward listing, arrows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from fluidnb.utils.escapes import escape
from fluidnb.viz.base.styled_text import COLOURS, legible
from fluidnb.viz.base.svg import svg_element
from fluidnb.viz.lessons.backward.model import BackwardLesson
from fluidnb.viz.program.model import OpRow
from fluidnb.viz.program.svg import op_tspans

T = TypeVar("T")

#: Rows of a listing drawn at most; height of a row, width of a character.
MOST, ROW, CHAR = 32, 24, 6.65
_LEFT, _GAP, _INDENT, _TOP = 36, 80, 18, 30
_CODE, _GRADIENT = 36, 71
_AMBER = "#d97706"


@dataclass(frozen=True, slots=True)
class _Side:
    """The drawn part of a listing."""

    first: int  # index of its first row
    rows: int  # number of drawn rows
    all: int  # length of the listing

    def y(self, index: int) -> float:
        """The top of a drawn row."""
        return _TOP + (index - self.first) * ROW

    def part(self, listing: Sequence[T]) -> Iterator[tuple[int, T]]:
        """The drawn rows with their indices."""
        return enumerate(listing[self.first : self.first + self.rows], self.first)


def backward_svg(lesson: BackwardLesson, step: int) -> str:
    """SVG rendering of a step; the group of a forward operator has the attribute ``data-step`` with its step."""
    return _Drawing(lesson, step).svg()


class _Drawing:

    def __init__(self, lesson: BackwardLesson, step: int) -> None:
        self.lesson, self.step = lesson, step
        self.now, self.listing = lesson.steps[step], lesson.steps[step].listing
        self.row_of = {(op.block, op.index): i for i, (_, op) in enumerate(lesson.forward)}
        self.step_of = {s.at: i for i, s in enumerate(lesson.steps) if s.at is not None}
        current = self.row_of.get(self.now.at, self._around()) if self.now.at else self._around()
        fresh = [i for i, row in enumerate(self.listing) if row.written == step]
        self.left = _window(len(lesson.forward), current)
        self.right = _window(len(self.listing), fresh[-1] if fresh else len(self.listing) - 1)
        longest = max((len(op.text) + 2 * depth for depth, op in lesson.forward), default=8)
        self.wide = min(longest, _CODE) * CHAR + 18
        self.x = _LEFT + self.wide + _GAP
        everything = (len(r.op.text) + 3 * r.depth + 8 for r in lesson.steps[-1].listing)
        self.broad = min(max(everything, default=8), _GRADIENT) * CHAR + 18

    def svg(self) -> str:
        width, rows = self.x + self.broad + 8, min(MOST, max(self.left.all, len(self.lesson.steps[-1].listing)))
        height = _TOP + rows * ROW + 24
        label = f"step {self.step}: {len(self.listing)} backward operators"
        parts = [*self._heads(), *self._arrows(), *self._forward(), *self._backward()]
        return svg_element(parts, label, width, height, font=11, style="white-space:pre")

    def _around(self) -> int:
        """The forward operator to show if a step has none: the owner of the block, or the last."""
        inner = [i for i, (_, op) in enumerate(self.lesson.forward) if op.block == self.now.block]
        return (inner[0] if self.now.kind == "enter" else len(self.lesson.forward)) - 1

    def _heads(self) -> Iterator[str]:
        yield f'<text x="{_LEFT}" y="16" font-weight="700" {legible(COLOURS["forward"])}>forward</text>'
        yield (
            f'<text x="{self.x:.0f}" y="16" font-weight="700" {legible(COLOURS["backward"])}>backward'
            f'<tspan fill="currentColor" fill-opacity=".75" font-weight="400">'
            f"  {len(self.listing)} written</tspan></text>"
        )
        for side, x in ((self.left, _LEFT), (self.right, self.x)):
            below = side.all - side.first - side.rows
            for count, y in ((side.first, 26), (below, _TOP + side.rows * ROW + 14)):
                if count:
                    yield f'<text x="{x + 66:.0f}" y="{y}" font-size="11" fill-opacity=".75">… {count} more</text>'

    def _forward(self) -> Iterator[str]:
        for i, (depth, op) in self.left.part(self.lesson.forward):
            y = self.left.y(i)
            at = self.step_of.get((op.block, op.index), -1)
            state = "now" if at == self.step else "done" if 0 <= at < self.step else "to come"
            wrote = any(row.of == (op.block, op.index) for row in self.listing)
            strong = {"now": (0.28, 1), "done": (0.14, 0.6) if wrote else (0.0, 0.35), "to come": (0.05, 0.4)}[state]
            colour = COLOURS["forward"] if state != "done" or wrote else "currentColor"
            yield (
                f'<g class="fore {state}" data-step="{at}" style="cursor:pointer"><title>{escape(op.text)}</title>'
                f'<text x="{_LEFT - 6}" y="{y + 15}" text-anchor="end" fill-opacity=".75">'
                f"{f'{op.block}:{op.index}' if depth else op.index}</text>"
                f"{self._row(op, _LEFT, y, self.wide, depth, colour, strong, _CODE)}</g>"
            )

    def _backward(self) -> Iterator[str]:
        renamed = {new for _, new in self.now.renamed}
        for i, row in self.right.part(self.listing):
            y, new = self.right.y(i), row.written == self.step
            tag = "" if row.kind == "gradient" else row.kind
            changed = any(v.name in renamed for v in row.op.writes)
            colour = _AMBER if row.kind == "sum" or changed else COLOURS["backward"]
            strong = (0.24, 1) if new else (0.18, 0.9) if changed else (0.07, 0.5)
            yield (
                f'<g class="back {"new" if new else "old"}{" renamed" if changed else ""}">'
                f"<title>{escape(row.op.text)}</title>"
                f"{self._row(row.op, self.x, y, self.broad, row.depth, colour, strong, _GRADIENT, tag)}</g>"
            )

    def _row(
        self, op: OpRow, x: float, y: float, wide: float, depth: int, colour: str, strong: tuple[float, float],
        most: int, tag: str = "",
    ) -> str:  # fmt: skip
        x, wide = x + depth * _INDENT, wide - depth * _INDENT
        chars = min(most, int((wide - 16 - len(tag) * CHAR) / CHAR))
        at = f'x="{x + wide - 6:.0f}" y="{y + 15}"'
        end = f'<text {at} text-anchor="end" fill-opacity=".75">{tag}</text>' if tag else ""
        return (
            f'<rect x="{x:.0f}" y="{y}" width="{wide:.0f}" height="{ROW - 4}" rx="4" fill="{colour}" '
            f'fill-opacity="{strong[0]}" stroke="{colour}" stroke-opacity="{strong[1]}"/>'
            f'<text x="{x + 7:.0f}" y="{y + 15}">{"".join(op_tspans(op, chars))}</text>{end}'
        )

    def _arrows(self) -> Iterator[str]:
        """Arrows from forward operators to their gradients; those of this step are highlighted."""
        for i, row in self.right.part(self.listing):
            at = self.row_of.get(row.of) if row.of else None
            if at is None or not 0 <= at - self.left.first < self.left.rows:
                continue
            a, b = self.left.y(at) + 11, self.right.y(i) + 11
            x, end = _LEFT + self.wide, self.x + row.depth * _INDENT - 2
            new = row.written == self.step
            colour = _AMBER if row.kind == "sum" else COLOURS["backward"] if new else "currentColor"
            look = f'stroke="{colour}" stroke-opacity="{1 if new else 0.22}" stroke-width="{1.8 if new else 1}"'
            head = f'<path d="M{end - 6:.0f} {b - 4}L{end:.0f} {b}L{end - 6:.0f} {b + 4}" fill="none" {look}/>'
            yield (
                f'<path class="arrow{" now" if new else ""}" d="M{x:.0f} {a}C{x + 55:.0f} {a} {end - 55:.0f} {b} '
                f'{end:.0f} {b}" fill="none" {look}/>{head}'
            )


def _window(count: int, around: int) -> _Side:
    """The drawn rows of a long listing, around one of them."""
    rows = min(count, MOST)
    return _Side(max(0, min(around - MOST // 2, count - rows)), rows, count)
