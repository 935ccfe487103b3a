"""Lowering: operators resolved, and the variables that need lasting memory; shapes are not known yet.

Such variables are those that several blocks see, those that are fed or fetched, and those that cross a segment.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from fluidnb.errors import FluidError, NotBuiltYet, OpValueError, near
from fluidnb.memory import flags
from fluidnb.op import EMPTY, GRAD, Clock, OpDef, ValuesOf, all_ops, check_loaded, get_op, has_op
from fluidnb.op.define import registry
from fluidnb.program.sub_blocks import own_blocks
from fluidnb.proto.desc import BlockDesc, OpDesc, ProgramDesc
from fluidnb.proto.framework_pb2 import VarType
from fluidnb.runtime.compile.layout import batch_innermost, has_onednn
from fluidnb.runtime.compile.saved_iterations import SavedIterations, kept_names, loops, saved_names
from fluidnb.runtime.interrupt import Run
from fluidnb.utils.source_location import SourceLocation

#: Specializations that are kept; objects kept alive, and segments after guards, before all is bound anew.
_MOST_SPECIALIZATIONS, _MOST_KEPT_ALIVE, _MOST_SEGMENTS = 32, 4096, 4096
#: Bytes of buffers, and evicted specializations, before all is bound anew.
_MOST_BYTES, _MOST_EVICTED = 1 << 27, 1024
#: Bytes of all buffers before the oldest specializations go, and those that stay whatever they take.
_MOST_IN_ALL, _FEW_SPECIALIZATIONS = 1 << 30, 2
#: Lowered forms of a program, one for each set of feeds and fetches, that are kept.
_MOST_FORMS = 128
#: Shapes after which updates are bound apart from the rest; gradients then have separate memory.
_MANY_SHAPES = 3


class LoweredOp:
    """One operator of a lowered program."""

    __slots__ = ("_reads", "_writes", "block", "definition", "desc", "guard", "index", "number")

    def __init__(self, desc: OpDesc, index: int, block: int, number: int = 0) -> None:
        self.desc, self.index, self.block, self.number = desc, index, block, number
        self.definition: OpDef = get_op(desc.optype)
        self._reads = tuple(n for row in desc.ins.values() for n in row if n != EMPTY)
        self._writes = tuple(n for row in desc.outs.values() for n in row if n != EMPTY)
        guard = self.definition.guard  # what the binding depends on beside shapes
        self.guard = None if isinstance(guard, ValuesOf) and not guard.applies(self.inputs) else guard
        try:
            check_loaded(self.definition, desc)
        except FluidError as e:
            raise e.with_context(op=self.text(), where=self.where()) from None

    @property
    def inputs(self) -> dict[str, list[str]]:
        """The names of its inputs by slot, without slots that have none."""
        return {s: n for s, n in self.desc.ins.items() if n and n != [EMPTY]}

    @property
    def outputs(self) -> dict[str, list[str]]:
        """The names of its outputs by slot, without slots that have none."""
        return {s: n for s, n in self.desc.outs.items() if n}

    def reads(self) -> tuple[str, ...]:
        """Names of its inputs."""
        return self._reads

    def writes(self) -> tuple[str, ...]:
        """Names of its outputs."""
        return self._writes

    def text(self) -> str:
        """Index, type and block, for messages."""
        return f"op {self.index} ({self.desc.optype}) in block {self.block}"

    def where(self) -> SourceLocation | None:
        """The user's line, where known."""
        return None if self.desc.view is None else self.desc.view.where

    def __repr__(self) -> str:
        return self.text()


class LoweredBlock:
    """One block of a lowered program."""

    __slots__ = ("desc", "forward", "index", "local", "ops")

    def __init__(
        self, desc: BlockDesc, skip: Iterable[str] = (), fed_rows: Collection[str] = (),
        changed: Mapping[tuple[int, int], OpDesc] | None = None,
    ) -> None:  # fmt: skip
        self.desc, self.index, self.forward = desc, desc.idx, desc.forward_block_idx
        ops = enumerate(desc.ops)
        if changed:
            ops = enumerate(changed.get((desc.idx, i), o) for i, o in ops)
        self.ops = [LoweredOp(o, i, desc.idx) for i, o in ops if o.optype not in skip]
        # the gradient of an array is propagated across iterations, as the array itself is
        forward = desc.program.blocks[self.forward] if self.forward >= 0 and desc.program is not None else None
        declared = {
            name
            for name, var in desc.vars.items()
            if not var.persistable()
            and name not in fed_rows
            and not (
                forward is not None
                and var.type() == VarType.LOD_TENSOR_ARRAY
                and name.partition(GRAD)[0] not in forward.vars
            )
        }
        # what is written without being declared anywhere must not end up in the user's scope
        loose = {n for op in self.ops for n in op.writes() if desc.find_var_recursive(n) is None}
        self.local = frozenset(declared | loose)


