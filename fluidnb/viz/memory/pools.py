"""The memory pools of all places: statistics, devices, holders of blocks."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from typing import Any

from fluidnb import memory
from fluidnb.memory import Stats, size_text
from fluidnb.memory.pools import places
from fluidnb.values import Place
from fluidnb.viz.base.device_names import device_name
from fluidnb.viz.base.styled_text import Line, columns
from fluidnb.viz.memory.model import Holder, PoolPicture

#: Prefix of the tag of an arena, before the index of the block.
ARENA = "arena of block "


def read_pools(program: Any, first: Place) -> tuple[PoolPicture, ...]:
    """The non-empty pools of all places.

    Example:
        >>> from fluidnb.values import CPUPlace
        >>> read_pools(fluid.Program(), CPUPlace())[0].stats.place
        'CPUPlace'
    """
    others = [p for p in places() if isinstance(p, Place) and p is not first and memory.used(p)]
    return tuple(_read(program, place) for place in (first, *others))


def holders(program: Any, pool: Stats) -> list[Holder]:
    """The holders of the blocks of a pool."""
    persistable = {n for b in program.desc.blocks for n, v in b.vars.items() if v.persistable()}
    declared = {n for b in program.desc.blocks for n in b.vars}
    totals: dict[tuple[str, str], tuple[int, int]] = {}
    for span in pool.live:
        kind = "other"
        if span.tag.startswith(ARENA):
            kind = "arena"
        elif span.tag in persistable:
            kind = "persistable"
        elif span.tag in declared:
            kind = "separate buffer"
        size, count = totals.get((kind, span.tag), (0, 0))
        totals[kind, span.tag] = size + span.size, count + 1
    rows = [Holder(kind, name or "unnamed", *row) for (kind, name), row in totals.items()]
    return sorted(rows, key=lambda h: -h.bytes)


def pool_lines(pool: PoolPicture, title: str, width: int = 0, top: int = 8) -> list[Line]:
    """Text rendering of a pool.

    Example:
        >>> from fluidnb.viz import plain
        >>> stats = Stats("CUDAPlace(0)", 512, 512, 2048, 1536, 1536, 1)
        >>> print(plain(pool_lines(PoolPicture(stats, (Holder("persistable", "w", 512),), "toy, sm_90", 4096), "pool")))
        pool  CUDAPlace(0): 512 bytes used, peak 512 bytes, 2.0 KB reserved, 0 blocks, fragmentation 0%
          toy, sm_90; at most 4.0 KB for the pool
          w  512 bytes  persistable
    """
    lines: list[Line] = [[(title + "  ", "bold"), (str(pool.stats), "dim")]]
    if pool.device:
        lines.append([(f"  {pool.device}; at most {size_text(pool.limit)} for the pool", "dim")])
    rows: list[list[Line]] = [
        [[("  " + h.name, "name")], [(size_text(h.bytes), "")], [(_holder(h), "dim")]] for h in pool.holders[:top]
    ]
    rest = pool.holders[top:]
    if rest:
        kinds: dict[str, int] = defaultdict(int)
        for h in rest:
            kinds[h.kind] += h.count
        words = ", ".join(f"{n} {kind}" for kind, n in kinds.items())
        size = size_text(sum(h.bytes for h in rest))
        rows.append([[(f"  {len(rest)} more", "dim")], [(size, "")], [(words, "dim")]])
    return [*lines, *columns(rows, width)]


def _read(program: Any, place: Place) -> PoolPicture:
    stats, device = memory.stats(place), device_name(place)
    return PoolPicture(stats, tuple(holders(program, stats)), device, _limit(memory.pool(place)) if device else 0)


@cache
def _limit(pool: memory.BuddyAllocator) -> int:
    """The limit of a pool; cached, since the query initializes the device."""
    return pool.system.total()


def _holder(holder: Holder) -> str:
    count = f"{holder.count} blocks" if holder.count > 1 else ""
    return "  ".join(filter(None, ("" if holder.kind in ("arena", "other") else holder.kind, count)))
