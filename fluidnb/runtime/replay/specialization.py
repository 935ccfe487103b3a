"""Specializations: a lowered program bound for one scope and one signature of feeds."""

from collections.abc import Mapping, Sequence
from typing import Any

from fluidnb import memory
from fluidnb.errors import EnforceNotMet, FluidError
from fluidnb.op.define import registry
from fluidnb.runtime.blas_threads import one_thread
from fluidnb.runtime.compile.layout import order_of
from fluidnb.runtime.compile.lowering import LoweredProgram
from fluidnb.runtime.errstate import mute, unmute
from fluidnb.runtime.feed_fetch import Fed
from fluidnb.runtime.replay.replay import root_segment, run_segments
from fluidnb.runtime.replay.replay_memory import ReplayMemory, ordered
from fluidnb.runtime.replay.segment import Segment
from fluidnb.runtime.scope import Scope
from fluidnb.values import invalidation as epoch
from fluidnb.values.device_context import DeviceContext
from fluidnb.values.move_value import move_value
from fluidnb.values.selected_rows import SelectedRows
from fluidnb.values.tensor import LoDTensor
from fluidnb.values.variable import Variable

#: Bytes of a feed or result from which on it is worth having native code use the user's array: a copy takes 5 us.
_LARGE = 1 << 16


class Specialization:
    """A bound run.

    Attributes:
        feeds: buffer, name, LoD, shape and dtype of each.
        direct: its large feeds and results, where native code may use the user's arrays.
        fetches: (array, LoD) of the fetches when these are the same arrays in runs that end as the first, else None.
        last: the segment with which the first run ended.
        epoch: `fluidnb.values.invalidation` at the last check of its bindings.
        stale: whether its bindings read a persistable variable that they gave another buffer, so that they serve once.
    """

    __slots__ = (
        "before", "bound", "desc", "direct", "epoch", "feeds", "fetch_list", "fetches", "last", "local", "lowered",
        "outside", "registry_version", "root", "rows", "scope", "stale", "version",
    )  # fmt: skip

    def __init__(self, lowered: LoweredProgram, scope: Scope, values: Mapping[str, Fed]) -> None:
        self.lowered, self.scope, self.desc = lowered, scope, lowered.desc
        self.version, self.registry_version = lowered.version, lowered.registry_version
        bring_here(lowered, scope)
        self.before = _buffers(lowered, scope)
        self.stale = False
        self.bound = ReplayMemory(lowered)
        self.local = Scope(scope, lowered.blocks[0])
        self.feeds: list[tuple[Any, str, Any, tuple[int, ...], Any]] = []
        for name, (array, lod) in values.items():
            try:
                buffer = ordered(self.bound.real, array.shape, array.dtype, order_of(lowered.layout, name, array.shape))
            except FluidError as e:
                e.with_context(slots=[("fed", name, str(array.dtype), array.shape)])
                raise
            memory.tag(buffer, name)
            self.local.var(name).value = LoDTensor(buffer, lod, lowered.place, name)
            self.feeds.append((buffer, name, lod, buffer.shape, buffer.dtype))
        self.root: Segment = root_segment(self.bound, lowered.blocks[0], self.local)
        if lowered.has_many_shapes and lowered.place.kind == "cpu" and not lowered.check_nan:
            from fluidnb.runtime.replay.size_templates import SizeTemplates  # most programs have few sizes

            lowered.templates = lowered.templates or SizeTemplates()
            same = (id(scope), *((name, array.ndim, array.dtype, len(lod)) for name, (array, lod) in values.items()))
            lowered.templates.begin(self.bound, same, self.fed(), self.before)
        self.direct: Any = None
        self.fetches: list[tuple[Any, Any]] | None = None
        self.last: Segment | None = None
        self.fetch_list: list[Any] = []  # of the last run
        self.epoch = -1
        self.outside: list[tuple[Any, LoDTensor, Any, Any]] = []
        self.rows: list[Any] = []

    def run(self, run_number: int) -> list[Any]:
        """Make the calls of a run, counted from 0; gives (array, LoD) over the run's buffer, or a value, per fetch."""
        lowered, run, clock = self.lowered, self.bound.run, self.bound.clock
        for array in lowered.arrays:
            array.clear()
        if lowered.steps.taken:
            lowered.steps.start()
        clock.run, clock.path = run_number, 0
        if self.bound.place_kind != "cpu":
            DeviceContext.get(lowered.place).use()
        token = mute()
        run.begin()
        try:
            if lowered.has_onednn:
                with one_thread:
                    leaf = run_segments(self.root)
            else:
                leaf = run_segments(self.root)
        finally:
            unmute(token)
            run.end()
        if self.fetches is not None and leaf is self.last:
            return self.fetches
        values = [_fetched(leaf.scope, name) for name in lowered.fetches]
        if self.epoch < 0:
            self._settle(values)
            self.last = leaf
        return values

    def fill(self, values: Mapping[str, Fed]) -> None:
        """Copy the feeds in."""
        if self.direct is not None:
            self.direct.put_back()
        DeviceContext.get(self.lowered.place).fill_all([(row[0], values[row[1]][0]) for row in self.feeds])

    def fed(self) -> dict[str, Fed]:
        """The feeds by name, in the buffers of the run."""
        return {name: (buffer, lod) for buffer, name, lod, _, _ in self.feeds}

    def drop(self) -> None:
        """Release its buffers now: a traceback may refer to it for long, and the caller needs the memory."""
        self.feeds.clear()
        self.local.vars.clear()
        self.root = root_segment(self.bound, self.lowered.blocks[0], self.local)
        for buffers in (self.bound.arenas, self.bound.buffers, self.bound.views):
            buffers.clear()

    def _settle(self, values: Sequence[Any]) -> None:
        """Record, after the first run, the buffers on which the next one may rely."""
        lowered = self.lowered
        ops = [op for block in lowered.blocks for op in block.ops]
        unset = {n for op in ops for slot in op.definition.unset for n in op.inputs.get(slot, ())}
        for name, now in _buffers(lowered, self.scope).items():
            then = self.before.get(name)
            if then is None:  # written first, unless its operator also takes it without a value
                self.stale |= name in unset
            else:
                self.stale |= now[0] is not then[0] or now[1] != then[1]
        self.before = {}
        for variable in _outside(lowered, self.scope):
            if type(variable.value) is LoDTensor:
                tensor = variable.value
                tensor.bound = True
                self.outside.append((variable, tensor, tensor.array, tensor.lod_))
            elif isinstance(variable.value, SelectedRows):
                variable.value.value.bound = True
                self.rows.append(variable)
        scope: Scope | None = self.scope
        while scope is not None:
            scope.bound = True
            scope = scope.parent
        self.epoch = -1 if self.stale else epoch.value
        if _is_fixed(self.root) and all(type(v) is tuple for v in values):
            self.fetches = list(values)
            self._find_large_arrays(values)

    def _find_large_arrays(self, fetched: Sequence[tuple[Any, Any]]) -> None:
        """Prepare for feeds and results that need no copy, where the program is one segment on the host."""
        lowered = self.lowered
        if self.bound.place_kind != "cpu" or self.root.guard is not None:
            return
        feeds = {name: buffer for buffer, name, *_ in self.feeds if buffer.nbytes >= _LARGE}
        results = [] if any(lod for _, lod in fetched) else enumerate(zip(lowered.fetches, fetched, strict=True))
        own = {
            number: array for number, (name, (array, _)) in results
            if array.nbytes >= _LARGE and name in self.local.vars and array.nbytes == memory.root(array).nbytes
        }  # fmt: skip
        if (feeds or own) and not any(op.definition.host_only for block in lowered.blocks for op in block.ops):
            from fluidnb.runtime.replay.direct_arrays import DirectArrays  # few programs have such

            self.direct = DirectArrays(feeds, own, [array for array, _ in fetched], self.root)

    def is_good(self, scope: Scope) -> bool:
        """Whether its bindings still hold: the same registry, and the same buffers in the user's scope."""
        if self.stale or self.scope is not scope or self.registry_version != registry.version:
            return False
        if self.epoch != epoch.value:
            for variable, tensor, array, lod in self.outside:
                if (
                    variable.value is not tensor
                    or tensor.array is not array
                    or tensor.lod_ != lod
                    or scope.find_var(variable.name) is not variable
                ):
                    return False
            for variable in self.rows:  # these are looked up in each run, wherever their values were put
                move_value(variable.value, self.lowered.place)
            self.epoch = epoch.value
        return True