def control_names(op: LoweredOp) -> set[str]:
    """The variables that an operator which runs a block reads and writes by itself, with their gradients."""
    names = {*op.reads(), *op.writes()}
    names.update(n for value in op.desc.attrs.values() if isinstance(value, list) for n in value if isinstance(n, str))
    return names | {n + GRAD for n in names}


def _random_blocks(blocks: Sequence[LoweredBlock]) -> set[int]:
    """Indices of the blocks that draw random numbers, and of all blocks around these."""
    indices: set[int] = set()
    for block in blocks:
        if any(op.definition.random for op in block.ops):
            indices.update(around.idx for around in block.desc.chain())
    return indices


def _check_ends(runs: Sequence[Sequence[tuple[int, str]]]) -> None:
    """Refuse a block that runs itself, also by way of others; ``runs`` has inner blocks and operators of each block."""
    left = [len(row) for row in runs]
    run_by: list[list[int]] = [[] for _ in runs]
    for outer, row in enumerate(runs):
        for inner, _ in row:
            run_by[inner].append(outer)
    ending = [at for at, n in enumerate(left) if n == 0]
    for at in ending:  # which grows: blocks whose inner blocks all end
        for outer in run_by[at]:
            left[outer] -= 1
            if left[outer] == 0:
                ending.append(outer)
    block = next((at for at, n in enumerate(left) if n), None)
    seen: list[int] = []
    while block is not None:
        inner, op = next((inner, op) for inner, op in runs[block] if left[inner])
        if block in seen:
            raise OpValueError(
                f"Block {block} runs itself without end.", op=op, attrs={"sub_block": inner},
                expected="a block that does not run this one", received=inner, hint="the program was changed.",
            )  # fmt: skip
        seen.append(block)
        block = inner


def release_oldest(forms: dict[Any, LoweredProgram]) -> None:
    """Release the buffers of a program's forms that ran longest ago, while all forms take much memory or are many.

    Args:
        forms: the lowered forms of one program, the one that ran last at the end.
    """
    known = forms.copy()  # in one step, as other threads add forms now; a list of items is none
    total = sum(form.nbytes for form in known.values())
    for key, form in list(known.items())[:-_FEW_SPECIALIZATIONS]:
        many = len(forms) > _MOST_FORMS
        if not many and total <= _MOST_IN_ALL:
            return
        if form.specializations and form.lock.acquire(False):  # else it is running in another thread
            total -= form.nbytes
            form.forget()
            form.lock.release()
        if many:
            forms.pop(key, None)


