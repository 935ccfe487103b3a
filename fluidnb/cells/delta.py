"""Changes of one cell to one program, which can be applied and reverted, also after changes of earlier cells."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fluidnb.program import snapshot
from fluidnb.program.origin import Recorder
from fluidnb.program.program import Program
from fluidnb.program.snapshot import BlockShot, Desc, Snapshot
from fluidnb.program.stale_handles import block_lives, op_lives, var_lives
from fluidnb.proto.desc import BlockDesc, OpDesc, VarDesc
from fluidnb.proto.framework_pb2 import AttrType

_BLOCKS = (AttrType.BLOCK, AttrType.BLOCKS)


@dataclass(frozen=True, slots=True, eq=False)
class Growth:
    """Additions to an existing block."""

    block: BlockDesc
    front: list[OpDesc]  # operators in front of the old ones
    back: list[OpDesc]  # operators behind them
    vars: list[VarDesc]  # variables behind the old ones
    names: list[str]


@dataclass(slots=True, eq=False)
class Addition:
    """A change that adds, and edits single operators and variables: it fits programs that differ elsewhere."""

    program: Program
    growths: list[Growth] = field(default_factory=list)  # of blocks that were there
    # new blocks with their contents, the block around each, and the block whose gradient it computes
    blocks: list[tuple[BlockDesc, BlockDesc, BlockDesc | None]] = field(default_factory=list)
    # operators and variables that were there: their bytes before and after
    edits: list[tuple[Desc, bytes, bytes]] = field(default_factory=list)
    # variables that were there: their Python facts before and after
    views: list[tuple[VarDesc, dict[str, Any] | None, dict[str, Any] | None]] = field(default_factory=list)
    # attributes of new operators that hold blocks
    links: list[tuple[OpDesc, str, list[BlockDesc]]] = field(default_factory=list)
    # Python facts of the program: name, before, after
    facts: list[tuple[str, Any, Any]] = field(default_factory=list)

    def fits(self) -> bool:
        """Whether the program as it is now can take the change."""
        new = {block for block, _, _ in self.blocks}
        return (
            all(block_lives(g.block) and g.block.vars.keys().isdisjoint(g.names) for g in self.growths)
            and all(block_lives(b) or b in new for _, parent, forward in self.blocks for b in (parent, forward) if b)
            and all(block_lives(b) or b in new for _, _, linked in self.links for b in linked)
            and all(lives(part) and part.pb.SerializePartialToString() == before for part, before, _ in self.edits)
            and all(var_lives(var) and snapshot.same_facts(_facts(var), before) for var, before, _ in self.views)
            and all(self.program.__dict__[name] == before for name, before, _ in self.facts)
        )

    def apply(self) -> None:
        """Apply the change, at the ends of the lists."""
        blocks = self.program.desc.blocks
        for block, parent, forward in self.blocks:
            block.idx, block.parent_idx = len(blocks), parent.idx
            if forward is not None:
                block.forward_block_idx = forward.idx
            blocks.append(block)
            _settle([*block.ops, *block.vars.values()], block)
        for op, name, linked in self.links:
            kind = op.attr_type(name)
            value = linked[0].idx if kind == AttrType.BLOCK else [b.idx for b in linked]
            if op.attrs[name] != value:
                op.set_attr(name, value, kind)
        for growth in self.growths:
            growth.block.ops[:0] = growth.front
            growth.block.ops.extend(growth.back)
            growth.block.vars.update(zip(growth.names, growth.vars, strict=True))
            _settle([*growth.front, *growth.back, *growth.vars], growth.block)
        self._edit(after=True)

    def revert(self) -> None:
        """Revert the change; only while it is the last."""
        self._edit(after=False)
        for growth in self.growths:
            ops = growth.block.ops
            del ops[len(ops) - len(growth.back) :], ops[: len(growth.front)]
            for name in growth.names:
                del growth.block.vars[name]
            _settle([*growth.front, *growth.back, *growth.vars], None)
        blocks = self.program.desc.blocks
        del blocks[len(blocks) - len(self.blocks) :]

    def _edit(self, after: bool) -> None:
        for part, old, new in self.edits:
            snapshot.rewrite(part, new if after else old)
        for var, before, then in self.views:
            snapshot.set_view(var, then if after else before)
        for name, before, then in self.facts:
            self.program.__dict__[name] = then if after else before
        self.program.desc.touch()

    def ops(self) -> Iterator[OpDesc]:
        """The operators that it adds."""
        for growth in self.growths:
            yield from growth.front
            yield from growth.back
        for block, _, _ in self.blocks:
            yield from block.ops


@dataclass(frozen=True, slots=True, eq=False)
class Rewrite:
    """A change that does more than add: it fits only the program that it was made for."""

    before: Snapshot
    after: Snapshot

    @property
    def program(self) -> Program:
        """The program."""
        return self.after.program

    def fits(self) -> bool:
        """True; `Reads.hold` compares the lineage of the program."""
        return True

    def apply(self) -> None:
        """Apply the change."""
        snapshot.restore(self.after)

    def revert(self) -> None:
        """Revert the change."""
        snapshot.restore(self.before)

    def ops(self) -> Iterator[OpDesc]:
        """No operators: all of the program counts as read."""
        return iter(())


Delta = Addition | Rewrite


def _settle(parts: list[Desc], block: BlockDesc | None) -> None:
    for part in parts:
        part.block = block


def lives(part: Desc) -> bool:
    """Whether an operator or variable is part of its program."""
    return op_lives(part) if isinstance(part, OpDesc) else var_lives(part)


def _facts(var: VarDesc) -> dict[str, Any] | None:
    return None if var.view is None else snapshot.view_facts(var)


def between(before: Snapshot, after: Snapshot, recorder: Recorder) -> Delta | None:
    """The change of a program between two snapshots; the recorder gets programs whose lists matter as read."""
    change = _addition(before, after, recorder)
    if change is None:
        recorder.listed.add(after.program)
        return Rewrite(before, after)
    empty = not (change.growths or change.blocks or change.edits or change.views or change.facts)
    return None if empty else change


def _addition(before: Snapshot, after: Snapshot, recorder: Recorder) -> Addition | None:
    change = Addition(after.program)
    count = len(before.blocks)
    if before.head != after.head or [b.desc for b in before.blocks] != [b.desc for b in after.blocks[:count]]:
        return None
    for old, new in zip(before.blocks, after.blocks, strict=False):
        growth = _growth(old, new)
        if growth is None or old.head != new.head:
            return None
        if not old.ops and old.desc in recorder.prepended and (growth.front or growth.back):
            # the order of new operators around removed ones is unknown
            recorder.listed.add(after.program)
        if growth.front or growth.back or growth.vars:
            change.growths.append(growth)
    blocks = [b.desc for b in after.blocks]
    for shot in after.blocks[count:]:
        block = shot.desc
        forward = blocks[block.forward_block_idx] if block.forward_block_idx >= 0 else None
        change.blocks.append((block, blocks[block.parent_idx], forward))
    for part, data in before.data.items():
        if after.data[part] != data:
            if isinstance(part, OpDesc) and any(part.attr_type(n) in _BLOCKS for n in part.attr_names()):
                return None
            change.edits.append((part, data, after.data[part]))
    for var, then in after.views.items():
        facts = before.views.get(var)
        if facts is not then and var in before.data and not snapshot.same_facts(facts, then):
            change.views.append((var, facts, then))
    for op in change.ops():
        for name in op.attr_names():
            if op.attr_type(name) in _BLOCKS:
                value = op.attrs[name]
                indices = [value] if op.attr_type(name) == AttrType.BLOCK else value
                change.links.append((op, name, [blocks[i] for i in indices]))
    change.facts = [(n, v, after.facts[n]) for n, v in before.facts.items() if after.facts[n] != v]
    return change


def _growth(old: BlockShot, new: BlockShot) -> Growth | None:
    """The additions to a block, or None when its lists changed in other ways."""
    start = new.ops.index(old.ops[0]) if old.ops and old.ops[0] in new.ops else 0
    end = start + len(old.ops)
    names, known = list(new.vars), len(old.vars)
    if new.ops[start:end] != old.ops or names[:known] != list(old.vars):
        return None
    variables = list(new.vars.values())
    if variables[:known] != list(old.vars.values()):
        return None
    return Growth(old.desc, list(new.ops[:start]), list(new.ops[end:]), variables[known:], names[known:])
