"""What a picture shows, as plain data: a program with its nested blocks, a tree of scopes, the summary of a tensor.

Faces (terminal, SVG, HTML) read only this, so that they agree with each other and can be tested without a front end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from fluidnb.viz.base.styled_text import plural

#: The three parts of a program, in the order in which it is built.
ROLES = ("forward", "backward", "optimizer")

#: Types of operators that the row of a run names, at most; characters for the results of an operator.
_TYPES, _LEFT = 4, 40


@dataclass(frozen=True, slots=True)
class VarRow:
    """One variable.

    Args:
        name: its name.
        kind: what it is, in lower case: ``lod_tensor``, ``lod_tensor_array``, ``step_scopes``; empty if not declared.
        dtype: the name of its dtype, or empty.
        shape: sizes with -1 for unknown ones, or None.
        lod_level: levels of sequence nesting.
        persistable: whether it outlives a run.
        parameter: whether an optimizer may train it.
        data: whether it is fed.
        place: the cell that made it, for example ``cell net``; empty if unknown.
        block: index of the block that declares it; -1 if unknown.

    Example:
        >>> VarRow("x", "lod_tensor", "int64", (-1, 1), 1, data=True).facts
        'int64[-1, 1] lod 1'
    """

    name: str
    kind: str = ""
    dtype: str = ""
    shape: tuple[int, ...] | None = None
    lod_level: int = 0
    persistable: bool = False
    parameter: bool = False
    data: bool = False
    place: str = ""
    block: int = -1

    @property
    def facts(self) -> str:
        """Dtype, shape and LoD level in a few characters; the kind where it is no plain tensor."""
        if self.shape is None:
            return self.kind
        text = f"{self.dtype}[{', '.join(map(str, self.shape))}]"
        if self.lod_level:
            text += f" lod {self.lod_level}"
        return text if self.kind in ("", "lod_tensor") else f"{self.kind} of {text}"


@dataclass(frozen=True, slots=True)
class SlotRow:
    """One slot of an operator with the variables in it.

    Args:
        name: the slot's name.
        vars: the variables, in order.
    """

    name: str
    vars: tuple[VarRow, ...]


@dataclass(frozen=True, slots=True)
class OpRow:
    """One operator, or a run of operators that are folded into one row.

    Args:
        block: index of its block.
        index: its place in the block; of a run, that of its first operator.
        type: the operator's type; of a run, what its operators have in common.
        role: forward, backward or optimizer.
        ins: what it reads.
        outs: what it writes.
        attrs: the attributes that differ from their defaults, as (name, text).
        place: where the user's code made it, for example ``cell net, line 3``; empty if unknown.
        source: that line's text.
        blocks: the blocks that it runs.
        folded: the blocks that it runs and that are not shown.
        hides: the operators of a run; its ``ins`` and ``outs`` are what the run takes from outside and what it makes.
        took: how long it took, in words; empty if nobody has measured that.
        share: its part of the time of all operators.

    Example:
        >>> x, y = VarRow("x"), VarRow("y")
        >>> OpRow(0, 2, "scale", "forward", (SlotRow("X", (x,)),), (SlotRow("Out", (y,)),), (("scale", "2.0"),)).text
        'y = scale(x, scale=2.0)'
    """

    block: int
    index: int
    type: str
    role: str
    ins: tuple[SlotRow, ...] = ()
    outs: tuple[SlotRow, ...] = ()
    attrs: tuple[tuple[str, str], ...] = ()
    place: str = ""
    source: str = ""
    blocks: tuple[BlockRow, ...] = ()
    folded: tuple[BlockRow, ...] = ()
    hides: tuple[OpRow, ...] = ()
    took: str = ""
    share: float = 0.0

    @property
    def reads(self) -> tuple[VarRow, ...]:
        """Everything it reads, slot by slot."""
        return tuple(v for s in self.ins for v in s.vars)

    @property
    def writes(self) -> tuple[VarRow, ...]:
        """Everything it writes, slot by slot."""
        return tuple(v for s in self.outs for v in s.vars)

    @property
    def left(self) -> str:
        """The names that it writes, with commas."""
        return ", ".join(v.name for v in self.writes)

    @property
    def arguments(self) -> str:
        """What stands between its parentheses: variables, with the slot's name where there are several; attributes."""
        named = len(self.ins) > 1
        parts = [(f"{s.name}=" if named else "") + _group([v.name for v in s.vars]) for s in self.ins]
        return ", ".join(parts + [f"{k}={v}" for k, v in self.attrs])

    @property
    def text(self) -> str:
        """The operator as one line of pseudo code."""
        line = f"{self.left} = {self.type}({self.arguments})" if self.outs else f"{self.type}({self.arguments})"
        return f"{self.type}  {self.hidden}" if self.hides else line

    @property
    def pieces(self) -> tuple[tuple[str, str], ...]:
        """Its line as pieces of text, each with a style: ``name``, its role, ``dim``, or none.

        Of many results, only the first is named, so that the type is not far to the right.
        """
        if self.hides:
            return (f"▸ {self.hidden}  ", "dim"), (self.type, self.role), ("  " + self.types, "dim")
        short = len(self.left) > _LEFT and len(self.writes) > 1
        left = f"{self.writes[0].name}, … {len(self.writes) - 1} more" if short else self.left
        result = ((left, "name"), (" = ", "")) if self.outs else ()
        inner = ((f"▸ {self.hidden}  ", "dim"),) if self.folded else ()
        return *inner, *result, (self.type, self.role), (f"({self.arguments})", "")

    @property
    def hidden(self) -> str:
        """How much is folded away here, in words; empty if nothing is."""
        if self.hides:
            return plural(sum(1 for _ in self.each()), "op")
        counts = ((b.index, sum(1 for _ in b.each())) for b in self.folded)
        return ", ".join(f"{plural(n, 'op')} in block {index}" for index, n in counts)

    @property
    def types(self) -> str:
        """The types of what is folded away, the most frequent first."""
        found = Counter(op.type for op in self.each() if op is not self)
        often = [f"{n} {kind}" if n > 1 else kind for kind, n in found.most_common(_TYPES)]
        return ", ".join(often + ([plural(len(found) - _TYPES, "other type")] if len(found) > _TYPES else []))

    def each(self) -> Iterator[OpRow]:
        """Itself and what its blocks hold, or the operators of a run and what their blocks hold; folded or not."""
        if not self.hides:
            yield self
        for op in self.hides:
            yield from op.each()
        for block in (*self.blocks, *self.folded):
            yield from block.each()


