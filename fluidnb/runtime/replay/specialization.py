"""Entries: a plan bound for one scope and one signature of feeds, ready to run again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fluidnb import memory
from fluidnb.errors import EnforceNotMet, FluidError
from fluidnb.op.define import registry
from fluidnb.runtime.compile.layout import order_of
from fluidnb.runtime.compile.lowering import LoweredProgram
from fluidnb.runtime.errstate import mute, unmute
from fluidnb.runtime.feed_fetch import Fed
from fluidnb.runtime.interrupt import Run
from fluidnb.runtime.replay.replay import root_node, walk
from fluidnb.runtime.replay.replay_memory import ReplayMemory, ordered
from fluidnb.runtime.replay.segment import Segment
from fluidnb.runtime.scope import Scope
from fluidnb.values import invalidation as epoch
from fluidnb.values.device_context import DeviceContext
from fluidnb.values.move_value import bring
from fluidnb.values.selected_rows import SelectedRows
from fluidnb.values.tensor import LoDTensor


class Specialization:
    """A bound run.

    Args:
        plan: the plan.
        scope: the user's scope.
        values: the feeds.

    Attributes:
        feeds: (buffer, name, LoD) of what is fed.
        node: the first node of block 0.
        fetches: (array, LoD) of what is fetched when these are always the same arrays, else None.
        epoch: the state of the world in which its bindings were last found good.
        stale: whether its bindings read a persistable variable that they gave another buffer, so that they serve once.
    """

    __slots__ = (
        "before", "bound", "desc", "epoch", "feeds", "fetch_key", "fetches", "local", "node", "outside", "plan",
        "registry_version", "rows", "scope", "stale", "version",
    )  # fmt: skip

    def __init__(self, plan: LoweredProgram, scope: Scope, values: Mapping[str, Fed]) -> None:
        self.plan, self.scope, self.desc = plan, scope, plan.desc
        self.version, self.registry_version = plan.version, plan.registry_version
        bring_here(plan, scope)
        self.before = _buffers(plan, scope)
        self.stale = False
        self.bound = ReplayMemory(plan, Run())
        self.local = Scope(scope, plan.blocks[0])
        self.feeds: list[tuple[Any, str, Any]] = []
        for name, (array, lod) in values.items():
            try:
                buffer = ordered(self.bound.real, array.shape, array.dtype, order_of(plan.layout, name, array.shape))
            except FluidError as e:
                e.with_context(slots=[("fed", name, str(array.dtype), array.shape)])
                raise
            memory.tag(buffer, name)
            self.local.var(name).value = LoDTensor(buffer, lod, plan.place, name)
            self.feeds.append((buffer, name, lod))
        self.node: Segment = root_node(self.bound, plan.blocks[0], self.local)
        self.fetches: list[tuple[Any, Any]] | None = None
        self.fetch_key: tuple[int, ...] = ()
        self.epoch = -1
        self.outside: list[tuple[Any, LoDTensor, Any, Any]] = []
        self.rows: list[Any] = []

    def run(self, run_number: int) -> list[Any]:
        """Make the calls.

        Args:
            run_number: which run of the program in this scope it is, from 0.

        Returns:
            What is fetched: a LoDTensor over the run's own buffer, or another value, for each name.
        """
        plan, run = self.plan, self.bound.run
        for array in plan.arrays:
            array.clear()
        plan.steps.start()
        plan.clock.run, plan.clock.path = run_number, 0
        if self.bound.place_kind != "cpu":
            DeviceContext.get(plan.place).use()
        token = mute()
        run.begin()
        try:
            leaf = walk(self.node)
        finally:
            unmute(token)
            run.end()
        if self.fetches is not None:
            return self.fetches
        values = [_fetched(leaf.scope, name) for name in plan.fetches]
        if self.epoch < 0:
            self._settle(values)
        return values

    def fill(self, values: Mapping[str, Fed]) -> None:
        """Copy the feeds in.

        Args:
            values: the feeds.
        """
        DeviceContext.get(self.plan.place).fill_all([(buffer, values[name][0]) for buffer, name, _ in self.feeds])

    @property
    def placed(self) -> int:
        """Bytes of the memory in which its buffers are placed."""
        return sum(arena.nbytes for arena in self.bound.arenas.values())

    def fed(self) -> dict[str, Fed]:
        """The feeds by name, in the buffers of the run."""
        return {name: (buffer, lod) for buffer, name, lod in self.feeds}

    def drop(self) -> None:
        """Let its buffers go now: a traceback may hold it for long, and who has no memory left tries again."""
        self.feeds.clear()
        self.local.vars.clear()
        self.node = root_node(self.bound, self.plan.blocks[0], self.local)
        for held in (self.bound.arenas, self.bound.buffers, self.bound.views):
            held.clear()

    def _settle(self, values: Sequence[Any]) -> None:
        """After the first run: what the next one may rely on."""
        plan = self.plan
        unset = {
            n
            for block in plan.blocks
            for op in block.ops
            for slot in op.definition.unset
            for n in op.inputs.get(slot, ())
        }
        for name, now in _buffers(plan, self.scope).items():
            then = self.before.get(name)
            if then is None:  # written first, unless its operator also takes it without a value
                self.stale |= name in unset
            else:
                self.stale |= now[0] is not then[0] or now[1] != then[1]
        self.before = {}
        names = {n for row in plan.outer.values() for n in row}
        for name in names:
            variable = self.scope.find_var(name)
            if variable is not None and type(variable.value) is LoDTensor:
                tensor = variable.value
                tensor.bound = True
                self.outside.append((variable, tensor, tensor.array, tensor.lod_))
            elif variable is not None and isinstance(variable.value, SelectedRows):
                variable.value.value.bound = True
                self.rows.append(variable)
        scope: Scope | None = self.scope
        while scope is not None:
            scope.bound = True
            scope = scope.parent
        self.epoch = -1 if self.stale else epoch.value
        inside = any(op.definition.control for op in plan.blocks[0].ops[-1:])
        if self.node.guard is None and not inside and all(type(v) is tuple for v in values):
            self.fetches = list(values)

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
                bring(variable.value, self.plan.place)
            self.epoch = epoch.value
        return True


def bring_here(plan: LoweredProgram, scope: Scope) -> None:
    """Move what the user's scope holds for a plan, and what is on another place, to the plan's place.

    Args:
        plan: the plan.
        scope: the user's scope.
    """
    for name in {n for row in plan.outer.values() for n in row}:
        variable = scope.find_var(name)
        if variable is not None:
            bring(variable.value, plan.place)


def _buffers(plan: LoweredProgram, scope: Scope) -> dict[str, tuple[Any, Any]]:
    """The array and the LoD of each variable of the user's scope that a plan reads or writes and that has a value."""
    found = {}
    for name in {n for row in plan.outer.values() for n in row}:
        variable = scope.find_var(name)
        if variable is not None and type(variable.value) is LoDTensor and variable.value.array is not None:
            found[name] = variable.value.array, variable.value.lod_
    return found


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
