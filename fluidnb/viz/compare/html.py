"""The difference of two runs as HTML: both programs side by side, coloured by what agrees, and where numbers differ."""

from dataclasses import replace

from fluidnb.compare.difference import Difference
from fluidnb.utils.escapes import escape
from fluidnb.viz.base.html import lines_html
from fluidnb.viz.base.styled_text import plural
from fluidnb.viz.compare.operators import WORDS, compared_operators
from fluidnb.viz.compare.text import apart_of, difference_lines
from fluidnb.viz.program.model import BlockRow, ProgramPicture
from fluidnb.viz.program.reader import read_program
from fluidnb.viz.program.svg import program_svg
from fluidnb.viz.values.preview import read_preview
from fluidnb.viz.values.preview_html import preview_html


def difference_html(difference: Difference) -> str:
    """The text, a picture of the differences of one output, the two programs, and the values of each operator."""
    graphs = [difference_svg(difference, second) for second in (False, True)]
    columns = "".join(f'<div style="flex:1;min-width:24em;overflow:auto">{svg}</div>' for svg in graphs if svg)
    operators = compared_operators(difference)
    rows = "".join(
        f"<details><summary>{escape(op.title)}: {op.state}</summary>{lines_html(op.lines)}</details>"
        for op in operators
    )
    return (
        summary_html(difference)
        + f'<div style="display:flex;flex-wrap:wrap;gap:1em;max-height:36em;overflow:auto">{columns}</div>'
        + f"<details><summary>values of {plural(len(operators), 'operator')}</summary>"
        f'<div style="padding-left:1.5em;max-height:36em;overflow:auto">{rows}</div></details>'
    )


def summary_html(difference: Difference) -> str:
    """The text, and a picture of the differences of one output."""
    parts = [lines_html(difference_lines(difference, pictures=False))]
    apart = apart_of(difference)
    preview = None if apart is None else read_preview(apart)
    if preview is not None and difference.output is not None:
        parts.append(f"<div>|difference| of {escape(difference.output.first)}: {preview_html(preview)}</div>")
    return "".join(parts)


def difference_svg(difference: Difference, second: bool = False) -> str:
    """One of the two programs, its operators coloured by whether their outputs agree; empty without a program."""
    recording = difference.second if second else difference.first
    if recording.program is None:
        return ""
    states = _by_place(difference)
    if second:
        pairs = difference.pairs
        states = {j: states.get(i) for (block, i), (_, j) in pairs.items() if block == 0}
    picture = read_program(recording.program)
    ops = tuple(replace(op, role=WORDS[states.get(op.index)]) for op in picture.root.ops)
    root: BlockRow = replace(picture.root, ops=ops)
    shown: ProgramPicture = replace(picture, root=root, title=recording.title)
    return program_svg(shown)


def _by_place(difference: Difference) -> dict[int, bool | None]:
    """Place in block 0 -> whether the outputs of the operator agree."""
    outer = [write for write in difference.first.writes if write.block == 0]
    return {write.index: difference.states.get(i) for i, write in enumerate(outer)}
