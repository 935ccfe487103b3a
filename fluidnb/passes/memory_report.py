"""Report of a memory transpiler, as data and as text."""

from __future__ import annotations

from dataclasses import dataclass, field

from fluidnb.memory import size_text
from fluidnb.passes.lifetimes import ROWS


@dataclass(slots=True)
class Line:
    """One operator of a block.

    Args:
        op: its type.
        before: bytes of the block's variables while it runs, as it was.
        after: the same, as it is now.
        notes: what happens there.

    Example:
        >>> str(Line("relu", 4096, 1024, ["h is dropped"]))
        'relu                           4.0 KB     1.0 KB   h is dropped'
    """

    op: str
    before: int
    after: int
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        sizes = f"{size_text(self.before):>11}{size_text(self.after):>11}"
        return f"{self.op:<26}{sizes}   {'; '.join(self.notes)}".rstrip()


@dataclass(slots=True)
class Report:
    """One block.

    Args:
        block: its index.
        lines: its operators.

    Example:
        >>> print(Report(0, [Line("relu", 4096, 1024)]))
        block 0, variables that do not outlive a run, 64 rows to a batch: at most 4.0 KB before, 1.0 KB after
             0 relu                           4.0 KB     1.0 KB
    """

    block: int
    lines: list[Line]

    def __str__(self) -> str:
        before, after = (size_text(max(sizes, default=0)) for sizes in (self.before, self.after))
        head = f"block {self.block}, variables that do not outlive a run, {ROWS} rows to a batch: "
        rows = [f"{i:6} {line}" for i, line in enumerate(self.lines)]
        return "\n".join([f"{head}at most {before} before, {after} after", *rows])

    @property
    def before(self) -> list[int]:
        """Bytes at each operator, as the block was."""
        return [line.before for line in self.lines]

    @property
    def after(self) -> list[int]:
        """Bytes at each operator, as it is now."""
        return [line.after for line in self.lines]
