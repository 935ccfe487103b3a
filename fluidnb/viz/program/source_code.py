"""Operators beside the functions that generated source has for them."""

from collections.abc import Iterable, Mapping
from itertools import zip_longest
from textwrap import wrap

from fluidnb.code_generator.listing import Row
from fluidnb.utils.escapes import visible_line
from fluidnb.viz.base.styled_text import Line, cut, cut_text, width

#: Columns of a listing that has no terminal, the share of operators, and how many they take at most.
_WIDTH, _SHARE, _MOST = 140, 0.4, 64


def source_lines(rows: Iterable[Row], functions: Mapping[str, str], columns: int = 0) -> list[Line]:
    """Lines with each operator on the left and its function on the right; a function that is shared comes once.

    Args:
        rows: the operators.
        functions: name -> text.
        columns: columns of the terminal; 0 for no terminal.
    """
    whole = columns or _WIDTH
    left_width = min(int(whole * _SHARE), _MOST)
    lines: list[Line] = []
    shown: set[str] = set()
    block = None
    for row in rows:
        if row.block != block and block is not None:
            lines += [[], [(f"block {row.block}", "bold")]]
        block = row.block
        left: list[Line] = [[(part, "name")] for part in wrap(visible_line(row.operator), left_width)]
        if row.line:
            left.append([(cut_text(visible_line(row.line), left_width), "location")])
        right: list[Line] = [[(f"{row.function}, see above", "dim")]]
        if row.function not in shown:
            text = functions.get(row.function, f"{row.function} is not in model.c")
            right = [[(line, "")] for line in text.rstrip().splitlines()]
            shown.add(row.function)
        lines.append([])
        for pair in zip_longest(left, right):
            one, other = (line or [] for line in pair)
            space = (" " * (left_width - width(one)) + " │ ", "dim")
            lines.append(cut([*one, space, *other], whole) if columns else [*one, space, *other])
    return lines[1:]
