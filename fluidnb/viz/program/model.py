"""A program with its nested blocks as plain data, which is all that renderings (text, SVG, HTML) read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from fluidnb.viz.base.styled_text import plural

#: The roles of operators in the order in which a program is built.
ROLES = ("forward", "backward", "optimizer")
#: Operator types listed for a collapsed run, and characters of the results of an operator, at most.
_TYPES, _LEFT = 4, 40


@dataclass(frozen=True, slots=True)
class VarRow:
    """One variable."""

    name: str
    kind: str = ""  # its type: ``lod_tensor``, ``lod_tensor_array``, ``step_scopes``; empty if not declared
    dtype: str = ""  # the name of its dtype, or empty
    shape: tuple[int, ...] | None = None  # sizes with -1 for unknown ones, or None
    lod_level: int = 0  # levels of sequence nesting
    persistable: bool = False  # whether it outlives a run
    parameter: bool = False  # whether an optimizer may train it
    data: bool = False  # whether it is fed
    location: str = ""  # the cell that created it, for example ``cell net``; empty if unknown
    block: int = -1  # index of the block that declares it; -1 if unknown

    @property
    def facts(self) -> str:
        """Dtype, shape and LoD level; the kind if it is not a plain tensor."""
        if self.shape is None:
            return self.kind
        text = f"{self.dtype}[{', '.join(map(str, self.shape))}]"
        if self.lod_level:
            text += f" lod {self.lod_level}"
        return text if self.kind in ("", "lod_tensor") else f"{self.kind} of {text}"


@dataclass(frozen=True, slots=True)
class SlotRow:
    """One slot of an operator with the variables in it."""

    name: str
    vars: tuple[VarRow, ...]  # the variables, in order


@dataclass(frozen=True, slots=True)
class OpRow:
    """One operator, or a run of operators that is collapsed to one row."""

    block: int  # index of its block
    index: int  # its position in the block; of a run, that of its first operator
    type: str  # the operator's type; of a run, what its operators have in common
    role: str  # forward, backward or optimizer
    ins: tuple[SlotRow, ...] = ()
    outs: tuple[SlotRow, ...] = ()
    attrs: tuple[tuple[str, str], ...] = ()  # the attributes that differ from their defaults, as (name, text)
    location: str = ""  # the user's line that created it, for example ``cell net, line 3``; empty if unknown
    source: str = ""  # that line's text
    blocks: tuple[BlockRow, ...] = ()  # the blocks that it runs
    folded: tuple[BlockRow, ...] = ()  # the blocks that it runs and that are collapsed
    # the operators of a collapsed run; ``ins`` and ``outs`` are then the inputs and outputs of the run
    hides: tuple[OpRow, ...] = ()
    took: str = ""  # its time as text; empty if not measured
    share: float = 0.0  # its fraction of the time of all operators

    @property
    def reads(self) -> tuple[VarRow, ...]:
        """Its inputs, slot by slot."""
        return tuple(v for s in self.ins for v in s.vars)

    @property
    def writes(self) -> tuple[VarRow, ...]:
        """Its outputs, slot by slot."""
        return tuple(v for s in self.outs for v in s.vars)

    @property
    def facts(self) -> str:
        """Dtype and shape of its first output that has any."""
        return next((v.facts for v in self.writes if v.facts), "")

    @property
    def left(self) -> str:
        """The names of its outputs, comma-separated."""
        return ", ".join(v.name for v in self.writes)

    @property
    def arguments(self) -> str:
        """The text between its parentheses: inputs, with slot names if there are several, and attributes."""
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
        """Its line as (text, style): style ``name``, its role, ``dim``, or empty.

        Of many results only the first is named, so that the type is not far to the right.
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
        """The number of collapsed operators in words; empty if there are none."""
        if self.hides:
            return plural(sum(1 for _ in self.each()), "op")
        counts = ((b.index, sum(1 for _ in b.each())) for b in self.folded)
        return ", ".join(f"{plural(n, 'op')} in block {index}" for index, n in counts)

    @property
    def types(self) -> str:
        """The types of the collapsed operators, the most frequent first."""
        types = Counter(op.type for op in self.each() if op is not self)
        often = [f"{n} {kind}" if n > 1 else kind for kind, n in types.most_common(_TYPES)]
        return ", ".join(often + ([plural(len(types) - _TYPES, "other type")] if len(types) > _TYPES else []))

    def each(self) -> Iterator[OpRow]:
        """The operator, or those of a collapsed run, and all operators of their blocks."""
        if not self.hides:
            yield self
        for op in self.hides:
            yield from op.each()
        for block in (*self.blocks, *self.folded):
            yield from block.each()


