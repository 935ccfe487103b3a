"""The memory pools of all places: statistics, devices, holders of blocks."""

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
    """The non-empty pools of all places."""
    others = [p for p in places() if isinstance(p, Place) and p is not first and memory.used(p)]
    pools = []
    for place in (first, *others):
        stats, device = memory.stats(place), device_name(place)
        limit = _limit(memory.pool(place)) if device else 0
        pools.append(PoolPicture(stats, tuple(holders(program, stats)), device, limit))
    return tuple(pools)


def holders(program: Any, pool: Stats) -> list[Holder]:
    """The holders of the blocks of a pool."""
    persistable = {n for b in program.desc.blocks for n, v in b.vars.items() if v.persistable()}
    declared = {n for b in program.desc.blocks for n in b.vars}
    rows = []
    for tag, (size, count) in totals(pool).items():
        kind = "arena" if tag.startswith(ARENA) else "persistable" if tag in persistable else "other"
        kind = "separate buffer" if kind == "other" and tag in declared else kind
        rows.append(Holder(kind, tag or "unnamed", size, count))
    return sorted(rows, key=lambda h: -h.bytes)


def totals(pool: Stats) -> dict[str, tuple[int, int]]:
    """Bytes and number of the blocks of a pool by tag."""
    by_tag: dict[str, tuple[int, int]] = {}
    for span in pool.live:
        size, count = by_tag.get(span.tag, (0, 0))
        by_tag[span.tag] = size + span.size, count + 1
    return by_tag


def pool_lines(pool: PoolPicture, title: str, width: int = 0, top: int = 8) -> list[Line]:
    """Text rendering of a pool, with the ``top`` largest holders."""
    lines: list[Line] = [[(title + "  ", "bold"), (str(pool.stats), "dim")]]
    if pool.device:
        lines.append([(f"  {pool.device}; at most {size_text(pool.limit)} for the pool", "dim")])
    rows: list[list[Line]] = []
    for h in pool.holders[:top]:
        words = ["" if h.kind in ("arena", "other") else h.kind, f"{h.count} blocks" if h.count > 1 else ""]
        rows.append([[("  " + h.name, "name")], [(size_text(h.bytes), "")], [("  ".join(filter(None, words)), "dim")]])
    rest = pool.holders[top:]
    if rest:
        kinds: dict[str, int] = defaultdict(int)
        for h in rest:
            kinds[h.kind] += h.count
        counts = ", ".join(f"{n} {kind}" for kind, n in kinds.items())
        size = size_text(sum(h.bytes for h in rest))
        rows.append([[(f"  {len(rest)} more", "dim")], [(size, "")], [(counts, "dim")]])
    return [*lines, *columns(rows, width)]


@cache
def _limit(pool: memory.BuddyAllocator) -> int:
    """The limit of a pool; cached, since the query initializes the device."""
    return pool.system.total()
