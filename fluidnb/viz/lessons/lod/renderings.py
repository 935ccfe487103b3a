"""Text, SVG and HTML renderings of the lesson on LoD batches."""

from collections.abc import Iterator, Sequence

from fluidnb.values.lod_text import draw
from fluidnb.viz.base.curves import PALETTE
from fluidnb.viz.base.html import pieces_html, table_html
from fluidnb.viz.base.styled_text import Line, columns, legible, plural, wrapped
from fluidnb.viz.base.svg import svg_element
from fluidnb.viz.lessons.common import legend, nearest_step
from fluidnb.viz.lessons.lod.model import LodLesson

#: Term -> explanation, for the legend.
WORDS = {
    "lengths": "Rows of each sequence; on an upper level, sequences of the next level.",
    "offsets": "Start of each sequence among those of the next level; the last number is the end of the last one. "
    "They are the LoD of a tensor.",
    "absolute offsets": "The same offsets, on every level in rows of the tensor.",
    "rank table": "lod_rank_table sorts the sequences by length, the longest first; the sort is stable.",
    "batch of a step": "Step t takes row t of every sequence that has one. lod_tensor_to_array puts these rows "
    "together, so that a step is an ordinary batch.",
    "memory": "The longest sequences are first and finished ones last: shrink_rnn_memory removes the finished "
    "ones, and the rest matches the batch of the step.",
    "restored": "array_to_lod_tensor restores the original order of the rows and the LoD.",
}


def lod_lesson_lines(lesson: LodLesson, step: int | None = None, width: int = 0) -> list[Line]:
    """Text rendering of one step, from 0; None for all of them."""
    picture, words = draw(lesson.offsets, lesson.rows)
    lines: list[Line] = [[(f"{plural(lesson.rows, 'row')} in sequences", "bold"), (f"  {picture}  {words}", "")]]
    lines += columns(_levels(lesson))
    table = ", ".join(f"{length} of sequence {index}" for index, length in lesson.table)
    lines += [[], [("rank table", "bold"), (f"  lengths, longest first: {table}", "")], [(WORDS["rank table"], "dim")]]
    lines += [[], [("batch of a step", "bold"), (f"  {plural(lesson.longest, 'step')}", "")]]
    lines += [[(WORDS["batch of a step"], "dim")], [(WORDS["memory"], "dim")]]
    chosen = range(lesson.longest) if step is None else [nearest_step(step, lesson.longest)]
    lines += columns(_steps(lesson, chosen))
    lines += [[], [("restored", "bold"), (f"  rows {_spaced(lesson.restored)}", "")], [(WORDS["restored"], "dim")]]
    return wrapped(lines, width)


def lod_lesson_html(lesson: LodLesson, step: int = 0) -> str:
    """HTML rendering: a step as a picture, tables, and sentences."""
    step = nearest_step(step, lesson.longest)
    now = pieces_html(_sentence(lesson, step))
    ranks: list[list[Line]] = [
        [[(str(rank), "dim")], [(str(index), "name")], [(str(length), "")]]
        for rank, (index, length) in enumerate(lesson.table)
    ]
    side = "display:inline-block;vertical-align:top;margin-right:3em"
    return (
        f'<div class="fluidnb fluidnb-lesson" style="overflow-x:auto;line-height:1.45">'
        f"{lod_lesson_svg(lesson, step)}"
        f'<div style="margin:2px 0 8px"><b>step {step}</b>  {now}<br>'
        f"<b>restored</b>  array_to_lod_tensor restores the order: rows {_spaced(lesson.restored)}.</div>"
        f'<div style="{side}"><b>the LoD</b>{table_html(_levels(lesson))}</div>'
        f'<div style="{side}"><b>rank table</b>{table_html(ranks, ["rank", "sequence", "length"])}</div>'
        f"{legend(WORDS)}</div>"
    )


def lod_lesson_svg(lesson: LodLesson, step: int = 0) -> str:
    """SVG rendering: rows in the tensor and in the steps; lines connect the rows of this step."""
    return _Drawing(lesson, nearest_step(step, lesson.longest)).svg()


