"""Text rendering of operators: references of types, the list of types, details of one in a program."""

import re
from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap

from fluidnb.op import OpDef, has_op
from fluidnb.utils.text_width import padded, text_width
from fluidnb.viz.base.styled_text import Line, columns, cut
from fluidnb.viz.program.model import OpRow
from fluidnb.viz.program.op_type import OpSheet, family_of, read_op

#: Default characters of a line.
WIDE = 100
#: Characters of the first column at most; longer names have a separate line.
_FIRST = 22


def sheet_lines(sheet: OpSheet, limit: int = 0) -> list[Line]:
    """Text rendering of an operator reference."""
    size = limit or WIDE
    lines: list[Line] = [[(sheet.type, "forward"), (f"  {sheet.family} operator", "dim")]]
    for i, paragraph in enumerate(sheet.doc):
        lines += [*([[]] if i else []), *_paragraph(paragraph, size)]
    gradient = [] if sheet.gradient else [("none", "")]
    for g in sheet.gradient:
        slots = f"{', '.join(g.reads)} → {', '.join(g.gives)}"
        gradient += [(g.type, slots), ("", g.doc)] if g.gives else [(g.type, g.doc)]
    slots_of = {"inputs": sheet.inputs, "outputs": sheet.outputs}
    sections: dict[str, Iterable[Line]] = {
        title: _table([(s.name, f"({', '.join(s.marks)}) {s.doc}" if s.marks else s.doc) for s in slots], size)
        for title, slots in slots_of.items()
    }
    sections |= {
        "attributes": _table([(a.name, f"{a.type}; {a.doc}") for a in sheet.attrs], size),
        "kernels": _table([(where, ", ".join(names)) for where, names in sheet.kernels], size),
        "gradient": _table(gradient, size),
        "notes": ([("  " + text, "")] for note in sheet.notes for text in wrap(note, size - 2)),
        "example": ([("  " + part, "dim")] for text in sheet.example for part in broken(text, size - 2)),
        "source": ([("  " + text, "")] for text in wrap(sheet.source, size - 2)),
    }
    for title, rows in sections.items():
        section = list(rows)
        lines += [[], [(title, "bold")], *section] if section else []
    return lines


def _paragraph(text: str, size: int) -> Iterator[Line]:
    """A paragraph, wrapped; an indented one keeps its line breaks."""
    if text.startswith(" "):
        cut = min(len(line) - len(line.lstrip()) for line in text.splitlines())
        for line in text.splitlines():
            short = len(line) - cut <= size - 4
            yield from ([("    " + t, "")] for t in ([line[cut:]] if short else wrap(line[cut:], size - 4)))
    else:
        yield from ([("  " + line, "")] for line in _folded(" ".join(text.split()), size - 2))


def broken(text: str, size: int) -> list[str]:
    """Wraps a line of an example; code is broken inside brackets, so that it remains valid."""
    lines = []
    while len(text) > size:
        breaks = [(depth, -end) for depth, end in _commas(text) if end <= size]
        end = -min(breaks)[1] if breaks and text.startswith((">>> ", "... ")) else size
        lines.append(text[:end])
        text = ("...     " if breaks else "        ") + text[end:].lstrip()
    return [*lines, text]


def _commas(code: str) -> Iterator[tuple[int, int]]:
    """(bracket depth, end) of each comma inside brackets."""
    depth = int(code.startswith("... "))  # a continuation line is inside brackets already
    for match in re.finditer(r"""("[^"]*"|'[^']*')|[(\[{]|[)\]}]|,""", code):
        sign = match.group()
        depth += (sign in "([{") - (sign in ")]}") if len(sign) == 1 else 0
        if sign == "," and depth > 0 and match.end() > 8:
            yield depth, match.end()


def _folded(text: str, size: int) -> list[str]:
    """Wraps text; a formula is broken at an equals sign only if nothing else fits."""
    glued = [line.replace("\xa0", " ") for line in wrap(text.replace(" = ", "\xa0=\xa0"), size)]
    return glued if all(len(line) <= size for line in glued) else wrap(text, size)


def _table(cells: Sequence[tuple[str, str]], size: int) -> Iterator[Line]:
    """Names and their wrapped descriptions."""
    first = min(max((text_width(name) for name, _ in cells), default=0), _FIRST)
    for name, text in cells:
        parts = _folded(text, max(size - first - 4, 24))
        if text_width(name) > first:
            yield [("  " + name, "name")]
            name = ""
        for i, part in enumerate(parts or [""]):
            title = "" if i else name
            yield [(f"  {padded(title, first)}  ", "name"), (part, "")] if part else [("  " + title, "name")]


def list_lines(definitions: Iterable[OpDef], limit: int = 0) -> list[Line]:
    """Text rendering of operator types by family."""
    families: dict[str, list[str]] = {}
    for d in definitions:
        families.setdefault(family_of(d), []).append(d.type)
    lines: list[Line] = []
    for family in sorted(families):
        names = " ".join(sorted(families[family]))
        lines.append([(family, "bold"), (f" ({len(families[family])})", "dim")])
        lines += [[("  " + text, "")] for text in wrap(names, (limit or WIDE) - 2, break_on_hyphens=False)]
    return lines


def card_lines(op: OpRow, width: int = 0) -> list[Line]:
    """Details of an operator; documentation, kernels and gradient of its type at the end."""
    head: Line = [(f"{op.block}:{op.index}  ", "dim"), (op.type, op.role), (f"  {op.role}", op.role)]
    lines: list[Line] = [[*head, *([(f"  {op.location}", "location")] if op.location else [])]]
    if op.source:
        lines.append(cut([("  " + op.source, "")], width or len(op.source) + 2))
    rows: list[list[Line]] = [
        [[("  " + word, "dim")], [(slot.name, "")], [(v.name, "name")], [(v.facts, "dim")], [(v.location, "location")]]
        for word, slots in (("reads", op.ins), ("writes", op.outs)) for slot in slots for v in slot.vars
    ]  # fmt: skip
    if op.attrs:
        rows.append([[("  with    ", "dim"), (", ".join(f"{name}={value}" for name, value in op.attrs), "")]])
    if inner := (*op.blocks, *op.folded):
        rows.append([[("  runs    ", "dim"), (", ".join(f"block {b.index}" for b in inner), "")]])
    lines += columns(rows, width)
    return [*lines, [], *sheet_lines(read_op(op.type), width)] if has_op(op.type) else lines
