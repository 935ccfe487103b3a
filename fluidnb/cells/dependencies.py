"""Dependencies of a cell on earlier state, and checks whether they still hold."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from fluidnb.cells import saved_layer_objects
from fluidnb.cells.build_state import BuildState, Settings, settings
from fluidnb.cells.delta import Delta
from fluidnb.cells.saved_layer_objects import SavedObject
from fluidnb.program.block import Block
from fluidnb.program.constants import EMPTY_VAR_NAME
from fluidnb.program.operator import Operator
from fluidnb.program.origin import Origin, Recorder
from fluidnb.program.program import Program
from fluidnb.program.snapshot import same_facts, view_facts
from fluidnb.program.stale_handles import block_lives, op_lives
from fluidnb.program.unique_name import UniqueNameGenerator
from fluidnb.program.variable import Variable
from fluidnb.proto.desc import BlockDesc, OpDesc, VarDesc

#: A program -> the runs that made it what it is, in order.
Lineage = Callable[[Program], tuple[Origin, ...]]
#: The value of a name that is not bound.
MISSING = object()
#: Types whose equal values count as the same.
_PLAIN = (str, int, float, bytes)


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """The look-up of a name by a cell."""

    block: BlockDesc
    name: str
    around: bool  # whether the blocks around count
    found: VarDesc | None
    data: bytes  # the variable's bytes then
    facts: dict[str, Any] | None  # its Python facts then

    def holds(self) -> bool:
        """Whether it gives the same now."""
        if not block_lives(self.block) or not program_lives(self.block.program.view):
            return False
        now = self.block.find_var_recursive(self.name) if self.around else self.block.vars.get(self.name)
        if now is not self.found or now is None:
            return now is self.found
        facts = None if now.view is None else view_facts(now)
        return now.pb.SerializePartialToString() == self.data and same_facts(facts, self.facts)


@dataclass(frozen=True, slots=True, eq=False)
class Attribute:
    """An attribute of a class or of a module that a cell reads."""

    owner: type | ModuleType
    name: str

    def value(self) -> Any:
        """Its value, as inherited; `MISSING` for pieces of programs, whose look-ups are compared.

        Of a module only plain values count: packages import what is used.
        """
        if isinstance(self.owner, ModuleType):
            value = vars(self.owner).get(self.name, MISSING)
            return value if isinstance(value, _PLAIN) else MISSING
        value = next((vars(c)[self.name] for c in self.owner.__mro__ if self.name in vars(c)), MISSING)
        return MISSING if isinstance(value, Variable | Operator | Block | Program) else value


def value_of(name: str | Attribute, namespace: Mapping[str, Any]) -> Any:
    """The value of a Python name or of an attribute; `MISSING` where there is none."""
    return name.value() if isinstance(name, Attribute) else namespace.get(name, MISSING)


@dataclass(frozen=True, slots=True, eq=False)
class Reads:
    """Dependencies of one run of a cell."""

    lookups: list[Lookup]
    ops: list[tuple[OpDesc, bytes]]  # operators of earlier cells that it read, and their bytes
    facts: list[tuple[Program, str, Any]]  # program, name and value of a property
    counters: list[tuple[UniqueNameGenerator, str, int]]  # generator, key, and the first number
    lineages: list[tuple[Program, tuple[Origin, ...]]]  # programs that it read as a whole, and the runs before
    uses: dict[str | Attribute, Any]  # Python names and attributes, and their values
    settings: Settings
    saved: list[SavedObject]  # layer objects, containers and records that it read by name or changed

    def hold(self, lineage: Lineage, namespace: Mapping[str, Any]) -> bool:
        """Whether the cell would read the same now."""
        return (
            self.hold_in_python(namespace)
            and all(lookup.holds() for lookup in self.lookups)
            and all(op_lives(op) and op.pb.SerializePartialToString() == data for op, data in self.ops)
            and all(program.__dict__[name] == value for program, name, value in self.facts)
            and all(generator.ids.get(key, 0) == number for generator, key, number in self.counters)
            and all(program_lives(p) and lineage(p) == runs for p, runs in self.lineages)
        )

    def hold_in_python(self, namespace: Mapping[str, Any]) -> bool:
        """Whether Python names, settings and saved objects are as they were; the program is not compared."""
        return (
            self.settings == settings()
            and all(same_value(value_of(name, namespace), value) for name, value in self.uses.items())
            and all(thing.holds() for thing in self.saved)
        )


def program_lives(program: object) -> bool:
    """Whether the cell that created a program is still applied; True for programs created outside cells."""
    return not (isinstance(program, Program) and program.origin is not None and program.origin.fate)


def same_value(now: object, then: object) -> bool:
    """Whether two values are one object, or equal plain values; equal lists are two values."""
    if now is then:
        return True
    if isinstance(now, tuple) and isinstance(then, tuple):
        return len(now) == len(then) and all(same_value(a, b) for a, b in zip(now, then, strict=True))
    return type(now) is type(then) and isinstance(now, _PLAIN) and now == then


def collect(
    recorder: Recorder, deltas: list[Delta], before: BuildState, lineage: Lineage,
    uses: Mapping[str | Attribute, Any], changed: Collection[SavedObject] = (),
) -> Reads:  # fmt: skip
    """Collects the reads of a run from its recorder and its operators, without objects that the run created."""
    old_data = ChainMap(*(shot.data for shot in before.shots.values()))
    old_views = ChainMap(*(shot.views for shot in before.shots.values()))
    old_blocks = {block.desc for shot in before.shots.values() for block in shot.blocks}
    old_programs = set(before.shots)
    lookups = dict(recorder.lookups)
    for delta in deltas:
        for op in delta.ops():
            for name in (*op.input_arg_names(), *op.output_arg_names()):
                if op.block is not None and name != EMPTY_VAR_NAME:
                    lookups.setdefault((op.block, name, True), op.block.find_var_recursive(name))
    read = {id(thing.thing) for thing in (*saved_layer_objects.reached(uses.values(), before.saved), *changed)}
    kept: dict[tuple[BlockDesc, str, bool], VarDesc | None] = {}
    for (block, name, around), found in lookups.items():
        if found is not None and found not in old_data:
            continue
        anchor = _anchor(block, old_blocks)
        if anchor is not None:
            kept.setdefault((anchor, name, around or anchor is not block), found)
        elif block.program.view in old_programs:
            # the block was removed while the cell ran; the blocks around it are not known any more
            recorder.listed.add(block.program.view)

    def had(program: Program, name: str, value: Any) -> bool:
        return program in before.shots and bool(before.shots[program].facts[name] == value)

    return Reads(
        [
            Lookup(b, n, a, f, b"", None) if f is None else Lookup(b, n, a, f, old_data[f], old_views.get(f))
            for (b, n, a), f in kept.items()
        ],
        [(op, old_data[op]) for op in recorder.ops if op in old_data],
        [(p, name, value) for (p, name), value in recorder.facts.items() if had(p, name, value)],
        [(generator, key, number) for (generator, key), number in recorder.counters.items()],
        [(p, lineage(p)) for p in recorder.listed if p in old_programs],
        dict(uses),
        before.settings,
        [thing for thing in before.saved if id(thing.thing) in read],
    )


def _anchor(block: BlockDesc, old: set[BlockDesc]) -> BlockDesc | None:
    """The innermost block around a block (or itself) that was there before."""
    if block in old:
        return block
    if not block_lives(block):
        return None
    return next((b for b in block.chain() if b in old), None)
