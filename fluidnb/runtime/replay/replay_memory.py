"""Memory policy of the compiled run: buffers that last, and placeholders of those in the arena."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from fluidnb import memory
from fluidnb.op import Clock
from fluidnb.runtime.compile.layout import has_order, order_of
from fluidnb.runtime.compile.lowering import LoweredProgram
from fluidnb.runtime.compile.saved_iterations import SavedIteration
from fluidnb.runtime.scope import Scope
from fluidnb.values.device_context import DeviceContext, place_of
from fluidnb.values.tensor import LoDTensorArray

Array = Any


def ordered(make: Any, shape: tuple[int, ...], dtype: np.dtype[Any], order: tuple[int, ...] | None) -> Array:
    """An array by ``make(shape, dtype)`` with its axes ``order``ed in memory, outermost first; None is C order."""
    if order is None:
        return make(shape, dtype)
    inverse = tuple(order.index(i) for i in range(len(order)))
    return make(tuple(shape[i] for i in order), dtype).transpose(inverse)


#: Buffers that have no place yet: they are moved into the arena before the first call is made.
_sketch = memory.Reserve()


class Made(NamedTuple):
    """A buffer that was allocated, whether it is a placeholder, and arguments of `ReplayMemory.alloc`."""

    array: Array
    placed: bool
    name: str | None
    outer: bool
    order: Any
    where: int


class Unexpected(Exception):
    """An operator was bound in another way than a template expects: its segment is bound from the beginning."""


class ReplayMemory:
    """The memory policy of a specialization's binders; see `fluidnb.op.memory_policy.Memory`."""

    __slots__ = (
        "arenas", "buffers", "clock", "handed_over", "kind", "lowered", "made", "newly_shared", "pin", "place",
        "place_kind", "plan", "record", "run", "shared", "sketch", "views",
    )  # fmt: skip

    def __init__(self, lowered: LoweredProgram) -> None:
        self.lowered, self.run = lowered, lowered.run
        self.place = lowered.place
        self.place_kind: str = lowered.place.kind
        self.clock: Clock = lowered.clock
        self.sketch: Any = _sketch
        self.kind: Any = np.ndarray
        if self.place_kind != "cpu":
            self.sketch = DeviceContext.get(self.place).sketch
            one = self.sketch((0,), np.dtype(np.uint8))
            self.kind = np.ndarray if one is None else type(one)
        #: Variables with the same buffer whatever this run's shapes: the gradients, where updates are bound apart.
        self.handed_over = lowered.handed_over if lowered.has_many_shapes else frozenset[str]()
        self.shared: set[int] = set()
        self.pin = False
        #: Owner's identity -> (owner, bytes) of the placeholders of the segment that is being bound.
        self.buffers: dict[int, tuple[Any, int]] = {}
        self.arenas: dict[int, Array] = {}  # by index of the block
        self.views: dict[Any, tuple[Scope, Any]] = {}
        #: How the program's first segment is bound without kernels, or the record of how they bind it.
        self.plan: Any = None
        self.record: Any = None
        self.made: list[Made] | None = None  # while it is recorded
        self.newly_shared: list[Array] | None = None

    def fixed(self, name: str, outer: bool) -> bool:
        """Whether a variable keeps its memory: it is persistable, or several blocks see it."""
        lowered = self.lowered
        return outer or name in lowered.captured or name in lowered.persistable or name in self.handed_over

    def is_constant(self, name: str) -> bool:
        """Whether a variable is persistable and no operator of the program writes it."""
        return name in self.lowered.persistable and not self.lowered.writes[name]

    def check(self) -> None:
        """Raise KeyboardInterrupt if a stop was requested."""
        self.run.check()

    @property
    def arena_bytes(self) -> int:
        """Bytes of the arenas of its buffers; from any thread."""
        return sum(arena.nbytes for arena in self.arenas.copy().values())

    def real(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """A separate buffer in the place's pool."""
        array = DeviceContext.get(self.place).empty(shape, dtype)
        self.lowered.bytes += array.nbytes
        return array

    def alloc(self, shape: tuple[int, ...], dtype: Any, name: str | None, outer: bool, order: Any, where: int) -> Array:
        """A buffer; one that is placed in the arena is a placeholder until then."""
        array, placed = self._alloc(shape, dtype, name, outer, order, where)
        if self.made is not None:
            self.made.append(Made(array, placed, name, outer, order, where))
        return array

    def _alloc(
        self, shape: tuple[int, ...], dtype: Any, name: str | None, outer: bool, order: Any, where: int
    ) -> tuple[Array, bool]:
        lowered = self.lowered
        if (name in lowered.captured or name in self.handed_over) and name not in lowered.persistable:
            # seen by several blocks: the same buffer whatever this run's LoD, so that bound loop bodies stay good
            key = (name, where, shape, dtype)
            buffer = lowered.pool.get(key)
            if buffer is None:
                buffer = lowered.pool[key] = self.real(shape, dtype)
                memory.tag(buffer, str(name))
            return buffer, False
        if name is not None and not outer:
            order = order_of(lowered.layout, name, shape)
        if not (self.pin or outer or name in lowered.pinned or name in lowered.persistable):
            sketch = self.sketch if self.plan is None else partial(self.plan.memory, name)
            array = ordered(sketch, shape, dtype, order)
            if array is not None:  # not every device has placeholders
                owner = memory.root(array)
                self.buffers[id(owner)] = owner, array.nbytes
                return array, True
        kept = ordered(self.real, shape, dtype, order)
        memory.tag(kept, name or "workspace")
        return kept, False

    def alloc_on(self, kind: str, shape: tuple[int, ...], dtype: Any) -> Array:
        """A buffer of a kind of place."""
        place = self.place if kind == self.place_kind else place_of(kind)
        return DeviceContext.get(place).empty(shape, dtype)

    def is_shared(self, array: Array) -> bool:
        """Whether several variables share an array's memory."""
        return id(memory.root(array)) in self.shared if isinstance(array, self.kind) else True

    def share(self, array: Array) -> None:
        """Record that several variables share an array's memory."""
        if isinstance(array, self.kind):
            self.shared.add(id(memory.root(array)))
            if self.newly_shared is not None:
                self.newly_shared.append(array)

    def may_alias(self, array: Array, name: str) -> bool:
        """Whether a variable may use an array's memory: a buffer of this segment, in the variable's memory order."""
        mine = isinstance(array, self.kind) and id(memory.root(array)) in self.buffers
        if not mine or name in self.lowered.pinned or name in self.handed_over:
            return False
        return has_order(array, order_of(self.lowered.layout, name, array.shape))

    def array(self, name: str, where: int) -> LoDTensorArray:
        """An array of tensors, emptied when a run starts or its block is entered."""
        array: LoDTensorArray = self.holder(name, LoDTensorArray) if name in self.lowered.captured else LoDTensorArray()
        known = self.lowered.inner_arrays[where] if where > 0 else self.lowered.arrays
        if not any(a is array for a in known):
            known.append(array)
        return array

    def reopen(self, around: Scope, step: SavedIteration) -> Scope:
        """A scope with a finished iteration for its gradient operator, shared by iterations with the same buffers."""
        key = (id(around), id(step.scope), step.signature())
        view = self.views.get(key)
        if view is None:
            view = self.views[key] = (around.showing(step.scope), step.scope)  # kept, so that identities stay unique
        step.restore(view[0])
        return view[0]

    def moves(self, name: str, scope: Scope, owner: Scope) -> bool:
        """Whether a nested block may give a variable another buffer; persistable ones keep theirs."""
        if name in self.lowered.persistable:
            return False
        tensor = owner.vars[name].value
        owner.moved.setdefault(name, (tensor, tensor.array, tensor.lod_))
        inside: Scope | None = scope
        while inside is not None and inside is not owner:
            self.lowered.movers.add(inside.block_index)
            inside = inside.parent
        return True

    def holder(self, name: str, make: Any) -> Any:
        """The object of a name, created at the first call."""
        if name not in self.lowered.pool:
            self.lowered.pool[name] = make()
        return self.lowered.pool[name]
