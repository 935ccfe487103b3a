"""Native code for bindings of many sizes: compiled once, the numbers that it reads are computed for each size.

The text of a function has no sizes. The numbers of its table are addresses, sizes and strides: compared for four sizes,
they are polynomials of the size, or places in the memory of a feed or of an output, which each binding has elsewhere.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fluidnb.memory import address, root
from fluidnb.runtime.native.segment_code import Calls, NativeCall, groups_of, nothing, units_of

#: Bindings that are compared, each for another size.
SAMPLES = 4


class Sample(NamedTuple):
    """A binding for one size.

    Attributes:
        calls: its calls.
        lives: gives the buffers of its arrays.
        first: index of the first call of each operator, and the number of calls at the end.
        whole: for each operator, whether its calls are those of a template.
        owners: arrays that own memory outside of the arena, by number.
    """

    size: int
    calls: Calls
    lives: Callable[[], Mapping[int, Any]]
    first: list[int]
    whole: list[bool]
    owners: dict[int, Any]


class Polynomial(NamedTuple):
    """The whole number ``(a * size ** 2 + b * size) / 2 + c``."""

    a: int
    b: int
    c: int

    def at(self, size: int) -> int:
        """The number for a size."""
        return (self.a * size + self.b) * size // 2 + self.c


class Differs(Exception):
    """A value is no such function of the size as it would have to be."""


class _Number(NamedTuple):
    """A number of a table: in the memory of an owner, or in scratch memory, or of the size alone (-1 for both)."""

    position: int
    owner: int
    scratch: int
    polynomial: Polynomial


class _Function(NamedTuple):
    """A compiled function in place of some calls.

    Attributes:
        op: ordinal of the operator of its first call.
        call: index of that call among those of the operator.
        length: how many calls it stands for, with those of nothing between.
        reach: how many operators it has calls of.
        table: the numbers that it reads, where they are the same for all sizes.
        numbers: the others.
        kept: arrays whose addresses are among the first.
        scratch: memory that no call but its own touches.
    """

    op: int
    call: int
    length: int
    reach: int
    path: Path
    name: str
    table: list[int]
    numbers: list[_Number]
    kept: list[Any]
    scratch: list[Any]
    report: NativeCall


def polynomial(values: Sequence[int], sizes: Sequence[int]) -> Polynomial:
    """The polynomial that has these values at these sizes, more than three and all different."""
    x, y = sizes[:3], values[:3]
    slopes = [Fraction(b - a, q - p) for (a, b), (p, q) in zip(pairwise(y), pairwise(x), strict=True)]
    a = (slopes[1] - slopes[0]) / (x[2] - x[0])
    b = slopes[0] - a * (x[0] + x[1])
    c = y[0] - a * x[0] ** 2 - b * x[0]
    if any(number.denominator > 1 for number in (2 * a, a + b, c)):
        raise Differs
    found = Polynomial(int(2 * a), int(2 * b), int(c))
    if any(found.at(n) != value for n, value in zip(sizes, values, strict=True)):
        raise Differs
    return found


class SizedCode:
    """The native code of all bindings of a template."""

    def __init__(self, largest: int) -> None:
        self.largest = largest
        self.arena: Any = None  # the memory that all bindings share
        self.functions: list[_Function] | None = None  # once they are compiled
        self._samples: list[Sample] = []
        self._runs, self._seconds, self._begun = 0, 0.0, False

    def offer(self, sample: Sample) -> None:
        """Keep a binding to compare it with others."""
        if not self._begun and len(self._samples) < SAMPLES:
            if all(known.size != sample.size for known in self._samples):
                self._samples.append(sample)

    def count(self, seconds: float, often: int, long: float) -> bool:
        """Count a run; whether it is time to compile."""
        self._runs += 1
        self._seconds += seconds
        if self._begun or len(self._samples) < SAMPLES or self._runs < often or self._seconds < long:
            return False
        self._begun = True
        return True

    def build(self) -> None:
        """Compile what the bindings have in common."""
        samples, self._samples = self._samples, []
        self.functions = _compiled(samples, self.largest, self.arena)

    def calls(self, sample: Sample) -> tuple[Calls, list[NativeCall]] | None:
        """The calls of a binding with native ones among them, and a report of these; None before they are compiled."""
        if not self.functions:
            return None
        from fluidnb.runtime.native.functions import bound_call

        plain, first, size = sample.calls, sample.first, sample.size
        left = {i: call for i, call in enumerate(plain.calls) if call[0] is not nothing}
        spans: list[tuple[int, int]] = []
        report = []
        starts = {number: address(array) for number, array in sample.owners.items()}
        owners = tuple(sample.owners.values())
        for one in self.functions:
            begin = first[one.op] + one.call
            if not all(sample.whole[one.op : one.op + one.reach]):
                continue
            table = one.table.copy()
            for index, owner, scratch, (a, b, c) in one.numbers:
                start = starts[owner] if owner >= 0 else address(one.scratch[scratch]) if scratch >= 0 else 0
                table[index] = (a * size + b) * size // 2 + c + start
            left[begin] = bound_call(one.path, one.name, table, [*one.kept, *one.scratch, owners])
            for i in range(begin + 1, begin + one.length):
                left.pop(i, None)
            spans.append((begin, begin + one.length - 1))
            report.append(one.report)
        units = units_of(plain.units, spans)
        return Calls(list(left.values()), [plain.ops[i] for i in left], [units[i] for i in left]), report


def _compiled(samples: Sequence[Sample], largest: int, arena: Any) -> list[_Function]:
    """The functions that all bindings have, in the order of their calls."""
    from fluidnb.runtime.native.c_source import HEAD, CFunction
    from fluidnb.runtime.native.compiler import library
    from fluidnb.runtime.native.segment_code import files_of
    from fluidnb.runtime.native.statements import statement_of

    rows: list[dict[tuple[int, int, int], Any]] = []
    for sample in samples:
        ops = [k for k, (a, b) in enumerate(pairwise(sample.first)) for _ in range(b - a)]
        calls, lives = sample.calls.calls, sample.lives()
        found = [statement_of(call, i) if sample.whole[ops[i]] else None for i, call in enumerate(calls)]
        row = {}
        for group in groups_of([s for s in found if s is not None and s.kind != "pick"], sample.calls):
            first, last = group[0].call, group[-1].call
            key = ops[first], first - sample.first[ops[first]], last - first + 1
            report = NativeCall(list(dict.fromkeys(sample.calls.ops[s.call] for s in group)), len(group), 0, "")
            row[key] = CFunction(group, lives), report, ops[last] - ops[first] + 1
        rows.append(row)
    functions: list[tuple[Any, ...]] = []
    for key, (function, report, reach) in rows[0].items():
        others = [row.get(key) for row in rows]
        if any(other is None or other[0].name != function.name for other in others):
            continue
        try:
            numbers = _Numbers(samples, [other[0] for other in others if other is not None], largest, arena)
        except Differs:
            continue
        report = report._replace(loops=len(function.regions), text=function.text)
        functions.append((key, reach, function, numbers, report))
    paths: dict[str, Any] = {}
    for texts in files_of([row[2].text for row in functions]):
        paths.update(dict.fromkeys(texts, library(HEAD + "".join(texts))))
    return [
        _Function(op, call, length, reach, paths[function.text], function.name, numbers.table, numbers.numbers,
                  numbers.kept, numbers.scratch, report)
        for (op, call, length), reach, function, numbers, report in functions
    ]  # fmt: skip


class _Numbers:
    """The numbers of a table as functions of the size, and the memory that they are addresses in."""

    def __init__(self, samples: Sequence[Sample], functions: Sequence[Any], largest: int, arena: Any) -> None:
        self._sizes, self._functions = [sample.size for sample in samples], functions
        self._arena = address(arena), address(arena) + arena.nbytes
        self._addresses = [{address(x) for x in function.kept} for function in functions]
        self._owners = [[(address(x), address(x) + x.nbytes, n) for n, x in s.owners.items()] for s in samples]
        rows = [self._scratch(function, k) for k, function in enumerate(functions)]
        if len(set(map(len, rows))) > 1:
            raise Differs
        self.scratch = [np.empty(max(1, self._bytes(row, largest)), np.uint8) for row in zip(*rows, strict=True)]
        self._spans = [[(address(x), address(x) + x.nbytes, n) for n, x in enumerate(row)] for row in rows]
        tables = [function.table for function in functions]
        if len(set(map(len, tables))) > 1:
            raise Differs
        # whether it lets other threads run: where it does so for one size
        self.table = [max(table[0] for table in tables)]
        self.numbers: list[_Number] = []
        for index, values in enumerate(zip(*tables, strict=True)):
            if index:
                number = self._number(index, values)
                self.table.append(values[0])
                if number is not None:
                    self.numbers.append(number)
        varying = {number.position for number in self.numbers}
        fixed = {value for index, value in enumerate(self.table) if index not in varying}
        self.kept = [x for x in functions[0].kept if address(x) in fixed]

    def _bytes(self, arrays: Sequence[Any], largest: int) -> int:
        sizes = [array.nbytes for array in arrays]
        return int(max(max(sizes), polynomial(sizes, self._sizes).at(largest)))

    def _scratch(self, function: Any, k: int) -> list[Any]:
        """The memory that only a function touches, in the order of its operands."""
        found = {}
        for array in function.kept:
            owner = root(array)
            if owner.dtype == np.uint8 and owner.base is None and self._owner(address(owner), k) < 0:
                found[id(owner)] = owner
        return list(found.values())

    def _owner(self, at: int, k: int) -> int:
        return next((n for start, end, n in self._owners[k] if start <= at < end), -1)

    def _number(self, index: int, values: Sequence[int]) -> _Number | None:
        """A number of a table; None where it is the same for all sizes."""
        if len(set(values)) == 1:
            return None
        owners = {self._owner(value, k) for k, value in enumerate(values)}
        if owners != {-1}:
            return self._inside(index, values, owners, self._owners, scratch=False)
        spans = {
            next((n for start, end, n in self._spans[k] if start <= value < end), -1) for k, value in enumerate(values)
        }
        if spans != {-1}:
            return self._inside(index, values, spans, self._spans, scratch=True)
        places = [value in known for value, known in zip(values, self._addresses, strict=True)]
        if any(places) and not all(self._arena[0] <= v <= self._arena[1] for v in values):
            self._check_same_constant(values)
            return None
        return _Number(index, -1, -1, polynomial(values, self._sizes))

    def _check_same_constant(self, values: Sequence[int]) -> None:
        """Refuse addresses in memory that is not known, but for a number that each statement has anew."""
        found = []
        for value, function in zip(values, self._functions, strict=True):
            arrays = [x for x in function.kept if x.size == 1 and address(x) == value]
            if not arrays:
                raise Differs
            found.append((arrays[0].dtype, arrays[0].tobytes()))
        if len(set(found)) > 1:
            raise Differs

    def _inside(
        self, index: int, values: Sequence[int], numbers: set[int], spans: Sequence[Sequence[tuple[int, int, int]]],
        scratch: bool,
    ) -> _Number:  # fmt: skip
        """A place in memory that each binding has elsewhere."""
        if len(numbers) > 1:
            raise Differs
        (number,) = numbers
        starts = [next(start for start, _, n in row if n == number) for row in spans]
        offset = polynomial([value - start for value, start in zip(values, starts, strict=True)], self._sizes)
        return _Number(index, -1, number, offset) if scratch else _Number(index, number, -1, offset)