@dataclass(frozen=True, slots=True)
class BlockRow:
    """One block.

    Args:
        index: its place in the program.
        parent: the block around it, -1 for the first.
        ops: its operators.
        vars: the variables that it declares.
        left: how many more operators it has, with those of blocks inside, which were not read.
        left_blocks: how many more blocks are inside it.
        left_parameters: how many more parameters it declares.
    """

    index: int
    parent: int
    ops: tuple[OpRow, ...] = ()
    vars: tuple[VarRow, ...] = ()
    left: int = 0
    left_blocks: int = 0
    left_parameters: int = 0

    def walk(self, depth: int = 0) -> Iterator[tuple[int, OpRow]]:
        """The operators that are shown, those of nested blocks right after the operator that runs them.

        Args:
            depth: the depth of this block, in the nesting.

        Yields:
            (depth, operator).
        """
        for op in self.ops:
            yield depth, op
            for block in op.blocks:
                yield from block.walk(depth + 1)

    def each(self) -> Iterator[OpRow]:
        """All operators, folded or not, in the same order."""
        for op in self.ops:
            yield from op.each()

    def only(self, ops: tuple[OpRow, ...]) -> BlockRow:
        """The block with some of its operators, and the variables that these name."""
        part = replace(self, ops=ops, left=0, left_blocks=0, left_parameters=0)
        used = {v.name for op in part.each() for v in (*op.reads, *op.writes)}
        return replace(part, vars=tuple(v for v in self.vars if v.name in used))

    def inside(self) -> Iterator[BlockRow]:
        """Itself and the blocks inside it, folded or not."""
        yield self
        for op in self.each():
            yield from (*op.blocks, *op.folded)


@dataclass(frozen=True, slots=True)
class ProgramPicture:
    """A whole program.

    Args:
        root: the first block; the others hang from the operators that run them.
        loose: blocks that no operator runs (yet).
        title: how it is called.
        note: which part of a program it is, in words; empty for a whole one.
    """

    root: BlockRow
    loose: tuple[BlockRow, ...] = ()
    title: str = "program"
    note: str = ""

    @property
    def blocks(self) -> tuple[BlockRow, ...]:
        """The first block and those that no operator runs."""
        return (self.root, *self.loose)

    def each(self) -> Iterator[OpRow]:
        """All operators, folded or not, in the order of the listing."""
        for block in self.blocks:
            yield from block.each()

    @property
    def size(self) -> int:
        """How many operators there are, shown or not."""
        return sum(1 for _ in self.each()) + sum(b.left for block in self.blocks for b in block.inside())

    @property
    def counts(self) -> str:
        """How many blocks, operators and parameters, in words."""
        n = sum(1 + b.left_blocks for block in self.blocks for b in block.inside())
        params = sum(v.parameter for v in self.root.vars) + self.root.left_parameters
        counts = ((n, "block"), (self.size, "op"), (params, "parameter"))
        return ", ".join(plural(k, what) for k, what in counts if k) + (f"   {self.note}" if self.note else "")


def _group(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"[{', '.join(names)}]"
