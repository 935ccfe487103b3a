"""Memory that only some statements touch: it needs no place in the arena, and a part of it serves all rows."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from fluidnb.memory.views import view_of
from fluidnb.runtime.native.regions import Access, Region, regions
from fluidnb.runtime.native.statements import Statement


def separate(
    statements: Sequence[Statement], lives: Mapping[int, Any], reach: int = 0
) -> tuple[list[Statement], dict[int, Any], set[int]]:
    """Statements with the buffers that only one region of them touches in separate memory.

    Args:
        reach: as for `regions`.

    Returns:
        The statements; the buffers of their arrays, by the identities of these; and the numbers of the buffers that
        several regions touch, which stay in the arena.
    """
    inside, crossing = _inside(statements, lives), set[int]()
    while True:
        apart, buffers = _apart(statements, lives, inside - crossing)
        more = _crossing(regions(apart, reach), buffers) - crossing
        if not more:
            return apart, buffers, crossing
        crossing |= more  # what one nest hands to another must not take memory twice


def _inside(statements: Sequence[Statement], lives: Mapping[int, Any]) -> set[int]:
    """The numbers of the buffers that no call but these statements touches."""
    first, last = statements[0].call, statements[-1].call
    own = (lives.get(id(operand.array)) for s in statements for operand in s.operands)
    return {life.buffer for life in own if life is not None and first <= life.first and life.last <= last}


def _crossing(nests: Sequence[Region], lives: Mapping[int, Any]) -> set[int]:
    """The numbers of the buffers that several nests touch."""
    spans: dict[int, set[int]] = {}
    for k, nest in enumerate(nests):
        for statement in nest.statements:
            for operand in statement.operands:
                life = lives.get(id(operand.array))
                if life is not None:
                    spans.setdefault(life.buffer, set()).add(k)
    return {buffer for buffer, found in spans.items() if len(found) > 1}


def _apart(
    statements: Sequence[Statement], lives: Mapping[int, Any], buffers: set[int]
) -> tuple[list[Statement], dict[int, Any]]:
    """Statements with these buffers in separate memory: in the arena, one may have the bytes of another.

    A nest writes only the first row of such memory, and pages that are not written take no memory.
    """
    found = dict(lives)
    memory: dict[int, Any] = {}
    moved: dict[int, Any] = {}

    def other(array: Any) -> Any:
        life = lives.get(id(array))
        if life is None or life.buffer not in buffers:
            return array
        if id(array) not in moved:
            if life.buffer not in memory:
                memory[life.buffer] = np.empty(life.size, np.uint8)
            new = view_of(memory[life.buffer], array.shape, array.dtype, life.offset, array.strides)
            moved[id(array)] = new
            found[id(new)] = life
        return moved[id(array)]

    apart = [
        s._replace(operands=tuple(operand._replace(array=other(operand.array)) for operand in s.operands))
        for s in statements
    ]
    return apart, found


def local_accesses(region: Region, lives: Mapping[int, Any], crossing: Collection[int]) -> set[Access]:
    """Accesses that are written and read in this region alone: each row may use the memory of the first.

    Args:
        crossing: the numbers of the buffers that other regions touch too.
    """
    first, last = region.statements[0].call, region.statements[-1].call
    local: dict[Access, bool] = {}
    for statement, row in zip(region.statements, region.accesses, strict=True):
        for i, (access, operand) in enumerate(zip(row, statement.operands, strict=True)):
            life = lives.get(id(operand.array))
            inside = life is not None and first <= life.first and life.last <= last
            inside = inside and statement.kind != "columns"
            inside = inside and life is not None and life.buffer not in crossing
            if i < len(row) - 1:
                local[access] = local.get(access, False) and inside  # read before it is written: no
            else:
                local[access] = local.get(access, True) and inside
    return {access for access, yes in local.items() if yes}
