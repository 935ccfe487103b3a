"""Snapshots: all of a program as it is, to go back to with the same bytes and the same objects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from fluidnb.proto import framework_pb2 as pb2
from fluidnb.proto.desc import BlockDesc, OpDesc, ProgramDesc, VarDesc

if TYPE_CHECKING:
    from fluidnb.program.program import Program

Desc: TypeAlias = OpDesc | VarDesc


@dataclass(frozen=True, slots=True, eq=False)
class BlockShot:
    """A block at a snapshot: which objects it held, in which order."""

    desc: BlockDesc  # the block
    head: bytes  # the bytes of its other fields: index, parent, forward block
    ops: tuple[OpDesc, ...]  # its operators
    vars: dict[str, VarDesc]  # its variables by name


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """A program at one moment."""

    program: Program
    version: int  # its version then
    head: bytes  # the bytes of its other fields
    blocks: tuple[BlockShot, ...]
    data: dict[Desc, bytes]  # operator or variable -> its bytes
    views: dict[VarDesc, dict[str, Any]]  # variable -> what Python knew of it
    facts: dict[str, Any]  # what Python knew of the program


def take(program: Program) -> Snapshot:
    """All of a program as it is now; the same snapshot again while the program is not edited."""
    facts = {name: program.__dict__[name] for name in program.FACTS}
    last = program.last_snapshot
    if last is not None and last.version == program.version and last.facts == facts:
        return last
    data: dict[Desc, bytes] = {}
    views: dict[VarDesc, dict[str, Any]] = {}
    for block in program.desc.blocks:
        for op in block.ops:
            if op.saved is None:
                op.saved = op.pb.SerializePartialToString()
            data[op] = op.saved
        for var in block.vars.values():
            if var.saved is None:
                var.saved = var.pb.SerializePartialToString(), None if var.view is None else view_facts(var)
            data[var], facts_of_view = var.saved
            if facts_of_view is not None:
                views[var] = facts_of_view
    blocks = tuple(
        BlockShot(b, b.pb.SerializePartialToString(), tuple(b.ops), dict(b.vars)) for b in program.desc.blocks
    )
    head = program.desc.pb.SerializePartialToString()
    program.last_snapshot = Snapshot(program, program.version, head, blocks, data, views, facts)
    return program.last_snapshot


def as_desc(shot: Snapshot) -> ProgramDesc:
    """The program of a snapshot as a separate description."""
    message = pb2.ProgramDesc()
    message.MergeFromString(shot.head)
    for block in shot.blocks:
        row = message.blocks.add()
        row.MergeFromString(block.head)
        for var in block.vars.values():
            row.vars.add().MergeFromString(shot.data[var])
        for op in block.ops:
            row.ops.add().MergeFromString(shot.data[op])
    return ProgramDesc.parse_from_string(message.SerializePartialToString())


def restore(shot: Snapshot) -> None:
    """Make a program what it was at a snapshot.

    Its version rises all the same: who remembers the version of a state in between must not mistake this one for it.
    """
    program, desc = shot.program, shot.program.desc
    for gone in descs(program):
        gone.block = None
    reset(desc.pb, shot.head)
    desc.blocks[:] = [b.desc for b in shot.blocks]
    for block in shot.blocks:
        reset(block.desc.pb, block.head)
        block.desc.ops[:] = block.ops
        block.desc.vars.clear()
        block.desc.vars.update(block.vars)
        contents: list[Desc] = [*block.ops, *block.vars.values()]
        for part in contents:
            part.block = block.desc
    for part, data in shot.data.items():
        rewrite(part, data)
        if isinstance(part, VarDesc) and part.view is not None:
            set_view(part, shot.views.get(part))
    program.__dict__.update(shot.facts)
    desc.touch()
    program.last_snapshot = replace(shot, version=desc.version)


def descs(program: Program) -> Iterator[Desc]:
    """The operators and variables of a program."""
    for block in program.desc.blocks:
        yield from block.ops
        yield from block.vars.values()


def reset(message: Any, data: bytes) -> None:
    """Make a message what it was when it gave these bytes."""
    if message.SerializePartialToString() != data:
        message.Clear()
        message.MergeFromString(data)


def rewrite(desc: Desc, data: bytes) -> None:
    """Make an operator or variable what it was when it gave these bytes."""
    if desc.pb.SerializePartialToString() == data:
        return
    desc.saved = None
    if isinstance(desc, OpDesc):
        desc.copy_from(OpDesc.over(pb2.OpDesc.FromString(data)))
    else:
        desc._restore(data)


def view_facts(desc: VarDesc) -> dict[str, Any]:
    """Python attributes of a variable with a view: not its last writer, which is recomputed, nor what the class has."""
    kind = type(desc.view)
    facts = {name: fact for name, fact in desc.view.__dict__.items() if name != "_op"}
    return {name: fact for name, fact in facts.items() if fact is not getattr(kind, name, kind)}


def same_facts(before: dict[str, Any] | None, after: dict[str, Any] | None) -> bool:
    """Whether two sets of facts agree, variables by identity; None is as good as a new view."""
    if before is None or after is None:
        return before is after or _fresh(after or before or {})
    return before.keys() == after.keys() and all(_equal(v, after[k]) for k, v in before.items())


def _fresh(facts: dict[str, Any]) -> bool:
    known = {"block", "desc", "origin"}
    plain = {"trainable": True, "optimize_attr": {"learning_rate": 1.0}}
    return all(k in known or v is None or k in plain and _equal(v, plain[k]) for k, v in facts.items())


def _equal(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_equal(v, b[k]) for k, v in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_equal(x, y) for x, y in zip(a, b, strict=True))
    return isinstance(a, str | int | float) and isinstance(b, str | int | float) and a == b


def set_view(desc: VarDesc, facts: dict[str, Any] | None) -> None:
    """Restore the Python facts of a variable; None resets a view that was not there."""
    view = desc.view
    kept = {name: view.__dict__[name] for name in ("block", "desc", "origin")}
    view.__dict__.clear()
    view.__dict__.update({**kept, **view._defaults(), **(facts or {})})
    if desc.saved is not None:
        desc.saved = desc.saved[0], view_facts(desc) if facts is None else facts
