"""The text of a C function for statements, and the table of numbers that it reads: addresses, sizes and strides.

The text has neither sizes nor addresses, so that programs that differ in these alone share the compiled code.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Any

from fluidnb.runtime.native.exact_functions import NAMES, SUMS, TEXT, sums_agree
from fluidnb.runtime.native.expressions import TYPES
from fluidnb.runtime.native.local_memory import local_accesses, separate
from fluidnb.runtime.native.regions import Access, Region, regions, together
from fluidnb.runtime.native.statements import Statement

#: Elements of a row that are computed at a time where numpy's loops take part: they stay in the first cache.
TILE = 1024
#: Bytes that a nest touches, from which on it reads and writes memory and no cache. 12 operators on 4 million numbers
#: then take 1.64 in place of 2.25 ms with vectors of 32 bytes, since those of 64 lie in two lines of a cache where
#: arrays do not begin at a multiple of 64, and 1.47 with stores past the caches, which do not read what they replace.
#: Arrays that are in a cache take longer with both.
LARGE = 24 << 20
#: Arrays that are written past the caches at a time: a part of each is in the first cache.
_AT_ONCE = 4
#: Functions that take longer than reading their argument from memory.
_SLOW = ("/", "sqrt", *NAMES.values())
#: Nests that a statement may go back past: those of a convolution between two normalisations.
REACH = 12
#: Functions with more work than this, in elements, release the lock of the interpreter.
LONG = 100_000

HEAD = """\
#include <stdint.h>
void *PyCapsule_GetPointer(void *, const char *);
void *PyEval_SaveThread(void);
void PyEval_RestoreThread(void *);
void Py_IncRef(void *);
typedef void (*loop_t)(char **, const intptr_t *, const intptr_t *, void *);
""" + TEXT + """
#if defined(__AVX__) && __GNUC__ >= 8 || defined(__AVX__) && defined(__clang__)
typedef long long vector_t __attribute__((vector_size(32)));
#ifdef __clang__
#define PAST_CACHES(to, v) __builtin_nontemporal_store(v, to)
#define NARROW
#else
#define PAST_CACHES(to, v) __builtin_ia32_movntdq256(to, v)
#define NARROW __attribute__((target("prefer-vector-width=256")))
#endif
#define STREAMED __builtin_ia32_sfence()
INLINE void stream(char *to, const char *from, int64_t size) {
  int64_t at = -(uintptr_t)to & 31;
  at = at < size ? at : size;
  __builtin_memcpy(to, from, at);
  for (; at + 32 <= size; at += 32) {
    vector_t v;
    __builtin_memcpy(&v, from + at, 32);
    PAST_CACHES((vector_t *)(to + at), v);
  }
  __builtin_memcpy(to + at, from + at, size - at);
}
#else
#define NARROW
#define STREAMED
#define stream __builtin_memcpy
#endif
"""
_FUNCTION = """
{kind}void *{name}(void *self, void *kept) {{
  const int64_t *P = PyCapsule_GetPointer(self, 0);
  void *thread = P[0] ? PyEval_SaveThread() : 0;
{body}
  if (thread) PyEval_RestoreThread(thread);
  Py_IncRef(self);
  return self;
}}
"""


class CFunction:
    """A C function for statements.

    Attributes:
        name: its name, the same for the same text.
        text: its definition in C.
        table: the numbers that it reads.
        kept: the arrays whose addresses are in the table.
    """

    def __init__(self, statements: Sequence[Statement], lives: Mapping[int, Any]) -> None:
        self.table: list[int] = [0]
        # Scratch memory of one nest is no other's: not so in the arena, where outer loops may bring nests between.
        apart, lives, crossing = separate(statements, lives, REACH)
        self.kept = [operand.array for s in apart for operand in s.operands]
        self.regions = regions(apart, REACH)
        self.table[0] = int(sum(prod(r.dims) * len(r.statements) for r in self.regions) > LONG)
        nests, text = list[Nest](), ""
        for parts, levels in together(self.regions):
            text += "\n".join([*_nests(parts, levels, lives, crossing, self.table, nests), ""])
        large = [nest for nest in nests if nest.is_large]
        kind = "NARROW " if large and not any(nest.is_slow for nest in large) else ""
        self.name = f"call_{hashlib.sha256((kind + text).encode()).hexdigest()[:16]}"
        self.text = _FUNCTION.format(kind=kind, name=self.name, body=text)


def _nests(
    parts: Sequence[Region], levels: int, lives: Mapping[int, Any], crossing: Collection[int], table: list[int],
    nests: list[Nest],
) -> list[str]:  # fmt: skip
    """The lines of nests whose outer loops are one; ``nests`` gets them."""
    if not levels:
        nests.append(Nest(parts[0], lives, table, crossing=crossing))
        return nests[-1].lines
    lines = ["  {"]
    for level, size in enumerate(parts[0].dims[:levels]):
        table.append(size)
        lines.append(f"{'  ' * (level + 2)}for (int64_t o{level} = 0; o{level} < P[{len(table) - 1}]; o{level}++) {{")
    for region in parts:
        nests.append(Nest(region, lives, table, crossing=crossing, shared=levels))
        lines += nests[-1].lines
    return lines + ["  " * level + "}" for level in range(levels + 1, 0, -1)]


def _kind(char: str, chars: str) -> str:
    """The type of C of what a statement computes, from the type characters of its result and of its operands.

    A bool is as wide as the numbers that it comes from: with other widths gcc 12 uses no vectors beside exp, where 2
    million numbers take 38 ms in place of 1.9, and loops with vectors take up to four times as long.
    """
    if char != "?":
        return TYPES[char]
    return "int64_t" if any(char in "dqQ" for char in chars[:-1]) else "int32_t"


class Nest:
    """The text of one region.

    Args:
        table: gets the numbers that it reads.
        variables: address and type character of values that are local variables of the function -> their names.
        indices: call of a ``pick`` -> the address from which the call reads its index.
        crossing: the numbers of the buffers that other nests touch too, whose calls may be between those of this one.
        shared: how many outer loops are around it already, those of `together`.

    Attributes:
        lines: the text.
        is_large: whether it touches more than the caches hold.
        is_slow: whether it computes for longer than it reads.
    """

    def __init__(
        self, region: Region, lives: Mapping[int, Any], table: list[int],
        variables: Mapping[tuple[int, str], str] = MappingProxyType({}),
        indices: Mapping[int, int] = MappingProxyType({}), crossing: Collection[int] = (), shared: int = 0,
    ) -> None:  # fmt: skip
        self.lines: list[str] = []
        self._region, self._lives, self._table = region, lives, table
        self._depth, self._indices, self._crossing = 1 + shared, indices, crossing
        statements = region.statements
        self._span = statements[0].call, statements[-1].call
        self._numbers: dict[Access, int] = {}
        for row in region.accesses:
            for access in row:
                self._numbers.setdefault(access, len(self._numbers))
        self._pointers: dict[Access, str] = {}
        self._steps: dict[Access, str] = {}  # inner strides that are neither 0 nor the size of an element
        outer = max(len(region.dims) - 1, 0)
        local = local_accesses(region, lives, crossing)
        self.is_large = sum(b - a for a, b in {region.ranges[a] for a in self._numbers if a not in local}) >= LARGE
        self.is_slow = any(s.text is None or any(slow in s.text for slow in _SLOW) for s in statements)
        self._past_caches = self._only_written() - local if self.is_large and not shared else set()
        tiled = bool(region.dims) and not region.fixed and any(s.loop is not None for s in statements)
        tiled = tiled or bool(self._past_caches)
        local = local if outer or tiled else set()
        self._add("{")
        sizes = [self._number(f"n{i}", n) for i, n in enumerate(region.dims)]
        strides: dict[tuple[Access, int], str] = {}
        for access, k in self._numbers.items():
            name = variables.get((access.address, access.char))
            start = f"&{name}" if name else f"P[{self._word(access.address)}]"
            self._add(f"char *const a{k} = (char *){start};")
            self._pointers[access] = f"a{k}"
            for level in range(outer):
                if access.strides[level] and access not in local:
                    strides[access, level] = self._number(f"s{k}_{level}", access.strides[level])
            if access.strides and access.strides[-1] not in (0, self._size(access)):
                self._steps[access] = self._number(f"s{k}", access.strides[-1])
        self._clear_sums(sizes)
        for level in range(outer):
            index = f"o{level}" if level < shared else f"i{level}"
            if level >= shared:
                self._add(f"for (int64_t {index} = 0; {index} < {sizes[level]}; {index}++) {{")
            for access, k in self._numbers.items():
                if (access, level) in strides:
                    name = f"a{k}_{level}"
                    step = strides[access, level]
                    self._add(f"char *const {name} = {self._pointers[access]} + {index} * {step};")
                    self._pointers[access] = name
        self._inner = sizes[-1] if sizes else "1"
        if tiled:
            self._add(f"for (int64_t t = 0; t < {sizes[-1]}; t += {TILE}) {{")
            self._add(f"const int64_t c = {sizes[-1]} - t < {TILE} ? {sizes[-1]} - t : {TILE};")
            self._inner = "c"
            for access, k in self._numbers.items():
                if access.strides[-1] and access not in local:
                    step = self._steps.get(access, str(self._size(access)))
                    self._add(f"char *const a{k}_t = {self._pointers[access]} + t * {step};")
                    self._pointers[access] = f"a{k}_t"
        self._all_steps()
        for _ in range(outer - shared + tiled):
            self._close()
        if self._past_caches:
            self._add("STREAMED;")
        self._close()

    def _add(self, line: str) -> None:
        self.lines.append("  " * self._depth + line)
        if line.endswith("{"):
            self._depth += 1

    def _word(self, value: int) -> int:
        self._table.append(value)
        return len(self._table) - 1

    def _number(self, name: str, value: int) -> str:
        self._add(f"const int64_t {name} = P[{self._word(value)}];")
        return name

    @staticmethod
    def _size(access: Access) -> int:
        return {"f": 4, "d": 8, "?": 1}.get(access.char) or int(TYPES[access.char].strip("uint_")) // 8

    def _only_written(self) -> set[Access]:
        """Accesses of dense rows that all statements together write and do not read."""
        region = self._region
        if region.fixed or not region.dims or region.dims[-1] < TILE:
            return set()
        if any(s.text is None or s.masked for s in region.statements):
            return set()
        read, written = set[Access](), set[Access]()
        for row in region.accesses:
            read.update(set(row[:-1]) - written)
            written.add(row[-1])
        found = {a for a in written - read if a.strides[-1] == self._size(a)}
        return found if len(found) <= _AT_ONCE else set()

    def _clear_sums(self, sizes: list[str]) -> None:
        for statement, row in zip(self._region.statements, self._region.accesses, strict=True):
            if statement.kind == "columns":
                kind = TYPES[row[-1].char]
                at = self._pointers[row[-1]]
                self._add(f"for (int64_t i = 0; i < {sizes[-1]}; i++) (({kind} *){at})[i] = 0;")

    def _all_steps(self) -> None:
        """The statements, those of one loop together."""
        loop: list[int] = []
        for k, statement in enumerate(self._region.statements):
            inline = statement.text is not None
            if loop and not (inline and self._region.each_row[loop[-1]] == self._region.each_row[k]):
                self._loop(loop)
                loop = []
            if inline:
                loop.append(k)
            elif statement.kind == "pick":
                self._pick(k)
            else:
                self._numpy_loop(k)
        if loop:
            self._loop(loop)

    def _at(self, access: Access) -> str:
        """An element in the inner loop."""
        kind, pointer = TYPES[access.char], self._pointers[access]
        if access in self._steps:
            return f"*({kind} *)({pointer} + i * {self._steps[access]})"
        return f"(({kind} *){pointer})[i]" if access.strides and access.strides[-1] else f"*({kind} *){pointer}"

    def _loop(self, members: list[int]) -> None:
        """One loop over the elements of a row that computes several statements, with their values in registers."""
        region, once = self._region, self._region.each_row[members[0]] or not self._region.dims
        before, body, behind = list[str](), list[str](), list[str]()
        values: dict[Access, str] = {}
        last: dict[Access, Statement] = {}

        def value(access: Access) -> str:
            if access not in values:
                values[access] = f"x{self._numbers[access]}"
                constant = once or not access.strides[-1]
                (before if constant else body).append(f"{TYPES[access.char]} {values[access]} = {self._at(access)};")
            return values[access]

        for k in members:
            statement, row = region.statements[k], region.accesses[k]
            read = [f"({TYPES[c]}){value(a)}" for a, c in zip(row[:-1], statement.chars, strict=False)]
            if statement.kind == "columns":
                read.append(value(row[-1]))
            assert statement.text is not None
            text = statement.text.format(*(f"({r})" for r in read))
            if statement.masked:
                text = f"{read[-1]} ? ({text}) : {value(row[-1])}"
            kind = _kind(row[-1].char, statement.chars)
            body.append(f"{kind} v{k} = ({kind})({text});")
            values[row[-1]] = f"v{k}"
            last[row[-1]] = statement
        end = region.statements[members[-1]].call
        for access, statement in last.items():
            life = self._lives.get(id(statement.operands[-1].array))
            stays = life is None or life.last > end or life.buffer in self._crossing
            if access in self._past_caches:
                k = self._numbers[access]
                kind = TYPES[access.char]
                self._add(f"{kind} w{k}[{TILE}] __attribute__((aligned(64)));")
                body.append(f"w{k}[i] = {values[access]};")
                behind.append(f"stream({self._pointers[access]}, (char *)w{k}, {self._inner} * {self._size(access)});")
            elif stays or statement.kind == "columns":
                body.append(f"{self._at(access)} = {values[access]};")
        self._add("{")
        for line in before:
            self._add(line)
        if once:
            for line in body:
                self._add(line)
        else:
            self._add("#pragma omp simd")
            self._add(f"for (int64_t i = 0; i < {self._inner}; i++) {{")
            for line in body:
                self._add(line)
            self._close()
        for line in behind:
            self._add(line)
        self._close()

    def _close(self) -> None:
        self._depth -= 1
        self.lines.append("  " * self._depth + "}")

    def _pick(self, k: int) -> None:
        """An element by its index; the loop ends where there is none."""
        statement, row = self._region.statements[k], self._region.accesses[k]
        x, index, out = (self._pointers[a] for a in row)
        kind, whole = TYPES[row[0].char], TYPES[row[1].char]
        array = statement.operands[0].array
        size, step = f"P[{self._word(array.shape[0])}]", f"P[{self._word(array.strides[0])}]"
        self._add("{")
        self._add(f"int64_t i = *({whole} *){index};")
        self._add(f"i += i < 0 ? {size} : 0;")
        self._add(f"if (i < 0 || i >= {size}) {{")
        self._add(f"*({whole} *)P[{self._word(self._indices[statement.call])}] = *({whole} *){index};")
        self._add(f"failed = {statement.call};")
        self._add("goto out;")
        self._close()
        self._add(f"*({kind} *){out} = *({kind} *)({x} + i * {step});")
        self._close()

    def _numpy_loop(self, k: int) -> None:
        """A sum of a row, or a call of numpy's loop for its elements."""
        statement, row = self._region.statements[k], self._region.accesses[k]
        assert statement.loop is not None
        pointers = [self._pointers[a] for a in row]
        steps = [
            self._steps.get(a, str(self._size(a) if a.strides and a.strides[-1] else 0)) for a in row
        ]
        count = "1" if self._region.each_row[k] else self._inner
        if statement.kind == "rows" and not statement.from_first and sums_agree(row[0].char):
            x, out = pointers
            kind = TYPES[row[0].char]
            self._add(f"*({kind} *){out} = 0 + {SUMS[row[0].char]}(({kind} *){x}, {count});")
            return
        self._add("{")
        if statement.kind == "rows":
            x, out = pointers
            kind, pointers, steps = TYPES[row[0].char], [out, x, out], ["0", steps[0], "0"]
            if not statement.from_first:
                self._add(f"*({kind} *){out} = 0;")
            else:
                self._add(f"*({kind} *){out} = *({kind} *){x};")
                pointers[1], count = f"{x} + {self._size(row[0])}", f"{count} - 1"
        function, data = self._word(statement.loop.function), self._word(statement.loop.data)
        self._add(f"char *args[] = {{{', '.join(pointers)}}};")
        self._add(f"const intptr_t count = {count}, steps[] = {{{', '.join(steps)}}};")
        self._add(f"((loop_t)P[{function}])(args, &count, steps, (void *)P[{data}]);")
        self._close()
