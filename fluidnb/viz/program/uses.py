"""Def-use information: the operators that write or read a variable."""

from collections.abc import Iterator
from dataclasses import dataclass

from fluidnb.errors import NotFound, near
from fluidnb.op import GRAD
from fluidnb.viz.base.styled_text import Line, columns, plural
from fluidnb.viz.program.model import OpRow, ProgramPicture, VarRow


@dataclass(frozen=True, slots=True)
class Use:
    """An operator that writes or reads a variable."""

    writes: bool  # whether it writes it
    slot: str  # its slots, comma-separated
    op: OpRow


@dataclass(frozen=True, slots=True)
class Uses:
    """The writers and readers of one variable."""

    var: VarRow
    uses: tuple[Use, ...] = ()  # its writers and readers in program order
    gradients: tuple[str, ...] = ()  # the names of its gradients

    @property
    def writers(self) -> tuple[Use, ...]:
        """The operators that write it."""
        return tuple(use for use in self.uses if use.writes)

    @property
    def readers(self) -> tuple[Use, ...]:
        """The operators that read it."""
        return tuple(use for use in self.uses if not use.writes)


def uses_of(picture: ProgramPicture, name: str) -> tuple[Uses, ...]:
    """Finds the operators that write or read a variable; one item for each block that declares the name."""
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
            variable = next(v for v in inside[0].vars if v.name == name)
            yield variable, Use(writes, ", ".join(slot.name for slot in inside), op)


def uses_lines(uses: tuple[Uses, ...], width: int = 0) -> list[Line]:
    """Text rendering: block and index of each operator, its type, slot, and the user's line."""
    rows: list[list[Line]] = []
    for each in uses:
        rows += [[line] for line in _head(each)]
        for what, users in (("written", each.writers), ("read", each.readers)):
            if users or what == "read" or not (each.var.data or each.var.persistable):
                count = f"by {plural(len(users), 'op')}" if users else "by no operator"
                rows.append([[(f"{what} {count}", "bold")]])
            rows += [
                [[(f"  {use.op.block}:{use.op.index}", "dim")], [(use.op.type, use.op.role)], [(use.slot, "")],
                 [(use.op.location, "location")], [(use.op.source, "dim")]]
                for use in users
            ]  # fmt: skip
        if each.gradients:
            rows.append([[("gradient  ", "bold"), (", ".join(each.gradients), "backward")]])
    return columns(rows, width)


def _head(uses: Uses) -> list[Line]:
    var = uses.var
    words = [w for w, true in (("parameter", var.parameter), ("data", var.data)) if true]
    words += [w for w in (f"block {var.block}" if var.block >= 0 else "not declared", var.location) if w]
    facts = [(f"  {var.facts}", "")] if var.facts else []
    lines: list[Line] = [[(var.name, "name"), *facts, ("  " + "  ".join(words), "dim")]]
    if not uses.writers and (var.data or var.persistable):
        lines.append([("fed" if var.data else "persistable; another program sets its value", "dim")])
    return lines
