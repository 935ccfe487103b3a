"""Text rendering of the memory of a program."""

from __future__ import annotations

from fluidnb.memory import size_text
from fluidnb.viz.base.curves import sparkline
from fluidnb.viz.base.styled_text import Line, columns, cut, plural
from fluidnb.viz.memory.model import ArenaMap, Buffer, MemoryPicture
from fluidnb.viz.memory.pools import pool_lines

#: Bars of the line of live bytes at most, and rows of a table.
_BARS, _TOP = 64, 8


def memory_lines(picture: MemoryPicture, width: int = 0, top: int = _TOP) -> list[Line]:
    """Text rendering.

    Args:
        picture: the memory.
        width: characters a line may have; 0 for any number.
        top: buffers and holders listed at most.

    Returns:
        The lines.

    Example:
        >>> from fluidnb.viz import plain
        >>> from fluidnb.viz.memory.model import ArenaStep
        >>> steps = (ArenaStep(0, "relu"), ArenaStep(1, "mean"))
        >>> arena = ArenaMap(0, 128, steps, (Buffer(("h",), 0, 100, 0, 1), Buffer(("m",), 64, 4, 1, 1)))
        >>> print(plain(memory_lines(MemoryPicture((arena,)), 80)))
        block 0  arena 128 bytes, peak 104 bytes at op 1 (mean)
                 19% lost to gaps and rounding; 104 bytes without sharing
        live     ██
        live at the peak
          h  100 bytes  ops 0–1  relu
          m  4 bytes    op 1     mean
    """
    lines: list[Line] = []
    if picture.changed:
        lines.append([("the program was changed since it ran", "warn")])
    for arena in picture.maps:
        lines += _arena(arena, width, top)
    for arena in picture.earlier:
        words = f"arena {size_text(arena.size)}, peak {size_text(arena.peak)}"
        lines.append([("before the program was changed  ", "bold"), (words, "")])
    lines += holder_lines(picture, width, top)
    return [cut(line, width) for line in lines] if width else lines


def holder_lines(picture: MemoryPicture, width: int = 0, top: int = _TOP) -> list[Line]:
    """The holders of the memory of each pool."""
    lines: list[Line] = []
    for i, pool in enumerate(picture.pools):
        lines += pool_lines(pool, "other pool" if i else "memory by holder", width, max(top // 2, 1) if i else top)
    return lines


def arena_words(arena: ArenaMap) -> list[str]:
    """Size, peak, fragmentation and size without sharing of an arena."""
    if not arena.steps or not arena.buffers:
        return ["empty arena", ""]
    return [
        f"arena {size_text(arena.size)}, peak {size_text(arena.peak)} at {arena.peak_step.text}",
        f"{arena.fragmentation:.0%} lost to gaps and rounding; {size_text(arena.unshared)} without sharing",
    ]


def _arena(arena: ArenaMap, width: int, top: int) -> list[Line]:
    first, second = arena_words(arena)
    head: list[Line] = [[(f"block {arena.block}  ", "bold"), (first, "")]]
    if second:
        head[0].append((f"  {second}", "dim"))
    if width and sum(len(text) for text, _ in head[0]) > width:
        head = [head[0][:2], [("         " + second, "dim")]]
    if not arena.buffers:
        return head
    bars = _bars(arena, min(_BARS, width - 9) if width else _BARS)
    return [*head, [("live     ", "dim"), *bars], [("live at the peak", "dim")], *live_table(arena, top, width)]


def live_table(arena: ArenaMap, top: int, width: int = 0) -> list[Line]:
    """A table of the buffers live at the peak."""
    live = arena.at_peak
    rows: list[list[Line]] = [_buffer(arena, b) for b in live[:top]]
    rest = live[top:]
    if rest:
        words = f"  {plural(len(rest), 'more buffer')}, {size_text(sum(b.size for b in rest))}"
        rows.append([[(words, "dim")]])
    return columns(rows, width)


def _buffer(arena: ArenaMap, buffer: Buffer) -> list[Line]:
    maker = arena.maker(buffer)
    last = arena.steps[arena.step_of(buffer.last)]
    name: Line = [("  " + arena.called(buffer), "name")]
    if len(buffer.names) > 1:
        name.append((f" = {', '.join(buffer.names[1:3])}" + (" …" if len(buffer.names) > 3 else ""), "dim"))
    span = f"ops {maker.index}–{last.index}" if last is not maker else f"op {maker.index}"
    writer: list[Line] = [[(maker.type, maker.role)], [(maker.location, "place")]]
    return [name, [(size_text(buffer.size), "")], [(span, "dim")], *writer]


def _bars(arena: ArenaMap, size: int) -> Line:
    """Live bytes over the operators: each bar the maximum of its operators, in the colour of their role."""
    live = arena.live_by_step
    count = min(size, len(live))
    edges = [i * len(live) // count for i in range(count + 1)]
    values = [float(max(live[a:b])) for a, b in zip(edges, edges[1:], strict=False)]
    text = sparkline(values).rstrip()
    return [(c, arena.steps[a].role) for c, a in zip(text, edges, strict=False)]
