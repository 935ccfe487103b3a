"""Which variables can take the memory of others whose life is over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from fluidnb.op import OpDef, ValuesOf, get_op, has_op
from fluidnb.program.inner import own_blocks
from fluidnb.proto.desc import BlockDesc, VarDesc
from fluidnb.transpiler.lifetime import Life
from fluidnb.transpiler.uses import Uses, mentioned
from fluidnb.values.dtypes import VarType


@dataclass(slots=True)
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
        >>> from fluidnb.transpiler.lifetime import lives
        >>> desc = fluid.default_main_program().desc; uses = Uses(desc)
        >>> [len(cell.lives) for cell in cells(desc.block(0), uses, lives(desc.block(0), uses, ()), [3072] * 4, 0)]
        [2, 1]
    """
    segment = list(_segments(block))
    plain = _plain(block, uses)
    peak = max(load, default=0)
    found: list[Cell] = []
    free: list[Cell] = []
    for life in lives:
        cell = None
        if life.name in plain and segment[life.first] == segment[life.last]:
            for other in reversed(free):
                gap = range(other.last + 1, life.first)
                if (
                    other.last < life.first
                    and segment[other.last] == segment[life.first]
                    and _fits(life.var, other.lives[0].var, level)
                    and all(load[i] + other.lives[0].size <= peak for i in gap)
                ):
                    cell = other
                    for i in gap:
                        load[i] += other.lives[0].size
                    break
            if cell is None:
                free.append(Cell([life]))
                found.append(free[-1])
            else:
                cell.lives.append(life)
        else:
            found.append(Cell([life]))
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


def _fits(var: VarDesc, cell: VarDesc, level: int) -> bool:
    kinds = {(v.type(), v.dtype(), v.lod_level()) for v in (var, cell)}
    mine, there = var.shape(), cell.shape()
    if len(kinds) > 1 or var.type() != VarType.LOD_TENSOR or max(len(mine), len(there)) > 3 or not mine or not there:
        return False
    if any(n < 0 for n in (*mine[1:], *there[1:])) or (mine[0] < 0) != (there[0] < 0):
        return False
    return mine == there or level == 1 and abs(prod(mine)) <= abs(prod(there))
