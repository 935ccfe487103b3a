"""Def-use information: the operators that write or read a variable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fluidnb.errors import NotFound, near
from fluidnb.op import GRAD
from fluidnb.viz.base.styled_text import Line, columns, plural
from fluidnb.viz.program.model import OpRow, ProgramPicture, SlotRow, VarRow


@dataclass(frozen=True, slots=True)
class Use:
    """An operator that writes or reads a variable.

    Args:
        writes: whether it writes it.
        slot: its slots, comma-separated.
        op: the operator.
    """

    writes: bool
    slot: str
    op: OpRow


@dataclass(frozen=True, slots=True)
class Uses:
    """The writers and readers of one variable.

    Args:
        var: the variable.
        uses: its writers and readers in program order.
        gradients: the names of its gradients.

    Example:
        >>> Uses(VarRow("x"), (Use(True, "Out", OpRow(0, 0, "relu", "forward")),)).readers
        ()
    """

    var: VarRow
    uses: tuple[Use, ...] = ()
    gradients: tuple[str, ...] = ()

    @property
    def writers(self) -> tuple[Use, ...]:
        """The operators that write it."""
        return tuple(use for use in self.uses if use.writes)

    @property
    def readers(self) -> tuple[Use, ...]:
        """The operators that read it."""
        return tuple(use for use in self.uses if not use.writes)


def uses_of(picture: ProgramPicture, name: str) -> tuple[Uses, ...]:
    """Finds the operators that write or read a variable.

    Args:
        picture: the program.
        name: the variable's name.

    Returns:
        One item for each block that declares a variable of that name; mostly one.

    Raises:
        NotFound: the program has no such variable.

    Example:
        >>> from fluidnb.viz import read_program
        >>> y = fluid.layers.relu(fluid.layers.data("x", [3]))
        >>> [x] = uses_of(read_program(fluid.default_main_program()), "x")
        >>> [(use.slot, use.op.type) for use in x.readers], x.writers
        ([('X', 'relu')], ())
    """
    declared = [v for block in picture.blocks for inner in block.inside() for v in inner.vars]
    known = {v.name: None for v in declared}
    by_variable: dict[VarRow, list[Use]] = {v: [] for v in declared if v.name == name}
    for op in picture.each():
        known.update((v.name, None) for v in (*op.reads, *op.writes))
        for var, use in _uses(op, name):
            by_variable.setdefault(var, []).append(use)
    if not by_variable:
        hint = near(name, known) or "%fluid show --search var:PART finds names."
        raise NotFound(f"the program has no variable {name}.", received=name, hint=hint)
    gradients = tuple(n for n in known if n == name + GRAD or n.startswith(name + GRAD + "@"))
    return tuple(Uses(var, tuple(uses), gradients) for var, uses in by_variable.items())


def _uses(op: OpRow, name: str) -> Iterator[tuple[VarRow, Use]]:
    for writes, slots in ((False, op.ins), (True, op.outs)):
        inside = [slot for slot in slots if any(v.name == name for v in slot.vars)]
        if inside:
            yield _variable_in(inside[0], name), Use(writes, ", ".join(slot.name for slot in inside), op)


def _variable_in(slot: SlotRow, name: str) -> VarRow:
    return next(v for v in slot.vars if v.name == name)


def uses_lines(uses: tuple[Uses, ...], width: int = 0) -> list[Line]:
    """Text rendering: block and index of each operator, its type, slot, and the user's line.

    Args:
        uses: the result of `uses_of`.
        width: characters a line may have; 0 for any number.

    Returns:
        The lines.

    Example:
        >>> from fluidnb.viz import plain
        >>> relu = OpRow(0, 1, "relu", "forward", location="cell net, line 2", source="y = layers.relu(x)")
        >>> print(plain(uses_lines((Uses(VarRow("x", data=True, block=0), (Use(False, "X", relu),)),))))
        x  data  block 0
        fed
        read by 1 op
          0:1  relu  X  cell net, line 2  y = layers.relu(x)
    """
    lines: list[Line] = []
    rows: list[list[Line]] = []
    for each in uses:
        rows += [[line] for line in _head(each)]
        for what, users in (("written", each.writers), ("read", each.readers)):
            if users or what == "read" or not (each.var.data or each.var.persistable):
                count = f"by {plural(len(users), 'op')}" if users else "by no operator"
                rows.append([[(f"{what} {count}", "bold")]])
            rows += [_row(use) for use in users]
        if each.gradients:
            rows.append([[("gradient  ", "bold"), (", ".join(each.gradients), "backward")]])
    lines += columns(rows, width)
    return lines


def _head(uses: Uses) -> list[Line]:
    var = uses.var
    words = [w for w, true in (("parameter", var.parameter), ("data", var.data)) if true]
    words += [w for w in (f"block {var.block}" if var.block >= 0 else "not declared", var.location) if w]
    head: Line = [(var.name, "name")]
    if var.facts:
        head.append((f"  {var.facts}", ""))
    lines: list[Line] = [[*head, ("  " + "  ".join(words), "dim")]]
    if not uses.writers and (var.data or var.persistable):
        lines.append([("fed" if var.data else "persistable; another program sets its value", "dim")])
    return lines


def _row(use: Use) -> list[Line]:
    op = use.op
    return [
        [(f"  {op.block}:{op.index}", "dim")], [(op.type, op.role)], [(use.slot, "")], [(op.location, "place")],
        [(op.source, "dim")],
    ]  # fmt: skip
