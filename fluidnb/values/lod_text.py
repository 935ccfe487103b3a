"""Batches drawn with characters: a dot for each row, brackets around each sequence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Offsets = tuple[tuple[int, ...], ...]

#: Rows of a sequence that are drawn one by one; of more, only the count is shown.
_FEW = 8
#: Sequences that are drawn; what follows is counted.
_MOST = 10


def draw_all(batches: Iterable[tuple[str, Offsets, int]]) -> list[str]:
    """Batches below each other.

    Args:
        batches: name, offsets per level and rows of each.

    Returns:
        A line each: the name, the drawing, and what it has in words.

    Example:
        >>> print("\\n".join(draw_all([("text", ((0, 2, 5),), 5), ("h", (), 3)])))
        text  [··][···]  2 sequences of 2 and 3 rows
        h     ···        3 rows, no sequences
    """
    rows = [(name, *draw(lod, height)) for name, lod, height in batches]
    wide = [max((len(row[i]) for row in rows), default=0) for i in (0, 1)]
    return [f"{name:<{wide[0]}}  {picture:<{wide[1]}}  {words}" for name, picture, words in rows]


def draw(lod: Offsets, height: int) -> tuple[str, str]:
    """A batch on one line.

    Args:
        lod: offsets per level that fit.
        height: rows of the tensor.

    Returns:
        Its drawing, and what it has in words.

    Example:
        >>> draw(((0, 2, 3), (0, 2, 5, 6)), 6)
        ('[[··][···]][[·]]', '2 sequences of 2 and 1 sequences of 2, 3 and 1 rows')
        >>> draw((), 3)
        ('···', '3 rows, no sequences')
        >>> draw(((0, 2, 200),), 200)
        ('[··][·198·]', '2 sequences of 2 and 198 rows')
    """
    if not lod:
        return _dots(height), f"{_count(height, 'row')}, no sequences"
    parts = [f"[{_dots(b - a)}]" for a, b in zip(lod[-1], lod[-1][1:], strict=False)]
    for level in lod[-2::-1]:
        parts = [f"[{_joined(parts[a:b])}]" for a, b in zip(level, level[1:], strict=False)]
    words = [f"{_count(len(lod[0]) - 1, 'sequence')} of"]
    for k, level in enumerate(lod):
        sizes = [b - a for a, b in zip(level, level[1:], strict=False)]
        words.append(_listed(sizes) + (" rows" if k == len(lod) - 1 else " sequences of"))
    return _joined(parts), " ".join(words)


def draw_wrong(lod: Offsets, height: int | None) -> list[str]:
    """A LoD that does not fit, level by level: what is left over, and what is missing.

    Args:
        lod: offsets per level.
        height: rows of the tensor; None when there are none yet.

    Returns:
        A line a level; none where the offsets themselves are wrong, so that there is nothing to draw.

    Example:
        >>> print("\\n".join(draw_wrong(((0, 2, 5),), 6)))
        [··][···]·  1 row is in no sequence
        >>> print("\\n".join(draw_wrong(((0, 2, 4), (0, 1, 3, 6)), 6)))
        level 0  [··][·?]  1 sequence is missing: level 1 has 3
        level 1  [·][··][···]
        >>> draw_wrong(((0, 5, 3),), 3)
        []
    """
    if any(len(level) < 2 or level[0] != 0 or list(level) != sorted(level) for level in lod):
        return []
    held: list[int | None] = [*(len(level) - 1 for level in lod[1:]), height]
    lines = []
    for k, (level, there) in enumerate(zip(lod, held, strict=True)):
        name = "row" if k == len(lod) - 1 else "sequence"
        text = _against(level, level[-1] if there is None else there, name)
        source = f"level {k + 1}" if name == "sequence" else "the tensor"
        if there is not None and level[-1] > there:
            text += f": {source} has {there}"
        lines.append((f"level {k}  " if len(lod) > 1 else "") + text)
    return lines


def _against(level: tuple[int, ...], there: int, name: str) -> str:
    """One level over so many things: those that are missing as question marks, those left over behind the brackets."""
    parts = []
    for a, b in zip(level, level[1:], strict=False):
        missing = max(b - max(a, there), 0)
        parts.append(f"[{_dots(b - a - missing)}{_dots(missing, '?')}]")
    text, more = _joined(parts), there - level[-1]
    if more > 0:
        return f"{text}{_dots(more)}  {_count(more, name)} {'is' if more == 1 else 'are'} in no sequence"
    if more < 0:
        return f"{text}  {_count(-more, name)} {'is' if more == -1 else 'are'} missing"
    return text


def _dots(n: int, sign: str = "·") -> str:
    return sign * n if n <= _FEW else f"{sign}{n}{sign}"


def _joined(parts: Sequence[str]) -> str:
    return "".join(parts) if len(parts) <= _MOST else f"{''.join(parts[:_MOST])}…"


def _count(n: int, what: str) -> str:
    return f"{n} {what}" + "s" * (n != 1)


def _listed(sizes: Sequence[int]) -> str:
    """Numbers in words.

    Example:
        >>> _listed([2, 3, 1]), _listed([4])
        ('2, 3 and 1', '4')
    """
    if len(sizes) > _MOST:
        return f"{', '.join(map(str, sizes[:_MOST]))}, …"
    head = ", ".join(map(str, sizes[:-1]))
    return f"{head} and {sizes[-1]}" if head else str(sizes[-1]) if sizes else "no"