class _Drawing:
    """One picture."""

    def __init__(self, lesson: LodLesson, step: int) -> None:
        self.lesson, self.step = lesson, step
        self.cell = max(8.0, min(30.0, 860 / max(lesson.rows, 1)))
        part = max((len(p) for s in lesson.steps for p in s.parts), default=1)
        self.column = 44 if part == 1 else 62
        self.top = 30 + 20 * len(lesson.offsets)  # of the rows
        self.grid = self.top + 118  # of the steps
        self.left, self.line = 168, 28
        self.now = lesson.steps[step].parts if lesson.steps else ()

    def svg(self) -> str:
        lesson = self.lesson
        bottom = self.grid + self.line * len(lesson.table)
        self.memory_x = self.left + self.column * max(lesson.longest, 1) + 40
        width = max(self.memory_x + 190, 12 + self.cell * lesson.rows + 20, 560)
        parts = [*self._packed(), *self._grid(bottom), *self._moves(), *self._memory()]
        label = f"{plural(lesson.rows, 'row')} in {plural(len(lesson.table), 'sequence')}, step {self.step}"
        return svg_element(parts, label, width, bottom + 62)

    def _colour(self, sequence: int) -> str:
        return PALETTE[sequence % len(PALETTE)]

    def _x(self, row: float) -> float:
        return 12 + row * self.cell

    def _packed(self) -> Iterator[str]:
        """The tensor: a cell for each row, brackets for sequences, offsets below."""
        lesson = self.lesson
        yield '<text x="12" y="15" font-weight="700">x, as stored in memory</text>'
        for k, level in enumerate(lesson.absolute):
            y = 40 + 20 * k
            for i, (a, b) in enumerate(zip(level, level[1:], strict=False)):
                ranked = k == lesson.level
                ink = self._colour(i) if ranked else "currentColor"
                x, end = self._x(a) + 2, self._x(b) - 2
                if b > a:
                    yield f'<path d="M{x:.1f} {y}v-6H{end:.1f}v6" fill="none" stroke="{ink}" stroke-opacity=".8"/>'
                name = f"sequence {i}" if (b - a) * self.cell > 78 else str(i)
                yield (
                    f'<text x="{(x + end) / 2:.1f}" y="{y - 9}" text-anchor="middle" font-size="11" {legible(ink)} '
                    f'fill-opacity="{1 if ranked else 0.75}">{name}</text>'
                )
        taken = {row for part in self.now for row in part}
        for row in range(lesson.rows):
            yield self._box("row", self._x(row), self.top, self.cell, row, row in taken)
        if self.cell > 14:
            for offset in dict.fromkeys(lesson.absolute[-1]):
                yield (
                    f'<text x="{self._x(offset):.1f}" y="{self.top + 42}" text-anchor="middle" font-size="11" '
                    f'fill-opacity=".75">{offset}</text>'
                )

    def _box(self, kind: str, x: float, y: float, wide: float, row: int, now: bool) -> str:
        colour = self._colour(self.lesson.sequence_of(row))
        text = f'<text x="{x + wide / 2:.1f}" y="{y + 17}" text-anchor="middle">{row}</text>' if wide > 14 else ""
        return (
            f'<g class="{kind}{" now" if now else ""}">'
            f'<rect x="{x + 1:.1f}" y="{y}" width="{wide - 2:.1f}" height="25" rx="4" '
            f'fill="{colour}" fill-opacity="{0.5 if now else 0.13}" stroke="{colour}" '
            f'stroke-opacity="{1 if now else 0.5}"/>{text}</g>'
        )

    def _grid(self, bottom: int) -> Iterator[str]:
        """The steps: a row for each sequence, the longest first, a column for each step."""
        lesson = self.lesson
        x = self.left + self.step * self.column
        yield (
            f'<rect x="{x - 1}" y="{self.grid - 24}" width="{self.column + 2}" '
            f'height="{bottom - self.grid + 62}" rx="6" fill="currentColor" fill-opacity=".07"/>'
        )
        yield f'<text x="12" y="{self.grid - 9}" font-weight="700">longest first</text>'
        yield f'<text x="12" y="{bottom + 28}" fill-opacity=".75">rows in the batch</text>'
        for rank, (index, length) in enumerate(lesson.table):
            y = self.grid + rank * self.line
            yield (
                f'<text x="12" y="{y + 17}" {legible(self._colour(index))} font-weight="700">sequence {index}'
                f'<tspan fill="currentColor" fill-opacity=".75" font-weight="400">  length {length}</tspan></text>'
            )
        for t, step in enumerate(lesson.steps):
            x, now = self.left + t * self.column, t == self.step
            weight = ' font-weight="700"' if now else ' fill-opacity=".75"'
            middle = x + self.column / 2
            yield f'<text x="{middle}" y="{self.grid - 9}" text-anchor="middle"{weight}>{t}</text>'
            for rank, part in enumerate(step.parts):
                yield self._part(x, self.grid + rank * self.line, part, now)
            count = sum(len(part) for part in step.parts)
            yield f'<text x="{middle}" y="{bottom + 28}" text-anchor="middle"{weight}>{count}</text>'

    def _part(self, x: float, y: float, part: Sequence[int], now: bool) -> str:
        if len(part) == 1:
            return self._box("part", x + 3, y, self.column - 6, part[0], now)
        colour = self._colour(self.lesson.sequence_of(part[0])) if part else "currentColor"
        text = f"{part[0]} to {part[-1]}" if part else "none"
        return (
            f'<g class="part{" now" if now else ""}"><rect x="{x + 4}" y="{y}" width="{self.column - 8}" height="25" '
            f'rx="4" fill="{colour}" fill-opacity="{0.5 if now else 0.13}" stroke="{colour}" '
            f'stroke-opacity="{1 if now else 0.5}"/><text x="{x + self.column / 2}" y="{y + 17}" '
            f'text-anchor="middle" font-size="11">{text}</text></g>'
        )

    def _moves(self) -> Iterator[str]:
        """Lines from the rows to the batch of this step."""
        for rank, part in enumerate(self.now):
            if not part:
                continue
            a = self._x((part[0] + part[-1] + 1) / 2)
            b = self.left + (self.step + 0.5) * self.column
            y = self.top + 26
            colour = self._colour(self.lesson.sequence_of(part[0]))
            b += min(4, self.column / len(self.now) / 2) * (2 * rank + 1 - len(self.now))
            bend = f"C{a:.1f} {y + 52} {b:.1f} {self.grid - 84} {b:.1f} {self.grid - 25}"
            yield (
                f'<path d="M{a:.1f} {y}{bend}" fill="none" stroke="{colour}" stroke-width="1.6" stroke-opacity=".85">'
                f"<title>row {part[0]} goes to position {rank} of step {self.step}</title></path>"
            )

    def _memory(self) -> Iterator[str]:
        """The memory: a cell for each sequence; those of finished sequences are empty."""
        lesson, x = self.lesson, self.memory_x
        left = lesson.steps[self.step].memory if lesson.steps else ()
        yield f'<text x="{x}" y="{self.grid - 9}" font-weight="700">memory at step {self.step}</text>'
        for rank, (index, _) in enumerate(lesson.table):
            y, over = self.grid + rank * self.line, rank >= len(left)
            look = 'fill="none" stroke="currentColor" stroke-dasharray="3 3" stroke-opacity=".4"'
            if not over:
                look = f'fill="{self._colour(left[rank])}" fill-opacity=".35" stroke="{self._colour(left[rank])}"'
            text = f"sequence {index} has finished" if over else f"of sequence {left[rank]}"
            yield (
                f'<g class="memory{" over" if over else ""}"><rect x="{x}" y="{y}" width="150" height="25" rx="4" '
                f'{look}/><text x="{x + 75}" y="{y + 17}" text-anchor="middle" '
                f'fill-opacity="{0.75 if over else 1}">{text}</text></g>'
            )
        yield (
            f'<text x="{x}" y="{self.grid + len(lesson.table) * self.line + 28}" fill-opacity=".75">'
            f"{plural(len(left), 'row')} of {len(lesson.table)} left</text>"
        )


