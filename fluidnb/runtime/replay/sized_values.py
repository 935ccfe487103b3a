"""Values of bound calls as functions of one size of the feeds: what differs between bindings grows linearly with it."""

import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from fluidnb.memory import offset_of, root
from fluidnb.op import Binder
from fluidnb.op.rng import Stream
from fluidnb.op.ufunc_rewrites import scalar_row
from fluidnb.runtime.native.sized_code import Differs

Array = Any
#: Makes a value of the size and of the values before it.
Maker = Callable[[int, list[Any]], Any]
#: Types of which equal values are the same for a call.
_PLAIN = int, float, complex, bool, str, bytes, np.dtype, np.generic
#: What makes two streams of random numbers the same.
_STREAM = operator.attrgetter("name", "clock", "seed", "kind", "number")


class Linear(NamedTuple):
    """The whole number ``slope * size + start``."""

    slope: int
    start: int

    def at(self, size: int) -> int:
        """The number for a size."""
        return self.slope * size + self.start


class Part(NamedTuple):
    """A whole number that is a multiple or a part of the elements of another array: a size of a flat view."""

    shape: tuple[Linear, ...]
    part: Fraction

    def at(self, size: int) -> int:
        """The number for a size."""
        return int(prod([one.at(size) for one in self.shape]) * self.part)


class Geometry(NamedTuple):
    """The part of its owner's memory that an array shows.

    Attributes:
        offset: bytes from the beginning of that memory.
        strides: in bytes.
        order: in place of strides: axes from the outermost to the innermost of an array without gaps.
        itemsize: bytes of an element of that.
    """

    offset: Linear
    shape: tuple[Linear | Part, ...]
    strides: tuple[Linear, ...]
    order: tuple[int, ...] | None
    itemsize: int

    def at(self, size: int) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
        """Offset, shape and strides for a size."""
        shape = tuple([one.at(size) for one in self.shape])
        if self.order is None:
            strides = tuple([one.at(size) for one in self.strides])
        else:
            strides = _dense(shape, self.order, self.itemsize)
        return self.offset.at(size), shape, strides