def _is_fixed(segment: Segment) -> bool:
    """Whether all runs end with the same arrays: no guard tests values, and no block moves or creates variables."""
    ends = segment.end > segment.start and segment.block.ops[segment.end - 1].definition.control
    control = segment.calls[-1][1][0] if ends else None
    if control is None:
        return segment.guard is None
    bodies = list(control.roots.values())
    if not control.is_fixed or not bodies or len(segment.next) > 1:
        return False
    if any(body.guard is not None or body.block.index in segment.bound.lowered.movers for body in bodies):
        return False
    return segment.guard is None or all(map(_is_fixed, segment.next.values()))


def bring_here(lowered: LoweredProgram, scope: Scope) -> None:
    """Move the values of the user's scope that a program reads or writes to the program's place."""
    for variable in _outside(lowered, scope):
        move_value(variable.value, lowered.place)


def _outside(lowered: LoweredProgram, scope: Scope) -> list[Variable]:
    """The variables of the user's scope that a program reads or writes."""
    found = (scope.find_var(name) for name in {n for row in lowered.outer.values() for n in row})
    return [variable for variable in found if variable is not None]


def _buffers(lowered: LoweredProgram, scope: Scope) -> dict[str, tuple[Any, Any]]:
    """The array and the LoD of each tensor of the user's scope that a program reads or writes."""
    values = ((variable.name, variable.value) for variable in _outside(lowered, scope))
    return {name: (v.array, v.lod_) for name, v in values if type(v) is LoDTensor and v.array is not None}


def _fetched(scope: Scope, name: str) -> Any:
    variable = scope.find_var(name)
    value = None if variable is None else variable.value
    if type(value) is LoDTensor and value.array is not None:
        return (value.array, value.lod_)
    if value is None or type(value) is LoDTensor:
        raise EnforceNotMet(
            f'"{name}" was fetched but has no value.',
            received="no operator of the program wrote it in this run, and it was not fed",
            hint="if it is a parameter, run the startup program first.",
        )
    return value
