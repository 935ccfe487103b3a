"""The difference of two programs: operators and variables added, removed, changed."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fluidnb.viz.base.styled_text import Line, columns, plural
from fluidnb.viz.program.model import BlockRow, OpRow, VarRow
from fluidnb.viz.program.reader import read_program

#: mark -> style
_STYLES = {"+": "optimizer", "-": "backward", " ": "dim"}


@dataclass(frozen=True, slots=True)
class DiffRow:
    """An operator of one or both programs.

    Args:
        mark: ``+`` only in the second, ``-`` only in the first, a blank in both.
        depth: how deep its block is nested.
        op: the operator; that of the second program where both have it.
    """

    mark: str
    depth: int
    op: OpRow


@dataclass(frozen=True, slots=True)
class DiffPicture:
    """The difference of two programs.

    Args:
        before: title of the first.
        after: title of the second.
        rows: the operators in order of execution, nested blocks after the operators that run them.
        added: variables that only the second declares.
        removed: variables that only the first declares.
        changed: variables that both declare, differently: (first, second).
    """

    before: str
    after: str
    rows: tuple[DiffRow, ...] = ()
    added: tuple[VarRow, ...] = ()
    removed: tuple[VarRow, ...] = ()
    changed: tuple[tuple[VarRow, VarRow], ...] = ()

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
    """Compares two programs.

    Args:
        before: a Program, a ProgramDesc, or the bytes of one.

    Example:
        >>> x = fluid.layers.data("x", shape=[2]); before = fluid.default_main_program().clone()
        >>> y = fluid.layers.relu(x)
        >>> read_diff(before, fluid.default_main_program()).counts
        'added: 1 op (1 forward), 1 variable'
    """
    first, second = (read_program(p) for p in (before, after))
    old, new = (list(_walk([p.root, *p.loose])) for p in (first, second))
    rows: list[DiffRow] = []
    matcher = difflib.SequenceMatcher(None, [_key(r) for r in old], [_key(r) for r in new], autojunk=False)
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag == "equal":
            rows += [DiffRow(" ", depth, op) for depth, op in new[k:m]]
        else:
            rows += [DiffRow("-", depth, op) for depth, op in old[i:j]]
            rows += [DiffRow("+", depth, op) for depth, op in new[k:m]]
    vars_old, vars_new = (_declared([p.root, *p.loose]) for p in (first, second))
    both = [key for key in vars_old if key in vars_new]
    return DiffPicture(
        *titles, tuple(rows),
        tuple(v for key, v in vars_new.items() if key not in vars_old),
        tuple(v for key, v in vars_old.items() if key not in vars_new),
        tuple((vars_old[k], vars_new[k]) for k in both if vars_old[k].facts != vars_new[k].facts),
    )  # fmt: skip


def diff_lines(picture: DiffPicture, width: int = 0, around: int = 2) -> list[Line]:
    """Text rendering: operators that differ with a few around them; the rest is counted.

    Example:
        >>> from fluidnb.viz import plain
        >>> x = fluid.layers.data("x", shape=[2]); before = fluid.default_main_program().clone()
        >>> y = fluid.layers.relu(x)
        >>> print(plain(diff_lines(read_diff(before, fluid.default_main_program()))))
        before → after  added: 1 op (1 forward), 1 variable
        + 0  relu_0.tmp_0 = relu(x)  float32[-1, 2]
        + relu_0.tmp_0  float32[-1, 2]
    """
    head: Line = [(f"{picture.before} → {picture.after}", "bold"), ("  " + picture.counts, "dim")]
    body: list[list[Line]] = []
    shown = _near([row.mark != " " for row in picture.rows], around)
    last = -1
    for i in shown:
        if i != last + 1:
            body.append([[(f"  … {plural(i - last - 1, 'op')} the same", "dim")]])
        body.append(_op_cells(picture.rows[i]))
        last = i
    if shown and last != len(picture.rows) - 1:
        body.append([[(f"  … {plural(len(picture.rows) - 1 - last, 'op')} the same", "dim")]])
    variables = [
        [[(f"{mark} ", _STYLES[mark]), (v.name, "name")], [(v.facts, "")]]
        for mark, variables_of in (("-", picture.removed), ("+", picture.added))
        for v in variables_of
    ]
    changed = [[[("~ ", "warn"), (b.name, "name")], [(f"{a.facts} → {b.facts}", "")]] for a, b in picture.changed]
    return [head, *columns(body, width), *columns([*variables, *changed], width)]


def _op_cells(row: DiffRow) -> list[Line]:
    op = row.op
    same = row.mark == " "
    text: Line = [(f"{row.mark} ", _STYLES[row.mark]), (f"{'     ' * row.depth}{op.index:<3}", "dim")]
    if op.outs:
        text += [(op.left, "dim" if same else "name"), (" = ", "dim" if same else "")]
    text += [(op.type, "dim" if same else op.role), (f"({op.arguments})", "dim" if same else "")]
    return [text, [(op.facts, "dim")], [(op.location, "place")]]


def _near(marked: list[bool], around: int) -> list[int]:
    keep = {k for i, m in enumerate(marked) if m for k in range(max(0, i - around), min(len(marked), i + around + 1))}
    return sorted(keep)


def _key(row: tuple[int, OpRow]) -> tuple[int, str, str]:
    return row[0], row[1].text, row[1].role


def _walk(blocks: list[BlockRow]) -> Iterator[tuple[int, OpRow]]:
    for block in blocks:
        yield from block.walk()


def _declared(blocks: list[BlockRow]) -> dict[tuple[int, str], VarRow]:
    declared = {}
    for block in blocks:
        inner = [b for _, op in block.walk() for b in op.blocks]
        for each in (block, *inner):
            declared.update({(each.index, v.name): v for v in each.vars})
    return declared
