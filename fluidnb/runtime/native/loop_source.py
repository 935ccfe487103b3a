"""The text of a C function for the body of a loop and the loop around it."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from fluidnb.runtime.native.c_source import Nest
from fluidnb.runtime.native.expressions import TYPES
from fluidnb.runtime.native.local_memory import separate
from fluidnb.runtime.native.regions import regions
from fluidnb.runtime.native.statements import Statement, bounds

#: Of the table: whether to release the lock; iterations, at most and then done; the call that cannot be made, or -1.
RELEASE, ITERATIONS, FAILED = range(3)
_TEXT = """
void *loop(void *self, void *kept) {{
  int64_t *table = PyCapsule_GetPointer(self, 0);
  const int64_t *restrict P = table;
  void *thread = P[0] ? PyEval_SaveThread() : 0;
  const int64_t most = P[1];
  int64_t iteration = 0, failed = -1;
{begin}
  for (; iteration < most && {more}; iteration++) {{
{body}
  }}
out:
{end}
  if (thread) PyEval_RestoreThread(thread);
  table[1] = iteration;
  table[2] = failed;
  Py_IncRef(self);
  return self;
}}
"""
_Value = tuple[int, str]  # address and type character


class CLoop:
    """A C function for a loop; values of one element are its local variables.

    Args:
        statements: all calls of the body.
        lives: the buffers of the arrays in the arena.
        condition: the bool that the body updates.

    Attributes:
        text: its definition in C.
        table: the numbers that it reads.
        kept: the arrays whose addresses are in the table.
        size: elements that an iteration computes.
        nests: how many nests of loops are in an iteration.
    """

    def __init__(self, statements: Sequence[Statement], lives: Mapping[int, Any], condition: Any) -> None:
        self.table: list[int] = [0] * 3
        apart, lives, _ = separate(statements, lives)
        self.kept = [condition, *(operand.array for s in (*statements, *apart) for operand in s.operands)]
        variables = _variables(apart, condition)
        parts = regions(apart)
        self.size, self.nests = sum(prod(r.dims) * len(r.statements) for r in parts), len(parts)
        indices = {s.call: _value(s.operands[1].array)[0] for s in statements if s.kind == "pick"}
        body = [line for r in parts for line in Nest(r, lives, self.table, variables, indices).lines]
        written = {_value(s.operands[-1].array) for s in apart if id(s.operands[-1].array) not in lives}
        begin, end = [], []
        for value, name in variables.items():
            place = self._place(value)
            begin.append(f"  {TYPES[value[1]]} {name} = {place};")
            if value in written:
                end.append(f"  {place} = {name};")
        more = variables.get(_value(condition)) or self._place(_value(condition))
        self.text = _TEXT.format(begin="\n".join(begin), end="\n".join(end), more=more, body="\n".join(body))

    def _place(self, value: _Value) -> str:
        """A value in its memory."""
        self.table.append(value[0])
        return f"*({TYPES[value[1]]} *)P[{len(self.table) - 1}]"


def _value(array: Any) -> _Value:
    return bounds(array)[0], array.dtype.char


def _variables(statements: Sequence[Statement], condition: Any) -> dict[_Value, str]:
    """The values of one element, with names; those whose bytes other operands have too stay in memory."""
    arrays = [condition, *(operand.array for s in statements for operand in s.operands)]
    places = {(_value(a), bounds(a)) for a in arrays}
    found = list(dict.fromkeys(_value(a) for a in arrays if a.size == 1))
    names = {}
    for k, value in enumerate(found):
        ranges = [(low, high) for other, (low, high) in places if other == value]
        low, high = ranges[0]
        if len(ranges) == 1 and not any(low < b and a < high for other, (a, b) in places if other != value):
            names[value] = f"u{k}"
    return names
