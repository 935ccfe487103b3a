"""Memory reuse: variables that can take the memory of others whose lifetime is over."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

from fluidnb.op import OpDef, ValuesOf, get_op, has_op
from fluidnb.passes.lifetimes import Life
from fluidnb.passes.uses import Uses, mentioned
from fluidnb.program.sub_blocks import own_blocks
from fluidnb.proto.desc import BlockDesc, VarDesc
from fluidnb.values.dtypes import VarType


@dataclass(slots=True, eq=False)
class Cell:
    """Memory that one variable after the other lives in, under the name of the first."""

    lives: list[Life]  # the variables in order

    @property
    def names(self) -> list[str]:
        """The variables' names."""
        return [life.name for life in self.lives]

    @property
    def last(self) -> int:
        """The operator that reads the last variable last."""
        return self.lives[-1].last


def cells(block: BlockDesc, uses: Uses, lives: Sequence[Life], load: list[int], level: int) -> list[Cell]:
    """Share memory among variables that are not needed at the same time.

    A variable takes the memory of one before it only where this does not raise the peak, since memory is held between
    the two lives. Excluded are variables with four axes and more, whose memory order depends on their names, variables
    that are written twice or in place, that nested blocks see, random ones, and constants.

    Args:
        load: bytes in use at each operator; raised where memory is held.
        level: 0 for variables of the same shape, 1 for all that fit.
    """
    segment = list(_segments(block))
    plain = _plain(block, uses)
    peak = max(load, default=0)
    shared: list[Cell] = []
    kinds: dict[Any, tuple[list[tuple[int, int, Cell]], list[Cell]]] = defaultdict(lambda: ([], []))
    for i, life in enumerate(lives):
        cell = Cell([life])
        kind = _kind(life.var, level)
        if kind is None or life.name not in plain or segment[life.first] != segment[life.last]:
            shared.append(cell)
            continue
        busy, free = kinds[kind, segment[life.first]]
        while busy and busy[0][0] < life.first:
            free.append(heappop(busy)[2])
        places = range(len(free))[::-1]
        for at in places if level else places[:1]:  # of equal ones the last to end is held for the shortest time
            other = free[at]
            size, gap = other.lives[0].size, range(other.last + 1, life.first)
            if life.size <= size and all(load[k] + size <= peak for k in gap):
                for k in gap:
                    load[k] += size
                del free[at]
                other.lives.append(life)
                cell = other
                break
        else:
            shared.append(cell)
        heappush(busy, (life.last, i, cell))
    return shared


def _segments(block: BlockDesc) -> Iterator[int]:
    """For each operator the index of its segment; memory is not placed across segments."""
    stops = 0
    for op in block.ops:
        definition = get_op(op.optype) if has_op(op.optype) else None
        stops += definition is None or _stops(definition, op.ins)
        yield stops
        stops += definition is not None and definition.control


def _stops(definition: OpDef, ins: dict[str, list[str]]) -> bool:
    guard = definition.guard
    return guard is not None and (not isinstance(guard, ValuesOf) or guard.applies({s: n for s, n in ins.items() if n}))


def _plain(block: BlockDesc, uses: Uses) -> set[str]:
    """The variables with one writer, whose names nothing depends on."""
    writes = Counter(name for names in uses.writes[block.idx] for name in names)
    plain: set[str] = set()
    called: set[str] = set()
    for op, read, written in zip(block.ops, uses.reads[block.idx], uses.writes[block.idx], strict=True):
        definition = get_op(op.optype) if has_op(op.optype) else None
        if (
            definition is not None
            and op.input_arg_names()
            and not (definition.random or definition.control or definition.alias or definition.data_shape)
        ):
            plain |= {n for n in written - read if writes[n] == 1}
        if own_blocks(op):
            called.update(n.partition("@")[0] for n in mentioned(op))
    return {n for n in plain - uses.inside[block.idx] if n.partition("@")[0] not in called}


def _kind(var: VarDesc, level: int) -> tuple[Any, ...] | None:
    """The properties that two variables must share to share memory; None for one that shares it with none."""
    shape = var.shape()
    if var.type() != VarType.LOD_TENSOR or not 0 < len(shape) <= 3 or min(shape[1:], default=0) < 0:
        return None
    return var.dtype(), var.lod_level(), shape[0] < 0 if level else tuple(shape)
