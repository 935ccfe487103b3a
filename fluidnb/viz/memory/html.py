"""HTML rendering of the memory of a program."""

from __future__ import annotations

from fluidnb.memory import size_text
from fluidnb.visible import escape
from fluidnb.viz.base.html import lines_html
from fluidnb.viz.base.styled_text import plural
from fluidnb.viz.memory.model import MemoryPicture
from fluidnb.viz.memory.pools import pool_lines
from fluidnb.viz.memory.svg import arena_svg
from fluidnb.viz.memory.text import live_table, memory_lines


def memory_html(picture: MemoryPicture, uid: str = "") -> str:
    """HTML rendering: a map of each arena, the buffers live at its peak, and the pools.

    Args:
        picture: the memory.
        uid: start of all ids; unique by default.

    Returns:
        One element.
    """
    parts = []
    for i, arena in enumerate(picture.maps):
        parts.append(f'<div style="overflow:auto">{arena_svg(arena, f"{uid}{i}_" if uid else "")}</div>')
        if not arena.buffers:
            continue
        count = plural(len(arena.at_peak), "buffer")
        table = lines_html(live_table(arena, 40))
        parts.append(f"<details><summary>{count} live at the peak</summary>{table}</details>")
    lines = memory_lines(MemoryPicture((), (), picture.earlier, picture.changed))
    parts += [lines_html(lines)] if lines else []
    for pool in picture.pools:
        where = ", ".join(filter(None, (pool.stats.place, pool.device)))
        words = escape(f"memory of {where} by holder: {size_text(pool.stats.used)} used")
        parts.append(f"<details><summary>{words}</summary>{lines_html(pool_lines(pool, 'pool', 0, 40))}</details>")
    return f'<div class="fluidnb" style="line-height:normal">{"".join(parts)}</div>'
