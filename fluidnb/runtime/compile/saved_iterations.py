"""Saved iterations: values that backward needs of a block's iterations, kept by the compiled run.

The compiled run runs all iterations over the same buffers: it copies out what gradient blocks will read, and copies it
back before the gradient of that iteration runs.
"""

from __future__ import annotations

import copy
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidnb import memory
from fluidnb.memory.arena import ALIGN
from fluidnb.program.constants import SHAPES_ONLY
from fluidnb.program.sub_blocks import own_blocks
from fluidnb.proto.framework_pb2 import VarType
from fluidnb.runtime.scope import Scope
from fluidnb.values.copies import put
from fluidnb.values.device_context import DeviceContext, copy_of
from fluidnb.values.rank_table import LoDRankTable
from fluidnb.values.tensor import LoDTensor, LoDTensorArray
from fluidnb.values.variable import Variable

if TYPE_CHECKING:
    from fluidnb.runtime.compile.lowering import LoweredBlock


def saved_names(blocks: Sequence[LoweredBlock]) -> dict[int, list[str]]:
    """Block that has a gradient -> its own variables whose values gradient blocks read, sorted."""
    gradients = [op for b in blocks if b.forward >= 0 for op in b.ops]
    reads = {n for op in gradients if op.desc.optype not in SHAPES_ONLY for n in op.reads()}
    return {b.forward: sorted(reads.intersection(blocks[b.forward].desc.vars)) for b in blocks if b.forward >= 0}


def kept_names(blocks: Sequence[LoweredBlock]) -> dict[int, list[str]]:
    """Block that has a gradient -> outer variables that it changes and that its gradient only reads, sorted.

    The gradient of an iteration sees them as they were at its end. A counter that it counts down is not among them.
    """
    found = {}
    for gradient in blocks:
        if gradient.forward < 0:
            continue
        forward = blocks[gradient.forward]
        inside = [b for b in blocks if _within(b, gradient, blocks)]
        reads = {n for b in inside for op in b.ops for n in op.reads()}
        writes = {n for b in inside for op in b.ops for n in op.writes()}
        changed = {n for op in forward.ops for n in op.writes()} - forward.local
        found[forward.index] = sorted(n for n in changed & reads - writes if _is_tensor(forward, n))
    return found


def loops(blocks: Sequence[LoweredBlock]) -> set[int]:
    """The blocks that may run several times in one run: bodies of loops, and all blocks inside them."""
    again: set[int] = set()
    for block in blocks:  # a block comes after the one around it
        for op in block.ops:
            if op.definition.control and (block.index in again or "conditional" not in op.desc.optype):
                again.update(own_blocks(op.desc))
    return again


def _within(block: LoweredBlock, other: LoweredBlock, blocks: Sequence[LoweredBlock]) -> bool:
    index = block.index
    while index >= 0:
        if index == other.index:
            return True
        index = blocks[index].desc.parent_idx
    return False


def _is_tensor(block: LoweredBlock, name: str) -> bool:
    var = block.desc.find_var_recursive(name)
    return var is not None and var.type() == VarType.LOD_TENSOR and not var.persistable()


def keep(scope: Scope, names: Iterable[str]) -> None:
    """Copy outer variables into `kept` of the scope of a finished iteration."""
    for name in names:
        value = scope.cell(name)[0].value
        if type(value) is LoDTensor and value.array is not None:
            scope.kept[name] = Variable(name, LoDTensor(copy_of(value.array), value.lod_, value.place, name))


