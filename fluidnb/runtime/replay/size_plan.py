"""The binding of a segment for one size by a template."""

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np

from fluidnb.memory import part, root, view_of
from fluidnb.op.binder import Call
from fluidnb.op.context import Lod
from fluidnb.runtime.compile.lowering import LoweredOp
from fluidnb.runtime.feed_fetch import Fed
from fluidnb.runtime.native.segment_code import Calls
from fluidnb.runtime.native.sized_code import Sample
from fluidnb.runtime.replay.buffer_placement import Life, lives_of
from fluidnb.runtime.replay.replay_memory import ReplayMemory, Unexpected
from fluidnb.runtime.replay.size_template import Buffer, OpTemplate, SizeTemplate
from fluidnb.runtime.replay.sized_values import geometry_of
from fluidnb.runtime.scope import Scope
from fluidnb.values.tensor import LoDTensor
from fluidnb.values.variable import Variable

Array = Any
_BYTE = np.dtype(np.uint8)


class SizePlan:
    """The binding of a segment for one size by a template."""

    def __init__(self, template: SizeTemplate, size: int, bound: ReplayMemory, feeds: dict[str, Fed]) -> None:
        self.template, self.bound, self._size = template, bound, size
        self._geometries = [geometry.at(size) for geometry in template.geometries]
        self._table = template.table.copy()
        self._owners: list[Any] = [()] * template.count  # numpy would take None as no buffer
        self._bytes = template.memory(bound.place)
        self._left: list[Buffer] = []  # of the operator that is bound again
        self._first: list[int] = []
        self._whole: list[bool] = []
        self._lods: list[Lod | None] = [(), *[None] * (template.lods - 1)]
        for name, slot, number, lod in template.feeds:
            array = self._table[slot] = feeds[name][0]
            self._owners[number] = root(array)
            self._expect_lod(lod, feeds[name][1])
        for slot, number, array in template.fixed:
            self._table[slot], self._owners[number] = array, root(array)

    def _expect_lod(self, number: int, lod: Lod) -> None:
        """Compare a LoD with what has its number; the first one decides."""
        known = self._lods[number]
        if known is None:
            self._lods[number] = lod
        elif known != lod:
            raise Unexpected

    def begin(self) -> None:
        """Begin with the first operator."""
        self.bound.newly_shared = []
        self._first.clear()
        self._whole.clear()

    def emit(self, k: int, scope: Scope, calls: list[Call], ops: list[LoweredOp]) -> bool:
        """Bind an operator without its kernel; False where that is not possible."""
        if k >= len(self.template.ops):
            raise Unexpected
        one = self.template.ops[k]
        table, owners = self._table, self._owners
        self._first.append(len(calls))
        self._whole.append(False)
        for buffer in one.buffers:
            self._allocate(buffer, one.calls is not None)
        if one.calls is not None:
            self._make(one)
        if one.calls is None or any(f(*arguments(table)) != result for f, arguments, result in one.decisions):
            self._left = [buffer for buffer in one.buffers if buffer.made.placed]
            self.bound.newly_shared = []
            return False
        self._whole[-1] = True
        for function_slot, arguments, named in one.calls:
            kw = {name: table[slot] for name, slot in named.items()} if named else {}
            calls.append((table[function_slot], arguments(table), kw))
        ops += one.ops
        variables, place = scope.vars, self.bound.place
        for name, slot, _, number in one.outputs:
            variable, lod = variables.get(name), self._lods[number]
            if lod is None:
                raise Unexpected
            if variable is None:
                variables[name] = Variable(name, LoDTensor(table[slot], lod, place))
            elif type(variable.value) is LoDTensor:
                variable.value.array, variable.value.lod_ = table[slot], lod
            else:
                variable.value = LoDTensor(table[slot], lod, place)
            if one.folded:
                self.bound.share(table[slot])
        for number in one.shared:
            self.bound.shared.add(id(owners[number]))
        for array in one.outside:
            self.bound.share(array)
        return True

    def _allocate(self, buffer: Buffer, whole: bool) -> None:
        """Memory of a buffer: that in the arena, and other memory where no kernel is bound."""
        made, number = buffer.made, buffer.number
        if made.placed:
            size = prod([slope * self._size + start for slope, start in buffer.shape]) * buffer.itemsize
            owner = self._owners[number] = view_of(self._bytes, (size,), _BYTE, self.template.offsets[number])
            self.bound.buffers[id(owner)] = owner, size
        elif whole:
            shape = tuple([slope * self._size + start for slope, start in buffer.shape])
            self._owners[number] = root(self.bound.alloc(shape, made.array.dtype, *made[2:]))

    def _make(self, one: OpTemplate) -> None:
        """Make the values of an operator's calls."""
        table, owners, geometries = self._table, self._owners, self._geometries
        for slot, owner, dtype, geometry in one.views:
            offset, shape, strides = geometries[geometry]
            table[slot] = part(owners[owner], shape, dtype, offset, strides)
        for slot, make in one.makers:
            table[slot] = make(self._size, table)

    def memory(self, name: str | None, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Memory for an output, or a workspace, of an operator that is bound again."""
        size = prod(shape) * dtype.itemsize
        for i, buffer in enumerate(self._left):
            owner = self._owners[buffer.number]
            if buffer.made.name == name and (owner.nbytes == size or (name is None and owner.nbytes > size)):
                del self._left[i]
                return view_of(owner, shape, dtype)
        return self.bound.real(shape, dtype)

    def check(self, k: int, scope: Scope) -> None:
        """Compare what a kernel has bound with what was expected of it, and take its arrays over."""
        one, bound = self.template.ops[k], self.bound
        own = {buffer.number for buffer in one.buffers if not buffer.made.placed}
        arrays: list[tuple[int, Array]] = []
        for name, slot, view, lod in one.outputs:
            value = scope.cell(name)[0].value
            if view is None or type(value) is not LoDTensor or value.array is None:
                raise Unexpected
            array = value.array
            self._expect_lod(lod, value.lod_)
            if view.owner in own:
                self._owners[view.owner] = root(array)
            if root(array) is not self._owners[view.owner] or array.dtype != view.dtype:
                raise Unexpected
            if geometry_of(array) != self._geometries[view.geometry]:
                raise Unexpected
            arrays.append((slot, array))
        known = {*map(id, one.outside), *(id(self._owners[number]) for number in one.shared)}
        if {id(root(array)) for array in bound.newly_shared or ()} != known:
            raise Unexpected
        if one.calls is not None:  # others use its arrays
            self._make(one)
        for slot, array in arrays:
            self._table[slot] = array

    def end(self, calls: list[Call]) -> Callable[[], dict[int, Life]]:
        """End the binding, and give what `fluidnb.runtime.replay.buffer_placement.placed` gives of its buffers."""
        bound = self.bound
        buffers = bound.buffers
        self.drop()
        return partial(lives_of, calls, buffers)

    def sample(self, calls: Calls, lives: Callable[[], dict[int, Life]]) -> Sample:
        """The binding as native code for many sizes sees it."""
        fixed = {number for _, number, _ in self.template.fixed}
        owners = {
            number: owner for number, owner in enumerate(self._owners)
            if number not in self.template.offsets and number not in fixed and isinstance(owner, np.ndarray)
        }  # fmt: skip
        return Sample(self._size, calls, lives, [*self._first, len(calls.calls)], self._whole, owners)

    def drop(self) -> None:
        """End the binding."""
        bound = self.bound
        bound.newly_shared, bound.plan, bound.buffers = None, None, {}