@dataclass(frozen=True, slots=True)
class BlockRow:
    """One block."""

    index: int  # its position in the program
    parent: int  # the parent block, -1 for the first
    ops: tuple[OpRow, ...] = ()
    vars: tuple[VarRow, ...] = ()  # the variables that it declares
    left: int = 0  # number of operators that were not read, nested blocks included
    left_blocks: int = 0  # number of nested blocks that were not read
    left_parameters: int = 0  # number of parameters that were not read

    def walk(self, depth: int = 0) -> Iterator[tuple[int, OpRow]]:
        """Yields (depth, operator) of the shown operators, nested blocks after the operator that runs them."""
        for op in self.ops:
            yield depth, op
            for block in op.blocks:
                yield from block.walk(depth + 1)

    def each(self) -> Iterator[OpRow]:
        """All operators, collapsed or not, in the same order."""
        for op in self.ops:
            yield from op.each()

    def only(self, ops: tuple[OpRow, ...]) -> BlockRow:
        """The block with some of its operators and the variables that they use."""
        part = replace(self, ops=ops, left=0, left_blocks=0, left_parameters=0)
        used = {v.name for op in part.each() for v in (*op.reads, *op.writes)}
        return replace(part, vars=tuple(v for v in self.vars if v.name in used))

    def inside(self) -> Iterator[BlockRow]:
        """The block and its nested blocks, collapsed or not."""
        yield self
        for op in self.each():
            yield from (*op.blocks, *op.folded)


@dataclass(frozen=True, slots=True)
class ProgramPicture:
    """A whole program."""

    root: BlockRow  # the first block; nested ones belong to the operators that run them
    loose: tuple[BlockRow, ...] = ()  # blocks that no operator runs (yet)
    title: str = "program"
    note: str = ""  # which part of the program it is, in words; empty for all of it

    @property
    def blocks(self) -> tuple[BlockRow, ...]:
        """The first block and those that no operator runs."""
        return (self.root, *self.loose)

    def each(self) -> Iterator[OpRow]:
        """All operators, collapsed or not, in the order of the listing."""
        for block in self.blocks:
            yield from block.each()

    def with_blocks(self, change: Callable[[BlockRow], BlockRow]) -> ProgramPicture:
        """A copy with each outermost block replaced by ``change(block)``."""
        return replace(self, root=change(self.root), loose=tuple(map(change, self.loose)))

    @property
    def is_folded(self) -> bool:
        """Whether operators are collapsed."""
        return any(op.hides or op.folded for block in self.blocks for _, op in block.walk())

    @property
    def size(self) -> int:
        """Number of operators, shown or not."""
        return sum(1 for _ in self.each()) + sum(b.left for block in self.blocks for b in block.inside())

    @property
    def counts(self) -> str:
        """Number of blocks, operators and parameters in words."""
        n = sum(1 + b.left_blocks for block in self.blocks for b in block.inside())
        params = sum(v.parameter for v in self.root.vars) + self.root.left_parameters
        counts = ((n, "block"), (self.size, "op"), (params, "parameter"))
        return ", ".join(plural(k, what) for k, what in counts if k) + (f"   {self.note}" if self.note else "")


def _group(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"[{', '.join(names)}]"
