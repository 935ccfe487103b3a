"""Two programs compared as a picture, for ``%fluid diff``; as data: ``fluidnb/passes/diff.py``."""

import difflib
from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from fluidnb.passes.diff import ProgramDiff
from fluidnb.viz.base.styled_text import Line, columns, plural
from fluidnb.viz.program.model import OpRow, VarRow
from fluidnb.viz.program.reader import read_program

#: mark -> style
_STYLES = {"+": "optimizer", "-": "backward", " ": "dim"}


@dataclass(frozen=True, slots=True)
class DiffRow:
    """An operator of one or both programs."""

    mark: str  # ``+`` only in the second, ``-`` only in the first, a blank in both
    depth: int  # how deep its block is nested
    op: OpRow  # the operator; that of the second program where both have it


@dataclass(frozen=True, slots=True)
class DiffPicture:
    """The difference of two programs."""

    before: str  # title of the first
    after: str  # title of the second
    # the operators in order of execution, nested blocks after the operators that run them
    rows: tuple[DiffRow, ...] = ()
    added: tuple[VarRow, ...] = ()  # variables that only the second declares
    removed: tuple[VarRow, ...] = ()  # variables that only the first declares
    changed: tuple[tuple[VarRow, VarRow], ...] = ()  # variables that both declare, differently: (first, second)

    @property
    def differs(self) -> bool:
        """Whether the programs differ."""
        return bool(self.added or self.removed or self.changed or any(row.mark != " " for row in self.rows))

    @property
    def counts(self) -> str:
        """Number of differences in words."""
        parts = []
        for mark, word in (("+", "added"), ("-", "removed")):
            ops = [row.op for row in self.rows if row.mark == mark]
            roles = Counter(op.role for op in ops)
            detail = ", ".join(f"{n} {role}" for role, n in roles.items())
            variables = len(self.added if mark == "+" else self.removed)
            if ops or variables:
                named = plural(len(ops), "op") + (f" ({detail})" if len(roles) > 1 or detail else "")
                parts.append(f"{word}: {named}, {plural(variables, 'variable')}")
        if self.changed:
            parts.append(f"changed: {plural(len(self.changed), 'variable')}")
        return "; ".join(parts) or "no difference"


def read_diff(before: Any, after: Any, titles: tuple[str, str] = ("before", "after")) -> DiffPicture:
    """Compares two programs, each a Program, a ProgramDesc, or the bytes of one."""
    pictures = [read_program(p) for p in (before, after)]
    old, new = ([row for block in p.blocks for row in block.walk()] for p in pictures)
    before_keys, after_keys = ([(depth, op.text, op.role) for depth, op in rows] for rows in (old, new))
    matcher = difflib.SequenceMatcher(None, before_keys, after_keys, autojunk=False)
    rows: list[DiffRow] = []
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag == "equal":
            rows += [DiffRow(" ", depth, op) for depth, op in new[k:m]]
        else:
            rows += [DiffRow("-", depth, op) for depth, op in old[i:j]]
            rows += [DiffRow("+", depth, op) for depth, op in new[k:m]]
    vars_old, vars_new = (
        {(b.index, v.name): v for block in p.blocks for b in block.inside() for v in b.vars} for p in pictures
    )
    both = [key for key in vars_old if key in vars_new]
    return DiffPicture(
        *titles, tuple(rows),
        tuple(v for key, v in vars_new.items() if key not in vars_old),
        tuple(v for key, v in vars_old.items() if key not in vars_new),
        tuple((vars_old[k], vars_new[k]) for k in both if vars_old[k].facts != vars_new[k].facts),
    )  # fmt: skip


def diff_lines(picture: DiffPicture, width: int = 0, around: int = 2) -> list[Line]:
    """Text rendering: operators that differ with a few around them; the rest is counted."""
    head: Line = [(f"{picture.before} → {picture.after}", "bold"), ("  " + picture.counts, "dim")]
    body: list[list[Line]] = []
    marks = [row.mark for row in picture.rows]
    near = [set(marks[max(0, i - around) : i + around + 1]) - {" "} for i in range(len(marks))]
    for shown, group in groupby(zip(picture.rows, near, strict=True), lambda item: bool(item[1])) if any(near) else ():
        rows = [row for row, _ in group]
        same: list[list[Line]] = [[[(f"  … {plural(len(rows), 'op')} the same", "dim")]]]
        body += [_op_cells(row) for row in rows] if shown else same
    variables = [
        [[(f"{mark} ", _STYLES[mark]), (v.name, "name")], [(v.facts, "")]]
        for mark, variables_of in (("-", picture.removed), ("+", picture.added))
        for v in variables_of
    ]
    changed = [[[("~ ", "warn"), (b.name, "name")], [(f"{a.facts} → {b.facts}", "")]] for a, b in picture.changed]
    return [head, *columns(body, width), *columns([*variables, *changed], width)]


def _op_cells(row: DiffRow) -> list[Line]:
    op, same = row.op, row.mark == " "
    text: Line = [(f"{row.mark} ", _STYLES[row.mark]), (f"{'     ' * row.depth}{op.index:<3}", "dim")]
    if op.outs:
        text += [(op.left, "dim" if same else "name"), (" = ", "dim" if same else "")]
    text += [(op.type, "dim" if same else op.role), (f"({op.arguments})", "dim" if same else "")]
    return [text, [(op.facts, "dim")], [(op.location, "location")]]


def marked_lines(diff: ProgramDiff) -> list[Line]:
    """Text rendering of the differences that `fluidnb.passes.diff` finds."""
    return [[(f"  {mark} {line}", _STYLES[mark])] if mark else [(line, "bold")] for mark, line in diff.rows()]
