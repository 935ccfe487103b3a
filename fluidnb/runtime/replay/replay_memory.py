"""The replay's memory policy: where the binders' arrays live."""

from __future__ import annotations

from typing import Any

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


def root(array: Array) -> Array:
    """The owner of an array's memory.

    Args:
        array: any ndarray, or an array of a device.

    Returns:
        Itself or the array at the end of its chain of bases; under an array of a device, the memory.
    """
    if not isinstance(array, np.ndarray):
        return array.data.mem
    while True:
        base: Any = array.base
        if type(base).__name__ == "DummyArray":  # as_strided hides the owner behind one
            base = base.base
        if not isinstance(base, np.ndarray):
            return array
        array = base


def ordered(make: Any, shape: tuple[int, ...], dtype: np.dtype[Any], order: tuple[int, ...] | None) -> Array:
    """An array of a shape whose memory has another order of axes.

    Args:
        make: ``make(shape, dtype)`` gives a C-ordered array.
        shape: logical sizes.
        dtype: numpy dtype.
        order: physical order of the axes, outermost first; None for C order.

    Returns:
        The array.
    """
    if order is None:
        return make(shape, dtype)
    inverse = tuple(order.index(i) for i in range(len(order)))
    return make(tuple(shape[i] for i in order), dtype).transpose(inverse)


#: Buffers that have no place yet: they are moved into the arena before the first call is made.
_sketch = memory.Reserve()


class ReplayMemory:
    """A plan bound for one feed signature and one scope; the memory policy of its binders.

    Args:
        plan: the plan.
        run: the run under way.

    Attributes:
        buffers: owner's identity -> (owner, bytes) of the placeholders of the node that is being bound.
        arenas: number of a block -> the memory in which its buffers are placed.
        kind: the class of the arrays that are placed there.
    """

    __slots__ = (
        "arenas", "buffers", "clock", "kind", "pin", "place", "place_kind", "plan", "run", "shared", "sketch", "views",
    )  # fmt: skip

    def __init__(self, plan: LoweredProgram, run: Any) -> None:
        self.plan, self.run = plan, run
        self.place = plan.place
        self.place_kind: str = plan.place.kind
        self.clock: Clock = plan.clock
        self.sketch: Any = _sketch
        self.kind: Any = np.ndarray
        if self.place_kind != "cpu":
            self.sketch = DeviceContext.get(self.place).sketch
            one = self.sketch((0,), np.dtype(np.uint8))
            self.kind = np.ndarray if one is None else type(one)
        self.shared: set[int] = set()
        self.pin = False
        self.buffers: dict[int, tuple[Any, int]] = {}
        self.arenas: dict[int, Array] = {}
        self.views: dict[Any, tuple[Scope, Any]] = {}

    def fixed(self, name: str, outer: bool) -> bool:
        """See `fluidnb.op.memory_policy.Memory`."""
        return outer or name in self.plan.captured or name in self.plan.persistable

    def check(self) -> None:
        """See `fluidnb.op.memory_policy.Memory`."""
        self.run.check()

    def real(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """A separate buffer in the place's pool."""
        made = DeviceContext.get(self.place).empty(shape, dtype)
        self.plan.bytes += made.nbytes
        return made

    def alloc(self, shape: tuple[int, ...], dtype: Any, name: str | None, outer: bool, order: Any, where: int) -> Array:
        """See `fluidnb.op.memory_policy.Memory`; a buffer that is placed later is a placeholder until then."""
        plan = self.plan
        if name in plan.captured and name not in plan.persistable:
            # seen by several blocks: the same buffer whatever this run's LoD, so that bound loop bodies stay good
            key = (name, where, shape, dtype)
            found = plan.pool.get(key)
            if found is None:
                found = plan.pool[key] = self.real(shape, dtype)
                memory.tag(found, str(name))
            return found
        if name is not None and not outer:
            order = order_of(plan.layout, name, shape)
        if not (self.pin or outer or name in plan.pinned or name in plan.persistable):
            array = ordered(self.sketch, shape, dtype, order)
            if array is not None:  # not every device has placeholders
                owner = root(array)
                self.buffers[id(owner)] = owner, array.nbytes
                return array
        kept = ordered(self.real, shape, dtype, order)
        memory.tag(kept, name or "workspace")
        return kept

    def alloc_on(self, kind: str, shape: tuple[int, ...], dtype: Any) -> Array:
        """See `fluidnb.op.memory_policy.Memory`."""
        place = self.place if kind == self.place_kind else place_of(kind)
        return DeviceContext.get(place).empty(shape, dtype)

    def is_shared(self, array: Array) -> bool:
        """See `fluidnb.op.memory_policy.Memory`."""
        return id(root(array)) in self.shared if isinstance(array, self.kind) else True

    def share(self, array: Array) -> None:
        """See `fluidnb.op.memory_policy.Memory`."""
        if isinstance(array, self.kind):
            self.shared.add(id(root(array)))

    def may_alias(self, array: Array, name: str) -> bool:
        """See `fluidnb.op.memory_policy.Memory`: over this node's own buffers, in the variable's order."""
        if not isinstance(array, self.kind) or id(root(array)) not in self.buffers or name in self.plan.pinned:
            return False
        return has_order(array, order_of(self.plan.layout, name, array.shape))

    def array(self, name: str, where: int) -> LoDTensorArray:
        """See `fluidnb.op.memory_policy.Memory`; it is emptied when a run starts, or when its block is entered."""
        found: LoDTensorArray = self.holder(name, LoDTensorArray) if name in self.plan.captured else LoDTensorArray()
        known = self.plan.inner_arrays[where] if where > 0 else self.plan.arrays
        if not any(a is found for a in known):
            known.append(found)
        return found

    def reopen(self, around: Scope, step: SavedIteration) -> Scope:
        """A finished iteration as its gradient operator sees it, with the values of then.

        Args:
            around: the scope of the gradient operator.
            step: the iteration.

        Returns:
            A scope between the two; the same one for iterations that share their buffers.
        """
        key = (id(around), id(step.scope), step.signature())
        found = self.views.get(key)
        if found is None:
            found = self.views[key] = (around.showing(step.scope), step.scope)  # kept, so that identities stay unique
        step.restore(found[0])
        return found[0]

    def moves(self, name: str, scope: Scope, owner: Scope) -> bool:
        """See `fluidnb.op.memory_policy.Memory`; what is the user's stays as the last run left it."""
        if name in self.plan.persistable:
            return False
        tensor = owner.vars[name].value
        owner.moved.setdefault(name, (tensor, tensor.array, tensor.lod_))
        inside: Scope | None = scope
        while inside is not None and inside is not owner:
            self.plan.movers.add(inside.block_index)
            inside = inside.parent
        return True

    def holder(self, name: str, make: Any) -> Any:
        """See `fluidnb.op.memory_policy.Memory`."""
        found = self.plan.pool.get(name)
        if found is None:
            found = self.plan.pool[name] = make()
        return found
