"""Bindings of a segment for sizes between those that it was bound for: only sizes and views are computed anew.

Three bindings that differ in one size of the feeds (a batch, a length) are compared. Where every shape, stride, offset
and number of a call grows linearly with the size, and everything else is the same, so does the binding of any size
between the smallest and the largest of them: a kernel that takes other calls from some size on would take them for one
of the three. Kernels that choose by a range of sizes say so (`Binder.decide`). Operators whose calls differ otherwise
are bound again, with the same buffers.
"""

from collections.abc import Callable, Sequence
from math import prod
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from fluidnb import memory
from fluidnb.memory import as_base, root
from fluidnb.memory.arena import place
from fluidnb.op.binder import Call
from fluidnb.op.context import Lod
from fluidnb.runtime.compile.lowering import LoweredOp
from fluidnb.runtime.native.sized_code import Differs, SizedCode
from fluidnb.runtime.replay.binding_record import OpRecord, Record
from fluidnb.runtime.replay.replay_memory import Made
from fluidnb.runtime.replay.sized_values import Linear, Maker, SizedValues, View, linear
from fluidnb.values.device_context import DeviceContext

Array = Any
_BYTE = np.dtype(np.uint8)


class Buffer(NamedTuple):
    """A buffer that binding an operator allocates: number of the owner of its memory, and shape."""

    number: int
    shape: tuple[Linear, ...]
    itemsize: int
    made: Made


class Expected(NamedTuple):
    """An output of an operator: the slot of its array, the view that it is of its owner's memory, and its LoD's number.

    Without a view its memory is not this segment's.
    """

    name: str
    slot: int
    view: View | None
    lod: int


class OpTemplate(NamedTuple):
    """The binding of one operator as a function of the size.

    Attributes:
        buffers: those that it allocates.
        calls: function, positional and keyword arguments by slot; None where its kernel emits them.
        shared: numbers of the owners that it marks as shared.
        outside: memory of others that it marks as shared.
    """

    op: LoweredOp
    buffers: list[Buffer]
    views: list[View]
    makers: list[tuple[int, Maker]]
    calls: list[tuple[int, Callable[[list[Any]], tuple[Any, ...]], dict[str, int]]] | None
    ops: list[LoweredOp]
    decisions: list[tuple[Any, Callable[[list[Any]], tuple[Any, ...]], bool]]
    outputs: list[Expected]
    shared: list[int]
    outside: list[Array]
    folded: bool = False


