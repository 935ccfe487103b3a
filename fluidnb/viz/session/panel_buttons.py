"""The buttons of the debugger panel."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fluidnb.debug.debugger import Debugger
from fluidnb.debug.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Button:
    """A button."""

    word: str  # the word of ``%fluid`` that does the same
    label: str
    icon: str  # a character before the label
    key: str  # the key that presses it, as the page names it
    help: str
    action: Callable[[Debugger], Snapshot] | None  # None for pause
    back: bool = False  # whether it steps backwards

    @property
    def tip(self) -> str:
        """Its help, with its key and its word."""
        same = "interrupting the kernel does the same" if self.action is None else f"%fluid {self.word}"
        return f"{self.help}  (key {self.key}; {same})"

    @property
    def data(self) -> dict[str, Any]:
        """The button as plain data for the page."""
        return {
            "word": self.word, "label": self.label, "icon": self.icon, "key": self.key, "tip": self.tip,
            "back": self.back, "pauses": self.action is None,
        }  # fmt: skip


#: The buttons, from left to right.
BUTTONS = (
    Button("restart", "restart", "⟲", "r", "Go back to the beginning of this run", Debugger.restart, True),
    Button("rcontinue", "reverse", "◀◀", "C", "Go back to where a breakpoint would have stopped last",
           Debugger.reverse_continue, True),
    Button("rnext", "back over", "↶", "N", "Step back over one operator with the blocks that it ran",
           Debugger.step_back_over, True),
    Button("back", "back", "◀", "b", "Take one step back", Debugger.back, True),
    Button("step", "step", "▶", "s", "Run one operator, entering the blocks that it runs", Debugger.step),
    Button("next", "next", "↷", "n", "Run one operator with the blocks that it runs", Debugger.next),
    Button("out", "out", "↑", "o", "Run to the end of this block and of its iterations", Debugger.out),
    Button("continue", "continue", "▶▶", "c", "Run to the next breakpoint, or to the end", Debugger.continue_),
    Button("pause", "pause", "❚❚", "p", "Pause after the current operator", None),
)  # fmt: skip