def _dense(shape: Sequence[int], order: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """The strides of an array without gaps whose axes have this order in memory."""
    strides = [0] * len(shape)
    for axis in reversed(order):
        strides[axis] = itemsize
        itemsize *= shape[axis]
    return tuple(strides)


class View(NamedTuple):
    """An array over the memory of an owner; ``slot`` is its place in the table of values."""

    slot: int
    owner: int
    dtype: np.dtype[Any]
    geometry: int


def linear(values: Sequence[int], sizes: Sequence[int]) -> Linear:
    """The number that has these values at these sizes, the first two of which differ."""
    slope, rest = divmod(values[1] - values[0], sizes[1] - sizes[0])
    found = Linear(slope, values[0] - slope * sizes[0])
    if rest or any(found.at(n) != value for n, value in zip(sizes, values, strict=True)):
        raise Differs
    return found


def geometry_of(array: Array) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """Offset from the owner of its memory, shape and strides of an array."""
    if array.size == 0:  # a slice may begin behind its memory
        return 0, array.shape, array.strides
    return offset_of(array, root(array)), array.shape, array.strides


class SizedValues:
    """The values that calls of a segment take: a table of those for all sizes, and how to make the others.

    Args:
        sizes: those of the bindings that are compared: two or more, all different.

    Attributes:
        table: the values for all sizes; None in the slots of the others.
        geometries: those of the views.
        owners: of each binding: identity of the owner of some memory -> its number.
        shapes: shapes of the arrays that owners were made for.
        views: the arrays of the operator at hand, which are made first.
        makers: slots of its other values, and how to make them.
        used: numbers of the owners whose memory it uses.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = sizes
        self.table: list[Any] = []
        self.geometries: list[Geometry] = []
        self.owners: list[dict[int, int]] = [{} for _ in sizes]
        self.shapes: dict[int, tuple[Linear, ...]] = {}
        self._numbers: dict[Geometry, int] = {}
        self._arrays: dict[tuple[int, ...], tuple[int, int]] = {}  # identities -> slot, owner; the records keep them
        self._views: dict[int, View] = {}  # by slot
        self._constants: dict[int, int] = {}
        self.begin()

    def begin(self) -> None:
        """Begin with the next operator."""
        self.views: list[View] = []
        self.makers: list[tuple[int, Maker]] = []
        self.used: set[int] = set()
        self._added: list[tuple[int, ...]] = []

    def undo(self) -> None:
        """Forget the arrays of the operator at hand."""
        for key in self._added:
            del self._arrays[key]
        self.begin()

    def slot(self, values: Sequence[Any]) -> int:
        """The slot of a value that is this in each binding; `Differs` where the size does not decide it."""
        first = values[0]
        if isinstance(first, np.ndarray):
            return self._array(values)
        if all(value is first for value in values):
            return self.constant(first)
        kind = type(first)
        if any(type(value) is not kind for value in values):
            raise Differs
        if kind is tuple or kind is list:
            known = self._arrays.get(tuple(map(id, values)))
            return self._sequence(kind, values) if known is None else known[0]
        if issubclass(kind, _PLAIN):
            if all(value == first and repr(value) == repr(first) for value in values):
                return self.constant(first)
            if kind is not int:
                raise Differs
            number = linear(values, self.sizes)
            return self._made(lambda size, _: number.at(size))
        if kind is Stream and all(_STREAM(value) == _STREAM(first) for value in values):
            return self.constant(first)
        if kind is slice:
            parts = self.slot([(value.start, value.stop, value.step) for value in values])
            return self._made(lambda _, table: slice(*table[parts]))
        if kind is operator.itemgetter or kind is partial:
            return self._reduced(kind, values)
        return self._method(values)

    def constant(self, value: Any) -> int:
        """The slot of a value for all sizes."""
        slot = self._constants.get(id(value))
        if slot is None:
            slot = self._constants[id(value)] = self.free(value)
        return slot

    def free(self, value: Any = None) -> int:
        """A new slot."""
        self.table.append(value)
        return len(self.table) - 1

    def number(self, arrays: Sequence[Array], owner: int) -> int:
        """The number of the geometry of an array that is this in each binding."""
        offsets, shapes, strides = zip(*map(geometry_of, arrays), strict=True)
        if len(set(map(len, shapes))) > 1:
            raise Differs
        sizes = tuple([self._size(row, owner) for row in zip(*shapes, strict=True)])
        steps: tuple[Linear, ...] = ()
        order: tuple[int, ...] | None = None
        try:
            steps = tuple([linear(row, self.sizes) for row in zip(*strides, strict=True)])
        except Differs:  # products of sizes that grow
            order = tuple(sorted(range(arrays[0].ndim), key=lambda i: (-arrays[0].strides[i], i)))
            if any(_dense(a.shape, order, a.itemsize) != a.strides for a in arrays):
                raise
        itemsize = 0 if order is None else arrays[0].itemsize
        found = Geometry(linear(offsets, self.sizes), sizes, steps, order, itemsize)
        number = self._numbers.get(found)
        if number is None:
            number = self._numbers[found] = len(self.geometries)
            self.geometries.append(found)
        return number

    def _size(self, sizes: Sequence[int], owner: int) -> Linear | Part:
        """A size of an array: one that grows linearly, or a part of all its owner's."""
        try:
            return linear(sizes, self.sizes)
        except Differs:
            shape = self.shapes.get(owner)
            if shape is None:
                raise
        found = Part(shape, Fraction(sizes[0], max(prod([one.at(self.sizes[0]) for one in shape]), 1)))
        if any(found.at(n) != size for n, size in zip(self.sizes, sizes, strict=True)):
            raise Differs
        return found

    def given(self, arrays: Sequence[Array], owner: int) -> View:
        """The view that an array is, which others put in the table."""
        known = self._arrays.get(tuple(map(id, arrays)))
        if known is not None:
            return self._views[known[0]]
        view = View(self.free(), owner, arrays[0].dtype, self.number(arrays, owner))
        self._views[view.slot] = view
        self._arrays[tuple(map(id, arrays))] = view.slot, owner
        return view

    def view(self, slot: int) -> View | None:
        """The view that fills a slot, where one does."""
        return self._views.get(slot)

    def owner(self, arrays: Sequence[Array]) -> int | None:
        """The number of the owner of an array's memory, None for one without; `Differs` where bindings differ."""
        numbers = {known.get(id(root(array))) for known, array in zip(self.owners, arrays, strict=True)}
        if len(numbers) > 1:
            raise Differs
        return numbers.pop()

    def _made(self, maker: Maker) -> int:
        slot = self.free()
        self.makers.append((slot, maker))
        return slot

    def _array(self, arrays: Sequence[Any]) -> int:
        key = tuple(map(id, arrays))
        known = self._arrays.get(key)
        if known is not None:
            if known[1] >= 0:
                self.used.add(known[1])
            return known[0]
        first = arrays[0]
        if not all(isinstance(array, np.ndarray) and array.dtype == first.dtype for array in arrays):
            raise Differs
        owner = self.owner(arrays)
        if owner is None:
            return self._outside(arrays)
        number = self.number(arrays, owner)
        slot = self.free()
        self._views[slot] = View(slot, owner, first.dtype, number)
        self.views.append(self._views[slot])
        self._know(arrays, slot, owner)
        self.used.add(owner)
        return slot

    def _know(self, values: Sequence[Any], slot: int, owner: int) -> None:
        key = tuple(map(id, values))
        self._arrays[key] = slot, owner
        self._added.append(key)

    def _outside(self, arrays: Sequence[Array]) -> int:
        """An array that no binding has made: of a parameter, or a constant."""
        first = arrays[0]
        if all(root(array) is root(first) for array in arrays):
            if any(geometry_of(array) != geometry_of(first) for array in arrays):
                raise Differs
            return self.constant(first)
        if any(array.shape or array.flags.writeable for array in arrays):
            raise Differs
        values = [array.item() for array in arrays]
        if not np.isfinite(values).all() or any(value != int(value) for value in values):
            raise Differs
        number, kind, dtype = linear([int(value) for value in values], self.sizes), type(values[0]), first.dtype
        return self._made(lambda size, _: Binder.const(kind(number.at(size)), dtype))

    def row(self, arrays: Sequence[Array], outputs: Sequence[Array]) -> int | None:
        """The slot of a constant that is as long as a run of the output of its call; None where it is none.

        See `fluidnb.op.ufunc_rewrites.scalar_row`, which caches them.
        """
        if any(a.flags.writeable or a.size == 0 for a in arrays) or len({a.dtype for a in arrays}) > 1:
            return None
        if len({a.ravel()[0].tobytes() for a in arrays}) > 1:
            return None
        one = np.array(arrays[0].ravel()[0])
        one.flags.writeable = False
        for array, out in zip(arrays, outputs, strict=True):
            made = scalar_row(one, out)
            if made is not array and (made is not one or array.ndim):
                return None
        slot = self.slot(outputs)
        return self._made(lambda _, table: scalar_row(one, table[slot]))

    def _sequence(self, kind: type, values: Sequence[Sequence[Any]]) -> int:
        if len(set(map(len, values))) > 1:
            raise Differs
        slots = [self.slot(row) for row in zip(*values, strict=True)]
        if kind is tuple:
            if all(self.table[slot] is not None for slot in slots):
                return self.constant(values[0])
            return self._made(lambda _, table: tuple([table[slot] for slot in slots]))
        slot = self._made(lambda _, table: [table[slot] for slot in slots])
        self._know(values, slot, -1)  # calls may share a list
        return slot

    def _reduced(self, kind: type, values: Sequence[Any]) -> int:
        """A function of a library that is built from arguments."""
        if kind is partial:
            parts = [(value.func, value.args, tuple(value.keywords.items())) for value in values]
            slot = self.slot(parts)
            return self._made(lambda _, table: partial(table[slot][0], *table[slot][1], **dict(table[slot][2])))
        slot = self.slot([value.__reduce__()[1] for value in values])
        return self._made(lambda _, table: operator.itemgetter(*table[slot]))

    def _method(self, values: Sequence[Any]) -> int:
        """A method of an array, or of an object that is the same in all bindings."""
        owners = [getattr(value, "__self__", None) for value in values]
        name = getattr(values[0], "__name__", "")
        if not name or any(getattr(value, "__name__", "") != name for value in values):
            raise Differs
        if not isinstance(owners[0], np.ndarray):
            if any(value != values[0] for value in values):
                raise Differs
            return self.constant(values[0])
        slot = self._array(owners)
        return self._made(lambda _, table: getattr(table[slot], name))
