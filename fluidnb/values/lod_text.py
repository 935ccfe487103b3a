"""Batches drawn with characters: a dot for each row, brackets around each sequence."""

from collections.abc import Iterable, Sequence

Offsets = tuple[tuple[int, ...], ...]
#: Rows of a sequence that are drawn one by one; of more, only the count is shown.
_FEW = 8
#: Sequences that are drawn; what follows is counted.
_MOST = 10


def draw_all(batches: Iterable[tuple[str, Offsets, int]]) -> list[str]:
    """A line for each batch (name, offsets per level, rows): name, drawing, and description."""
    rows = [(name, *draw(lod, height)) for name, lod, height in batches]
    wide = [max((len(row[i]) for row in rows), default=0) for i in (0, 1)]
    return [f"{name:<{wide[0]}}  {picture:<{wide[1]}}  {words}" for name, picture, words in rows]


def draw(lod: Offsets, height: int) -> tuple[str, str]:
    """The drawing and the description of a batch whose offsets fit."""
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
    """Surplus and missing rows, a line for each level of a LoD; no lines where the offsets themselves are wrong."""
    if any(len(level) < 2 or level[0] != 0 or list(level) != sorted(level) for level in lod):
        return []
    available: list[int | None] = [*(len(level) - 1 for level in lod[1:]), height]
    lines = []
    for k, (level, there) in enumerate(zip(lod, available, strict=True)):
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
    """Numbers as an enumeration: ``2, 3 and 1``."""
    if len(sizes) > _MOST:
        return f"{', '.join(map(str, sizes[:_MOST]))}, …"
    head = ", ".join(map(str, sizes[:-1]))
    return f"{head} and {sizes[-1]}" if head else str(sizes[-1]) if sizes else "no"