class SavedIteration:
    """A finished iteration: the scope of its last segment, and copies of the values that backward reads.

    Args:
        scope: the scope; all iterations with the same segments share its buffers.
    """

    __slots__ = ("_kept", "_names", "_others", "_outer", "_put", "_tensors", "scope")

    def __init__(self, scope: Scope, names: Sequence[str], kept: Sequence[str]) -> None:
        self.scope = scope
        self._names, self._kept = names, kept
        self._tensors: list[tuple[Any, Any]] = []
        self._others: list[tuple[Any, Any]] = []
        self._outer: dict[str, tuple[Any, Any]] = {}
        self._put: Any = np.copyto  # on the host without `put`, since every iteration copies
        values = [scope.vars[n].value for n in names if n in scope.vars]
        tensors = [v for v in values if type(v) is LoDTensor and v.array is not None]
        if tensors:
            copies = _alike([t.array for t in tensors], tensors[0].place)
            self._put = np.copyto if isinstance(copies[0], np.ndarray) else put
            self._tensors = [(t.array, copy) for t, copy in zip(tensors, copies, strict=True)]

    def copies(self) -> list[tuple[Any, Any]] | None:
        """The buffers, each with the copy of its values; None where there is more to save than these."""
        values = [variable.value for n in self._names if (variable := self.scope.vars.get(n)) is not None]
        more = self._kept or any(isinstance(value, list | LoDRankTable) for value in values)
        return None if more or self._put is not np.copyto else self._tensors

    def save(self) -> None:
        """Copy the values of the buffers."""
        for live, mine in self._tensors:
            self._put(mine, live)
        self._others = [
            (v.value, _copied(v.value))
            for n in self._names
            if (v := self.scope.vars.get(n)) is not None and isinstance(v.value, list | LoDRankTable)
        ]
        for name in self._kept:
            value = self.scope.cell(name)[0].value
            if type(value) is LoDTensor and value.array is not None:
                mine = self._outer.get(name)
                if mine is None or mine[0].shape != value.array.shape:
                    mine = (_alike([value.array], value.place)[0], value.lod_)
                put(mine[0], value.array)
                self._outer[name] = (mine[0], value.lod_)

    def signature(self) -> tuple[Any, ...]:
        """Shapes and LoDs of the outer variables, on which bindings depend."""
        return tuple([(array.shape, lod) for array, lod in self._outer.values()])

    def restore(self, view: Scope) -> None:
        """Restore the values, for the gradient of this iteration."""
        for live, mine in self._tensors:
            self._put(live, mine)
        for value, mine in self._others:
            if isinstance(value, list):
                value[:] = mine
            else:
                value.become(mine)
        for name, (array, lod) in self._outer.items():
            variable = view.var(name)
            if variable.value is None:
                place = self.scope.cell(name)[0].value.place
                variable.value = LoDTensor(_alike([array], place)[0], lod, place, name)
            put(variable.value.array, array)


def _alike(arrays: Sequence[Any], place: Any) -> list[Any]:
    """Arrays of the same shapes, dtypes and memory orders, in one block of the place's pool."""
    if not isinstance(arrays[0], np.ndarray):
        return [DeviceContext.get(place).empty(a.shape, a.dtype) for a in arrays]
    sizes = [-(-a.nbytes // ALIGN) * ALIGN for a in arrays]
    block = memory.raw(place, max(sum(sizes), ALIGN))
    memory.tag(block, "steps kept for backward")
    alike, at = [], 0
    for a, size in zip(arrays, sizes, strict=True):
        order = sorted(range(a.ndim), key=lambda i: -a.strides[i])
        packed = memory.view_of(block, [a.shape[i] for i in order], a.dtype, at)
        alike.append(packed.transpose(np.argsort(order)) if a.ndim > 1 else packed)
        at += size
    return alike


def _copied(value: Any) -> Any:
    if isinstance(value, LoDTensorArray):
        return [LoDTensor(None if t.array is None else copy_of(t.array), t.lod_, t.place) for t in value]
    return copy.copy(value)


class SavedIterations:
    """The saved iterations of a lowered program; memory of one run serves the next.

    The first iteration that is saved of a block in a run is always the same object, and so on.

    Attributes:
        taken: identity of a scope -> how many of its iterations this run has saved.
    """

    __slots__ = ("_again", "_kept", "_made", "_names", "taken")

    def __init__(self, names: dict[int, list[str]], kept: dict[int, list[str]], again: set[int]) -> None:
        self._names, self._kept, self._again = names, kept, again
        self._made: dict[int, list[SavedIteration]] = defaultdict(list)
        self.taken: Counter[int] = Counter()

    def needed(self, block: int) -> bool:
        """Whether a gradient block reads the iterations of a block."""
        return block in self._names

    def save(self, block: int, scope: Scope) -> SavedIteration:
        """Save a finished iteration."""
        step = self._take(block, scope)
        step.save()
        return step

    def first(self, count: int, block: int, scope: Scope) -> list[SavedIteration]:
        """The memory for the first iterations of a block in a run."""
        self.taken[id(scope)] = 0
        return [self._take(block, scope) for _ in range(count)]

    def _take(self, block: int, scope: Scope) -> SavedIteration:
        """The memory for the next iteration of a block."""
        made, number = self._made[id(scope)], self.taken[id(scope)]
        self.taken[id(scope)] = number + 1
        if number == len(made):
            # what runs once keeps its buffers as they are until its gradient has run
            names = self._names[block] if block in self._again else ()
            made.append(SavedIteration(scope, names, self._kept[block]))
        return made[number]

    def start(self) -> None:
        """Release the iterations of the last run."""
        self.taken.clear()

    def forget(self) -> None:
        """Drop all memory."""
        self._made.clear()
        self.taken.clear()
