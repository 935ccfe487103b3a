"""Report of a memory transpiler, as data and as text."""

from __future__ import annotations

from dataclasses import dataclass, field

from fluidnb.memory import size_text
from fluidnb.passes.lifetimes import ROWS


@dataclass(slots=True)
class Line:
    """One operator of a block."""

    op: str  # its type
    before: int  # bytes of the block's variables while it runs, as it was
    after: int  # the same, as it is now
    notes: list[str] = field(default_factory=list)  # what happens there

    def __str__(self) -> str:
        sizes = f"{size_text(self.before):>11}{size_text(self.after):>11}"
        return f"{self.op:<26}{sizes}   {'; '.join(self.notes)}".rstrip()


@dataclass(slots=True)
class Report:
    """The memory of one block at each operator."""

    block: int  # its index
    lines: list[Line]  # its operators

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
