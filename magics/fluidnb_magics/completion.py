"""Tab in ``%fluid``: its words, options, cells, programs and variables."""

from __future__ import annotations

from typing import Any

from IPython.core.completer import SimpleCompletion, SimpleMatcherResult, context_matcher

from fluidnb.runtime import global_scope
from fluidnb_magics.commands import COMMANDS
from fluidnb_magics.workbench import Workbench

#: word -> its options
_OPTIONS = {
    "show": ("--startup", "--graph", "--text", "--limit"),
    "run": ("--feed", "--fetch", "--steps", "--keep", "--startup", "--program"),
    "train": ("--passes", "--batch", "--watch", "--feed", "--program"),
    "reset": ("--params",),
    "block": ("open", "close", "--program", "--in"),
}
_CELL_OPTIONS = ("--program", "--in", "--append", "--show", "--run", "--help")


class Completion:
    """Holds the matcher for IPython's completer.

    Args:
        bench: the session.
    """

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench

    @context_matcher(identifier="fluid")
    def match(self, context: Any) -> SimpleMatcherResult:
        """What may come next; nothing outside our magics.

        Args:
            context: the completer's CompletionContext.

        Returns:
            The completions.
        """
        line = context.line_with_cursor[: context.cursor_position]
        words = line.split()
        if not words or words[0] not in ("%fluid", "%%fluid") or line == words[0]:
            return SimpleMatcherResult(completions=[])
        start = "" if line[-1:].isspace() else words.pop()
        found = [SimpleCompletion(text=w, type="fluid") for w in self.offered(words) if w.startswith(start)]
        return SimpleMatcherResult(completions=found, matched_fragment=start, suppress=bool(found))

    def offered(self, words: list[str]) -> list[str]:
        """What fits behind the words of a line.

        Args:
            words: the words before the cursor, the magic first.

        Returns:
            Words, sorted the way they are listed.
        """
        if words[-1] == "--in":
            return self._blocks()
        if words[0] == "%%fluid":
            return [*_CELL_OPTIONS, *self._cells()]
        if len(words) == 1:
            return list(COMMANDS)
        options = list(_OPTIONS.get(words[1], ()))
        if words[1] in ("show", "drop"):
            options += self._cells()
        if words[1] == "block":
            options += self._blocks()
        if words[1] in ("run", "train"):
            options += list(self._bench.program()[0].desc.blocks[0].vars)
        if words[1] in ("scope", "set"):
            options += global_scope().local_var_names()
        return options

    def _cells(self) -> list[str]:
        return [placed.title for placed in self._bench.cells]

    def _blocks(self) -> list[str]:
        return [name for main, _ in self._bench.programs.values() for name in self._bench.blocks.names(main)]
