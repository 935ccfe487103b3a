"""Memory reuse: variables that can take the memory of others whose lifetime is over."""

from __future__ import annotations

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
    """Memory that one variable after the other lives in, under the name of the first.

    Args:
        lives: the variables in order.

    Example:
        >>> a, b = Life(VarDesc("a"), 0, 1, 4), Life(VarDesc("b"), 2, 5, 4)
        >>> Cell([a, b]).names, Cell([a, b]).last
        (['a', 'b'], 5)
    """

    lives: list[Life]

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
    the two lives. Variables with four axes and more are left alone, because a plan gives images an order in memory by
    their name; so are variables that are written twice or in place, that blocks inside see, whose numbers are drawn
    from a stream of their name, and constants.

    Args:
        block: the block.
        uses: the uses in its program.
        lives: its variables, by the beginning of their life.
        load: bytes in use at each operator; raised where memory is held.
        level: 0 for variables of the same shape, 1 for all that fit.

    Returns:
        The cells; most hold one variable.

    Example:
        >>> h = x = fluid.layers.data("x", shape=[4])
        >>> for _ in range(4):
        ...     h = fluid.layers.relu(h)
        >>> from fluidnb.passes.lifetimes import lives
        >>> desc = fluid.default_main_program().desc; uses = Uses(desc)
        >>> [len(cell.lives) for cell in cells(desc.block(0), uses, lives(desc.block(0), uses, ()), [3072] * 4, 0)]
        [2, 1]
    """
    segment = list(_segments(block))
    plain = _plain(block, uses)
    peak = max(load, default=0)
    found: list[Cell] = []
    kinds: dict[Any, tuple[list[tuple[int, int, Cell]], list[Cell]]] = defaultdict(lambda: ([], []))
    for i, life in enumerate(lives):
        cell = Cell([life])
        kind = _kind(life.var, level)
        if kind is None or life.name not in plain or segment[life.first] != segment[life.last]:
            found.append(cell)
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
            found.append(cell)
        heappush(busy, (life.last, i, cell))
    return found


def _segments(block: BlockDesc) -> Iterator[int]:
    """For each operator, how many times the plan has to stop and look before it; memory is not placed across stops."""
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
    """The variables that one operator writes, and one that a renamed output does not disturb."""
    writes = Counter(name for names in uses.writes[block.idx] for name in names)
    found: set[str] = set()
    called: set[str] = set()
    for op, read, written in zip(block.ops, uses.reads[block.idx], uses.writes[block.idx], strict=True):
        definition = get_op(op.optype) if has_op(op.optype) else None
        if (
            definition is not None
            and op.input_arg_names()
            and not (definition.random or definition.control or definition.alias or definition.data_shape)
        ):
            found |= {n for n in written - read if writes[n] == 1}
        if own_blocks(op):
            called.update(n.partition("@")[0] for n in mentioned(op))
    return {n for n in found - uses.inside[block.idx] if n.partition("@")[0] not in called}


def _kind(var: VarDesc, level: int) -> tuple[Any, ...] | None:
    """The properties that two variables must share to share memory; None for one that shares it with none."""
    shape = var.shape()
    if var.type() != VarType.LOD_TENSOR or not 0 < len(shape) <= 3 or min(shape[1:], default=0) < 0:
        return None
    return var.dtype(), var.lod_level(), shape[0] < 0 if level else tuple(shape)