def _levels(lesson: LodLesson) -> list[list[Line]]:
    levels_of = {"lengths": lesson.lengths, "offsets": lesson.offsets, "absolute offsets": lesson.absolute}
    return [
        [[("" if k else title, "name")], [(f"level {k}", "dim")], [(_spaced(level), "")]]
        for title, levels in levels_of.items()
        for k, level in enumerate(levels)
    ]


def _steps(lesson: LodLesson, chosen: Sequence[int]) -> list[list[Line]]:
    rows: list[list[Line]] = []
    for t in chosen:
        step = lesson.steps[t]
        batch = "  ".join(_spaced(part) if len(part) != 1 else str(part[0]) for part in step.parts)
        rows.append(
            [[(f"step {t}", "name")], [(f"rows {batch}", "")], [(f"memory of {_spaced(step.memory)}", "forward")],
             [(f"{len(step.memory)} of {len(lesson.table)}", "dim")]]
        )  # fmt: skip
    return rows


def _sentence(lesson: LodLesson, t: int) -> Line:
    """A step in words."""
    step = lesson.steps[t]
    rows = [row for part in step.parts for row in part]
    before = lesson.steps[t - 1].memory if t else tuple(index for index, _ in lesson.table)
    over = [str(index) for index in before if index not in step.memory]
    line: Line = [(f"The batch is {'row' if len(rows) == 1 else 'rows'} {_spaced(rows)} of x. ", "")]
    if over:
        line.append((f"Sequence {' and '.join(over)} {'has' if len(over) == 1 else 'have'} finished, so ", ""))
        line.append((f"the memory shrinks from {plural(len(before), 'row')} to {len(step.memory)}.", "bold"))
    else:
        line.append((f"Every sequence continues: the memory keeps {plural(len(before), 'row')}.", ""))
    return line


def _spaced(numbers: Sequence[int]) -> str:
    return " ".join(map(str, numbers))