class LoweredProgram:
    """A program prepared for one set of feeds and fetches on one place.

    Args:
        fed_rows: names of the variables of block 0 whose fed SelectedRows are in the user's scope.
        changed: (block, index) -> a description that runs instead of the program's own.
    """

    def __init__(
        self, desc: ProgramDesc, feeds: Sequence[str], fetches: Sequence[str], place: Any, seed: int = 0,
        fed_rows: Collection[str] = (), changed: Mapping[tuple[int, int], OpDesc] | None = None,
    ) -> None:  # fmt: skip
        self.desc, self.feeds, self.fetches, self.place, self.seed = desc, tuple(feeds), tuple(fetches), place, seed
        self.version, self.registry_version = desc.version, registry.version
        self.check_nan, self.use_mkldnn = flags.values["check_nan_inf"], flags.values["use_mkldnn"]
        self.missing_ops()
        self._check_blocks()
        self.fed_rows, self.changed = frozenset(fed_rows), dict(changed or {})
        self.blocks = [LoweredBlock(b, ("feed", "fetch"), () if b.idx else fed_rows, changed) for b in desc.blocks]
        self.persistable = {n for b in desc.blocks for n, v in b.vars.items() if v.persistable()} | self.fed_rows
        where: dict[str, set[tuple[int, int]]] = defaultdict(set)
        for block in self.blocks:
            segment = 0
            for op in block.ops:
                segment += op.guard is not None
                for name in (*op.reads(), *op.writes()):
                    where[name].add((block.index, segment))
                segment += op.definition.control
        self._number_random()
        self.writes = Counter(n for block in self.blocks for op in block.ops for n in op.writes())
        self.captured = {n for n, seen in where.items() if len({b for b, _ in seen}) > 1}
        self.pinned = {n for n, seen in where.items() if len(seen) > 1} | set(feeds) | set(fetches)
        self.pinned |= {n for b in self.blocks for op in b.ops if op.definition.control for n in control_names(op)}
        self.kept = kept_names(self.blocks)
        self.steps = SavedIterations(saved_names(self.blocks), self.kept, loops(self.blocks))
        self.outer = {
            b.index: sorted({n for op in b.ops for n in (*op.reads(), *op.writes())} - b.local) for b in self.blocks
        }
        self.random = _random_blocks(self.blocks)
        self.layout = batch_innermost(self) if place.kind == "cpu" else {}
        self.has_onednn = place.kind == "cpu" and has_onednn(self)
        self.lock = threading.Lock()
        self.run = Run()  # of whatever is bound, since it runs under the lock
        self.clock = Clock(seed)
        self.specializations: dict[tuple[Any, ...], Any] = {}
        self.latest: list[Any] | None = None
        self.ran = False  # whether a run has ended
        self.forget()

    def again(self, seed: int, changed: Mapping[tuple[int, int], OpDesc] | None = None) -> LoweredProgram:
        """A new lowering of the program as it is now, for the same feeds and fetches."""
        return LoweredProgram(self.desc, self.feeds, self.fetches, self.place, seed, self.fed_rows, changed)

    def _number_random(self) -> None:
        """Count the operators of each type that draw random numbers."""
        counts: Counter[str] = Counter()
        for block in self.blocks:
            for op in block.ops:
                if op.definition.random:
                    op.number = counts[op.definition.type]
                    counts[op.definition.type] += 1

    @cached_property
    def updates_from(self) -> int:
        """Index of the first of the last operators of block 0 that write persistable tensors of fixed shapes alone.

        They are the steps of optimizers. Their shapes do not depend on the feeds', so they are bound once for all.
        """
        ops, desc = self.blocks[0].ops, self.desc.blocks[0]
        for index in range(len(ops), 0, -1):
            op = ops[index - 1]
            d = op.definition
            if op.guard or d.control or d.random or d.host_only:
                return index
            if not op.writes() or not self.persistable.issuperset(op.writes()):
                return index
            for name in (*op.reads(), *op.writes()):
                var = desc.vars.get(name)
                if var is None or var.type() != VarType.LOD_TENSOR or name in self.captured or name in self.feeds:
                    return index
                if var.lod_level() or min(var.shape(), default=0) < 0:
                    return index
        return 0

    @cached_property
    def handed_over(self) -> frozenset[str]:
        """Names of the variables that the operators before the updates compute for them: the gradients."""
        read = {name for op in self.blocks[0].ops[self.updates_from :] for name in op.reads()}
        return frozenset(read - self.persistable)

    @property
    def has_many_shapes(self) -> bool:
        """Whether feeds of several shapes came, so that more of them are likely."""
        return self.evicted + len(self.specializations) >= _MANY_SHAPES

    @property
    def nbytes(self) -> int:
        """Bytes of the buffers of all specializations; from any thread."""
        updates = (segment for segment, _ in self.updates.copy().values())
        bound = [*self.specializations.copy().values(), *updates]
        arenas: int = sum(one.bound.arena_bytes for one in bound)
        return self.bytes + arenas + (0 if self.templates is None else int(self.templates.nbytes))

    def evict(self) -> None:
        """Drop the least recently used specializations when they are many or large, or everything.

        Bodies of loops stay bound: every batch of texts has a different LoD, but its loops meet numbers of rows that
        were there before.
        """
        kept, total = self.specializations, self.nbytes
        while len(kept) > _MOST_SPECIALIZATIONS or (total > _MOST_IN_ALL and len(kept) > _FEW_SPECIALIZATIONS):
            total -= kept.pop(next(iter(kept))).bound.arena_bytes
            self.evicted += 1
        many = self.evicted and (self.bytes > _MOST_BYTES or self.evicted > _MOST_EVICTED)
        if many or len(self.kept_alive) > _MOST_KEPT_ALIVE or self.segments > _MOST_SEGMENTS:
            self.forget()

    def forget(self) -> None:
        """Drop everything that is bound; the next run binds anew."""
        self.specializations.clear()
        self.evicted = self.bytes = 0
        self.pool: dict[Any, Any] = {}
        self.bodies: dict[Any, Any] = {}
        self.updates: dict[Any, Any] = {}
        self.templates: Any = None  # of bindings for other sizes
        self.kept_alive: list[Any] = []
        self.segments = 0
        self.arrays: list[Any] = []
        self.inner_arrays: dict[int, list[Any]] = defaultdict(list)
        self.movers: set[int] = set()
        self.steps.forget()

    def missing_ops(self) -> None:
        """Raise if the program has operators that are not registered."""
        missing = sorted({o.optype for b in self.desc.blocks for o in b.ops if not has_op(o.optype)})
        if missing:
            raise NotBuiltYet(
                f"This program has operators that are not registered: {', '.join(missing)}.",
                hint=near(missing[0], [d.type for d in all_ops()]) or "define them with fluidnb.op.op.",
            )

    def _check_blocks(self) -> None:
        count = len(self.desc.blocks)
        runs: list[list[tuple[int, str]]] = [[] for _ in range(count)]
        for block in self.desc.blocks:
            for what, index in (("is nested in", block.parent_idx), ("is the gradient of", block.forward_block_idx)):
                if index >= block.idx:
                    raise OpValueError(
                        f"Block {block.idx} {what} block {index}, which does not come before it.",
                        expected=f"a block up to {block.idx - 1}", received=index, hint="the program was changed.",
                    )  # fmt: skip
            for at, op in enumerate(block.ops):
                if get_op(op.optype).control and not own_blocks(op):
                    raise OpValueError(
                        f"{op.optype} does not say which block it runs.",
                        op=f"op {at} ({op.optype}) in block {block.idx}", expected="the attribute sub_block",
                        received=", ".join(op.attrs) or "no attributes", hint="the program was changed.",
                    )  # fmt: skip
                for index in own_blocks(op):
                    if not 0 <= index < count:
                        raise OpValueError(
                            f"{op.optype} runs block {index}, which the program does not have.",
                            op=f"op {at} ({op.optype}) in block {block.idx}",
                            expected=f"a block up to {count - 1}", received=index, hint="the program was changed.",
                        )  # fmt: skip
                    runs[block.idx].append((index, f"op {at} ({op.optype}) in block {block.idx}"))
        _check_ends(runs)

    @cached_property
    def unfed(self) -> list[str]:
        """Names of data variables of block 0 that are read before anything writes them, and are not fed."""
        written: set[str] = {*self.feeds, *self.fed_rows}
        names: list[str] = []
        desc = self.desc.blocks[0]
        for op in self.blocks[0].ops:
            # delete_var also lists names that memory_optimize has replaced, so that a fetch of one is explained
            for name in op.reads() if op.desc.optype != "delete_var" else ():
                var = desc.vars.get(name)
                if name not in written and var is not None and var.is_data() and name not in names:
                    names.append(name)
            written.update(op.writes())
        return names

    def describe(self) -> str:
        """A line for each operator, with the transforms around its kernel once it is bound."""
        lines = []
        for block in self.blocks:
            lines.append(f"block {block.index}")
            for op in block.ops:
                marks = self.notes.get((block.index, op.index), [])
                lines.append(f"  {op.index} {op.desc.optype}" + "".join(f"  [{m}]" for m in marks))
        return "\n".join(lines)

    @property
    def notes(self) -> dict[tuple[int, int], list[str]]:
        """(block, operator) -> transforms around its kernel, for those that are bound."""
        notes: dict[tuple[int, int], list[str]] = self.pool.setdefault("notes", {})
        return notes
