"""Text rendering of operator references, and of the list of operators."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap

from fluidnb.op import OpDef
from fluidnb.viz.base.styled_text import Line
from fluidnb.viz.program.op_type import OpSheet, family_of

#: Default characters of a line.
WIDE = 100
#: Characters of the first column at most; longer names have a separate line.
_FIRST = 22


def sheet_lines(sheet: OpSheet, limit: int = 0) -> list[Line]:
    """Text rendering of an operator reference.

    Args:
        sheet: the operator.
        limit: characters a line may have; 0 for 100.

    Returns:
        The lines.

    Example:
        >>> from fluidnb.viz import plain, read_op
        >>> print(plain(sheet_lines(read_op("increment"), 80)[4:9]))
        inputs
          X  any[1]: one element
        <BLANKLINE>
        outputs
          Out  X + step; often X itself
    """
    size = limit or WIDE
    lines: list[Line] = [[(sheet.type, "forward"), (f"  {sheet.family} operator", "dim")]]
    for i, paragraph in enumerate(sheet.doc):
        lines += [[]] * (i > 0)
        lines += _paragraph(paragraph, size)
    rows = [
        ("inputs", [(s.name, _marked(s.doc, s.marks)) for s in sheet.inputs]),
        ("outputs", [(s.name, _marked(s.doc, s.marks)) for s in sheet.outputs]),
        ("attributes", [(a.name, f"{a.type}; {a.doc}") for a in sheet.attrs]),
        ("kernels", [(where, ", ".join(names)) for where, names in sheet.kernels]),
        ("gradient", list(_gradient_rows(sheet))),
    ]
    for title, cells in rows:
        if cells:
            lines += [[], [(title, "bold")], *_table(cells, size)]
    if sheet.notes:
        lines += [[], [("notes", "bold")], *([("  " + t, "")] for n in sheet.notes for t in wrap(n, size - 2))]
    if sheet.example:
        code = [part for text in sheet.example for part in broken(text, size - 2)]
        lines += [[], [("example", "bold")], *([("  " + text, "dim")] for text in code)]
    if sheet.source:
        lines += [[], [("source", "bold")], *([("  " + text, "")] for text in wrap(sheet.source, size - 2))]
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
    """Wraps a line of an example; code is broken inside brackets, so that it remains valid.

    Example:
        >>> broken(">>> f([1, 2], 'a, b')", 18)
        ['>>> f([1, 2],', "...     'a, b')"]
    """
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


def _marked(doc: str, marks: Sequence[str]) -> str:
    return f"({', '.join(marks)}) {doc}" if marks else doc


def _gradient_rows(sheet: OpSheet) -> Iterator[tuple[str, str]]:
    for g in sheet.gradient:
        if g.gives:
            yield g.type, f"{', '.join(g.reads)} → {', '.join(g.gives)}"
        yield "" if g.gives else g.type, g.doc
    if not sheet.gradient:
        yield "none", ""


def _table(cells: Sequence[tuple[str, str]], size: int) -> Iterator[Line]:
    """Names and their wrapped descriptions."""
    first = min(max(len(name) for name, _ in cells), _FIRST)
    for name, text in cells:
        parts = _folded(text, max(size - first - 4, 24))
        if len(name) > first:
            yield [("  " + name, "name")]
            name = ""
        for i, part in enumerate(parts or [""]):
            yield _stripped(name if i == 0 else "", first, part)


def _stripped(name: str, first: int, text: str) -> Line:
    if not text:
        return [("  " + name, "name")]
    return [(f"  {name:<{first}}  ", "name"), (text, "")]


def list_lines(definitions: Iterable[OpDef], limit: int = 0) -> list[Line]:
    """Text rendering of operator types by family.

    Args:
        definitions: the operators.
        limit: characters a line may have; 0 for 100.

    Returns:
        The lines.

    Example:
        >>> from fluidnb.op import get_op
        >>> from fluidnb.viz import plain
        >>> print(plain(list_lines([get_op("relu"), get_op("tanh"), get_op("mul")])))
        activation (2)
          relu tanh
        math (1)
          mul
    """
    families: dict[str, list[str]] = {}
    for d in definitions:
        families.setdefault(family_of(d), []).append(d.type)
    lines: list[Line] = []
    for family in sorted(families):
        names = " ".join(sorted(families[family]))
        lines.append([(family, "bold"), (f" ({len(families[family])})", "dim")])
        lines += [[("  " + text, "")] for text in wrap(names, (limit or WIDE) - 2, break_on_hyphens=False)]
    return lines
