"""Statistics and memory maps of a pool, as plain data without rendering."""

from dataclasses import dataclass, field
from typing import NamedTuple


class Span(NamedTuple):
    """A span of memory: address and size in bytes, `requested` bytes (None: free), and owner."""

    ptr: int
    size: int
    requested: int | None
    tag: str

    @property
    def asked(self) -> int | None:
        """`requested`, by its earlier name."""
        return self.requested


@dataclass(frozen=True, slots=True, repr=False)
class Stats:
    """Numbers about the pool of one place, in bytes.

    Example:
        >>> s = Stats("CPUPlace", 4096, 8192, 12288, 8192, 4096, 3, [Span(0, 4096, 100, "x")])
        >>> s.fragmentation, s.slack
        (0.5, 3996)
    """

    place: str  # the place's name
    used: int  # in use now, rounding included
    peak: int  # the maximum of ``used``
    reserved: int  # taken from the system
    free: int  # reserved and not in use
    largest_free: int  # the largest block that fits without memory from the system
    allocations: int  # number of allocations so far
    live: list[Span] = field(default_factory=list)  # the blocks in use now

    @property
    def fragmentation(self) -> float:
        """Share of the free memory outside the largest free block: 0 is one piece, near 1 is dust."""
        return 1 - self.largest_free / self.free if self.free else 0.0

    @property
    def slack(self) -> int:
        """Bytes lost to rounding sizes up."""
        return sum(s.size - (s.requested or 0) for s in self.live)

    def __str__(self) -> str:
        parts = [f"{size_text(self.used)} used", f"peak {size_text(self.peak)}", f"{size_text(self.reserved)} reserved"]
        blocks = f"{len(self.live)} block{'s' * (len(self.live) != 1)}"
        return f"{self.place}: {', '.join(parts)}, {blocks}, fragmentation {self.fragmentation:.0%}"

    __repr__ = __str__


class Chunk(NamedTuple):
    """One stretch of memory from the system, and its spans in order; they cover it without gaps."""

    ptr: int  # address
    size: int  # bytes
    spans: list[Span]  # live and free spans, by address

    def text(self, width: int = 64) -> str:
        """One line of ``width`` characters: ``#`` in use, ``.`` free, drawn to scale.

        Example:
            >>> Chunk(0, 100, [Span(0, 25, 25, "a"), Span(25, 75, None, "")]).text(8)
            '##......'
        """
        line = ["."] * width
        for span in self.spans:
            if span.requested is not None:
                first = (span.ptr - self.ptr) * width // self.size
                last = max(first + 1, (span.ptr + span.size - self.ptr) * width // self.size)
                line[first:last] = "#" * (last - first)
        return "".join(line)


def size_text(n: float) -> str:
    """A number of bytes for people.

    Example:
        >>> size_text(4096), size_text(12), size_text(3 << 30)
        ('4.0 KB', '12 bytes', '3.0 GB')
    """
    if n < 1024:
        return f"{n:.0f} bytes"
    for unit in ("KB", "MB", "GB"):
        n /= 1024
        if n < 1024:
            return f"{n:.1f} {unit}"
    return f"{n / 1024:.1f} TB"
