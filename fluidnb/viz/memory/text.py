"""Text rendering of the memory of a program."""

from fluidnb.memory import size_text
from fluidnb.viz.base.curves import sparkline
from fluidnb.viz.base.styled_text import Line, columns, cut, plural
from fluidnb.viz.base.styled_text import width as line_width
from fluidnb.viz.memory.model import ArenaMap, Buffer, MemoryPicture
from fluidnb.viz.memory.pools import pool_lines

#: Bars of the line of live bytes at most, and rows of a table.
_BARS, _TOP = 64, 8


def memory_lines(picture: MemoryPicture, width: int = 0, top: int = _TOP) -> list[Line]:
    """Text rendering, with the ``top`` largest buffers and holders."""
    lines: list[Line] = []
    if picture.changed:
        lines.append([("the program was changed since it ran", "warn")])
    for arena in picture.maps:
        first, second = "empty arena", ""
        if arena.steps and arena.buffers:
            first = f"{arena.words} at {arena.peak_step.text}"
            gaps = f"{arena.fragmentation:.0%} lost to gaps and rounding"
            second = f"{gaps}; {size_text(arena.unshared)} without sharing"
        head: Line = [(f"block {arena.block}  ", "bold"), (first, "")]
        beside: list[Line] = [[*head, (f"  {second}", "dim")]] if second else [head]
        lines += [head, [("         " + second, "dim")]] if width and line_width(beside[0]) > width else beside
        if arena.buffers:
            bars = _bars(arena, min(_BARS, width - 9) if width else _BARS)
            lines += [[("live     ", "dim"), *bars], [("live at the peak", "dim")], *live_table(arena, top, width)]
    for arena in picture.earlier:
        lines.append([("before the program was changed  ", "bold"), (arena.words, "")])
    for i, pool in enumerate(picture.pools):
        lines += pool_lines(pool, "other pool" if i else "memory by holder", width, max(top // 2, 1) if i else top)
    return [cut(line, width) for line in lines] if width else lines


def live_table(arena: ArenaMap, top: int, width: int = 0) -> list[Line]:
    """A table of the buffers live at the peak, and their sums by cell."""
    live = arena.at_peak
    rows: list[list[Line]] = [_buffer(arena, b) for b in live[:top]]
    rest = live[top:]
    if rest:
        words = f"  {plural(len(rest), 'more buffer')}, {size_text(sum(b.size for b in rest))}"
        rows.append([[(words, "dim")]])
    lines = columns(rows, width)
    cells = arena.peak_by_cell
    if len(cells) > 1:
        sums = [f"{cell or 'outside cells'} {size_text(size)}" for cell, size in cells[:top]]
        more = f", {plural(len(cells) - top, 'more cell')}" if len(cells) > top else ""
        lines.append([("  by cell  ", "dim"), (", ".join(sums) + more, "")])
    return lines


def _buffer(arena: ArenaMap, buffer: Buffer) -> list[Line]:
    maker = arena.maker(buffer)
    last = arena.steps[arena.step_of(buffer.last)]
    name: Line = [("  " + arena.called(buffer), "name")]
    if len(buffer.names) > 1:
        name.append((f" = {', '.join(buffer.names[1:3])}" + (" …" if len(buffer.names) > 3 else ""), "dim"))
    span = f"ops {maker.index}–{last.index}" if last is not maker else f"op {maker.index}"
    writer: list[Line] = [[(maker.type, maker.role)], [(maker.location, "location")]]
    return [name, [(size_text(buffer.size), "")], [(span, "dim")], *writer]


def _bars(arena: ArenaMap, size: int) -> Line:
    """Live bytes over the operators: each bar the maximum of its operators, in the colour of their role."""
    live = arena.live_by_step
    count = min(size, len(live))
    edges = [i * len(live) // count for i in range(count + 1)]
    values = [float(max(live[a:b])) for a, b in zip(edges, edges[1:], strict=False)]
    text = sparkline(values).rstrip()
    return [(c, arena.steps[a].role) for c, a in zip(text, edges, strict=False)]