class SizeTemplate:
    """The bindings of a segment for the sizes between two.

    Args:
        records: bindings for three sizes or more.
    """

    def __init__(self, records: Sequence[Record]) -> None:
        first = records[0]
        if any(record.same != first.same for record in records):
            raise Differs
        self.same, self.outer = first.same, records[-1].outer
        rows = list(zip(*(record.sizes for record in records), strict=True))
        self.at = [i for i, row in enumerate(rows) if len(set(row)) > 1]
        sizes = [record.sizes[self.at[0]] for record in records] if self.at else []
        if len(set(sizes)) < len(records) or any(rows[i] != tuple(sizes) for i in self.at) or min(sizes) < 2:
            raise Differs
        self.rest = _without(first.sizes, self.at)
        self.low, self.high = min(sizes), max(sizes)
        self._values = SizedValues(sizes)
        self.count = 0
        self._lives: dict[int, list[int]] = {}
        self._shapes: dict[int, tuple[tuple[Linear, ...], int]] = {}  # of buffers in the arena: shape, bytes of one
        self._hidden: set[int] = set()  # owners whose number only the operator itself may use
        self.fixed: list[tuple[int, int, Array]] = []
        self._lods: dict[tuple[Lod, ...], int] = {((),) * len(records): 0}
        self.feeds = []
        for name in first.feeds:
            arrays, lods = zip(*(record.feeds[name] for record in records), strict=True)
            self.feeds.append((name, *self._feed(arrays), self._lod(lods)))
        if any(len(record.ops) != len(first.ops) for record in records):
            raise Differs
        self.ops = [self._op(k, row) for k, row in enumerate(zip(*(record.ops for record in records), strict=True))]
        self.table, self.geometries = self._values.table, self._values.geometries
        self.lods = len(self._lods)
        del self._values, self._lods
        rows = [(*life, prod(n.at(self.high) for n in shape) * size, number)
                for number, life in self._lives.items() for shape, size in [self._shapes[number]]]  # fmt: skip
        self.offsets, self.nbytes = place(rows)
        self.arena: Array | None = None
        self.missed = 0
        self.code = SizedCode(self.high)
        self.ends = [min(records, key=_size(self.at)), max(records, key=_size(self.at))]

    def size(self, sizes: tuple[int, ...], same: tuple[Any, ...]) -> int | None:
        """The size that differs in feeds of these sizes; None where others do."""
        if same != self.same or len(sizes) <= self.at[-1] or _without(sizes, self.at) != self.rest:
            return None
        size = sizes[self.at[0]]
        return size if all(sizes[i] == size for i in self.at) else None

    def is_current(self, outer: dict[str, tuple[Any, Any]]) -> bool:
        """Whether the user's scope has the same memory."""
        if outer.keys() != self.outer.keys():
            return False
        return all(outer[name][0] is array and outer[name][1] == lod for name, (array, lod) in self.outer.items())

    def memory(self, device: Any) -> Any:
        """The arena, for sizes up to the largest, as the base of the arrays that own parts of it."""
        if self.arena is None:
            self.arena = DeviceContext.get(device).empty((max(self.nbytes, 64),), _BYTE)
            memory.tag(self.arena, "arena for all sizes")
            self.code.arena = self.arena
        return as_base(self.arena)

    # ---- comparing

    def _feed(self, arrays: Sequence[Array]) -> tuple[int, int]:
        """Slot and owner's number of a feed."""
        number = self._new_owner(arrays)
        rows = zip(*(array.shape for array in arrays), strict=True)
        self._values.shapes[number] = tuple([linear(row, self._values.sizes) for row in rows])
        return self._values.given(arrays, number).slot, number

    def _lod(self, lods: Sequence[Lod], known: Sequence[Sequence[Lod]] | None = None) -> int:
        """The number of a LoD that is this in each binding; 0 for none.

        Args:
            known: LoDs of each binding, which it has to be among, or one that is new.
        """
        key = tuple(lods)
        if known is not None and any(key) and key not in zip(*known, strict=True):
            raise Differs
        return self._lods.setdefault(key, len(self._lods))

    def _fixed(self, arrays: Sequence[Array]) -> int:
        """The slot of a constant that each binding has computed."""
        slot, number = self._feed(arrays)
        self.fixed.append((slot, number, arrays[0]))
        return slot

    def _new_owner(self, arrays: Sequence[Array | None]) -> int:
        number, self.count = self.count, self.count + 1
        for known, array in zip(self._values.owners, arrays, strict=True):
            if array is not None:
                known[id(root(array))] = number
        return number

    def _op(self, k: int, records: Sequence[OpRecord]) -> OpTemplate:
        first, values = records[0], self._values
        before = self.count
        values.begin()
        if any(record.op is not first.op or record.folded != first.folded for record in records):
            raise Differs
        if first.folded:
            if any(o.array is None or o.lod for record in records for o in record.outputs):
                raise Differs
            rows = zip(*(record.outputs for record in records), strict=True)
            outputs = [Expected(row[0].name, self._fixed([each.array for each in row]), None, 0) for row in rows]
            return OpTemplate(first.op, [], [], [], [], [], [], outputs, [], [], folded=True)
        made = [record.made for record in records]
        try:
            buffers, is_whole = self._buffers(k, made), all(record.whole for record in records)
        except Differs:
            buffers, is_whole = self._loose_buffers(k, records), False
        shared, outside = self._shared(records)
        try:
            if not is_whole:
                raise Differs
            decisions = self._decisions(records)
            calls = self._calls([record.calls for record in records])
            outputs = self._outputs(records, made=True)
        except Differs:
            values.undo()
            self._touch(records)
            decisions, calls, outputs = [], None, self._outputs(records, made=False)
        if calls is None or decisions:
            kept = {one.view.owner for one in outputs if one.view is not None}
            self._hidden |= set(range(before, self.count)) - kept
        self._live(k, before, values.used)
        return OpTemplate(first.op, buffers, values.views, values.makers, calls, [first.op] * len(calls or ()),
                   decisions, outputs, shared, outside)  # fmt: skip

    def _live(self, k: int, before: int, used: set[int]) -> None:
        for number in used:
            if number < before and number in self._hidden:
                raise Differs
            if number in self._lives:
                self._lives[number][1] = k

    def _buffers(self, k: int, made: Sequence[Sequence[Made]]) -> list[Buffer]:
        """The buffers of an operator, all of which grow linearly."""
        if len(set(map(len, made))) > 1:
            raise Differs
        rows = []
        for row in zip(*made, strict=True):
            first = row[0]
            if all(each.array is first.array for each in row):  # memory that all bindings have, as gradients
                continue
            if any(each[1:] != first[1:] or each.array.dtype != first.array.dtype for each in row):
                raise Differs
            rows.append((row, self._linear([each.array for each in row])))
        return [self._buffer(k, row, shape, row[0].array.itemsize) for row, shape in rows]

    def _linear(self, arrays: Sequence[Array]) -> tuple[Linear, ...]:
        if len({array.ndim for array in arrays}) > 1:
            raise Differs
        return tuple([linear(row, self._values.sizes) for row in zip(*(a.shape for a in arrays), strict=True)])

    def _loose_buffers(self, k: int, records: Sequence[OpRecord]) -> list[Buffer]:
        """The buffers of an operator that is bound again: its outputs grow linearly, workspaces have any sizes."""
        named = [{m.name: m for m in record.made if m.name is not None} for record in records]
        if any(each.keys() != named[0].keys() for each in named):
            raise Differs
        rows = [[each[name] for each in named] for name in named[0]]
        found = self._buffers(k, [list(row) for row in zip(*rows, strict=True)]) if rows else []
        work = [[m for m in record.made if m.name is None and m.placed] for record in records]
        for j in range(max(map(len, work))):
            most = max(each[j].array.nbytes for each in work if j < len(each))
            there = [each[j] if j < len(each) else None for each in work]
            shape = (Linear(0, most),)
            found.append(self._buffer(k, there, shape, 1))
        return found

    def _buffer(self, k: int, row: Sequence[Made | None], shape: tuple[Linear, ...], itemsize: int) -> Buffer:
        number = self._new_owner([None if each is None else each.array for each in row])
        first = next(each for each in row if each is not None)
        self._values.shapes[number] = shape
        if first.placed:
            self._lives[number] = [k, k]
            self._shapes[number] = shape, itemsize
        return Buffer(number, shape, itemsize, first)

    def _shared(self, records: Sequence[OpRecord]) -> tuple[list[int], list[Array]]:
        """The memory that an operator marks as shared: numbers of owners, and memory of others."""
        if len({len(record.shared) for record in records}) > 1:
            raise Differs
        numbers, outside = [], []
        for row in zip(*(record.shared for record in records), strict=True):
            number = self._values.owner(row)
            if number is not None:
                numbers.append(number)
            elif any(root(array) is not root(row[0]) for array in row):
                raise Differs
            else:
                outside.append(root(row[0]))
        return numbers, outside

    def _decisions(self, records: Sequence[OpRecord]) -> list[Any]:
        found = []
        for row in zip(*(record.decisions for record in records), strict=True):
            function, _, result = row[0]
            if any(each[0] is not function or each[2] != result for each in row):
                raise Differs
            slots = [self._values.slot(values) for values in zip(*(each[1] for each in row), strict=True)]
            found.append((function, _getter(slots), result))
        return found

    def _calls(self, records: Sequence[Sequence[Call]]) -> list[Any]:
        if len(set(map(len, records))) > 1:
            raise Differs
        return [self._call(row) for row in zip(*records, strict=True)]

    def _call(self, calls: Sequence[Call]) -> Any:
        values = self._values
        functions, args, keywords = zip(*calls, strict=True)
        if len(set(map(len, args))) > 1 or len(set(map(tuple, keywords))) > 1:
            raise Differs
        extreme = functions[0] is np.maximum or functions[0] is np.minimum
        slots = []
        for row in zip(*args, strict=True):
            try:
                slots.append(values.slot(row))
            except Differs:
                outputs = [each.get("out", row[-1]) for each, row in zip(keywords, args, strict=True)]
                slot = values.row(row, outputs) if extreme else None
                if slot is None:
                    raise
                slots.append(slot)
        named = {name: values.slot([each[name] for each in keywords]) for name in keywords[0]}
        return values.slot(functions), _getter(slots), named

    def _outputs(self, records: Sequence[OpRecord], made: bool) -> list[Expected]:
        """The outputs: arrays that are made with the calls, or what the kernel's are expected to be."""
        values, found = self._values, []
        inputs = [record.lods for record in records] if made else None
        if inputs is not None and len(set(map(len, inputs))) > 1:
            raise Differs
        for row in zip(*(record.outputs for record in records), strict=True):
            first = row[0]
            if any(each.local != first.local or (each.array is None) != (first.array is None) for each in row):
                raise Differs
            arrays = [each.array for each in row]
            if first.array is None:
                continue
            lod = self._lod([each.lod for each in row], inputs)
            if made:
                slot = values.slot(arrays)
                if first.local:
                    found.append(Expected(first.name, slot, values.view(slot), lod))
                elif lod:
                    raise Differs
                elif values.table[slot] is None:
                    raise Differs
                continue
            owner = values.owner(arrays)
            if owner is not None:
                view = values.given(arrays, owner)
                found.append(Expected(first.name, view.slot, view, lod))
        return found

    def _touch(self, records: Sequence[OpRecord]) -> None:
        """Let the buffers live that an operator uses whose kernel is bound again."""
        for record, known in zip(records, self._values.owners, strict=True):
            arrays: list[Any] = [*record.inputs, *(o.array for o in record.outputs)]
            for function, args, kw in record.calls:
                arrays += [getattr(function, "__self__", None), *args, *kw.values()]
            for x in arrays:  # which grows
                if isinstance(x, np.ndarray):
                    number = known.get(id(root(x)))
                    if number is not None:
                        self._values.used.add(number)
                elif type(x) in (tuple, list):
                    arrays.extend(x)


def _without(sizes: tuple[int, ...], at: Sequence[int]) -> tuple[int, ...]:
    return tuple([n for i, n in enumerate(sizes) if i not in at])


def _size(at: Sequence[int]) -> Callable[[Record], int]:
    return lambda record: record.sizes[at[0]]


def _getter(slots: Sequence[int]) -> Callable[[list[Any]], tuple[Any, ...]]:
    """A function that takes these slots of a table."""
    if len(slots) > 1:
        return itemgetter(*slots)
    if slots:
        slot = slots[0]
        return lambda table: (table[slot],)
    return lambda table: ()
