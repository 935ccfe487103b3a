"""Tab in ``%fluid``: its words, options, cells, programs and variables."""

from __future__ import annotations

from typing import Any

from IPython.core.completer import SimpleCompletion, SimpleMatcherResult, context_matcher

from fluidnb.debug.session import current
from fluidnb.op import all_ops
from fluidnb.program import Program
from fluidnb.runtime import global_scope
from fluidnb.terminal.commands import COMMANDS as STEPS
from fluidnb.viz.program.collapse import FOLDS
from fluidnb.viz.program.filter import FIELDS
from fluidnb.viz.program.model import ROLES
from fluidnb_magics.commands import COMMANDS
from fluidnb_magics.commands.teach import lesson_words
from fluidnb_magics.session.builder import Site
from fluidnb_magics.session.workbench import Workbench

#: word -> its options
_OPTIONS = {
    "show": ("--startup", "--program", "--search", "--role", "--fold", "--text", "--limit"),
    "graph": ("--startup", "--program", "--seconds"),
    "tree": ("--startup", "--program"),
    "uses": ("--program",),
    "run": ("--feed", "--fetch", "--steps", "--keep", "--startup", "--program"),
    "train": (
        "--passes", "--batch", "--watch", "--test", "--smooth", "--name", "--resume", "--new", "--beside", "--feed",
        "--gradients", "--program",
    ),
    "runs": ("--smooth", "--drop"),
    "reset": ("--params",),
    "block": ("open", "close", "--program", "--in"),
    "debug": ("on", "off", "prompt", "flow", "--feed", "--fetch", "--startup", "--program"),
    "diff": ("--around", "--program"),
    "cost": ("--by", "--batch", "--feeds"),
    "nan": ("on", "off", "--feed", "--program"),
    "plan": ("--program",),
    "memory": ("--growth", "--feed", "--fetch", "--top", "--live", "--program"),
    "profile": ("--feed", "--fetch", "--steps", "--top", "--listing", "--live", "--trace", "--program"),
    "place": ("cpu", "cuda:0"),
    "break": ("op", "var", "line", "block", "at", "nan", "when"),
}
#: option -> what may stand behind it
_WORDS = {"--role": ROLES, "--fold": FOLDS, "--place": ("cpu", "cuda:0")}
#: cell magic of the kernel lab -> its options
_LAB = {
    "%%kernel": ("--device", "--grad", "--dtype", "--grid", "--block", "--shared", "--input", "--attr", "--force"),
    "%%op": ("--input", "--attr", "--force"),
}
_CELL_OPTIONS = ("--program", "--in", "--append", "--place", "--show", "--run", "--help")


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
        if not words or words[0] not in ("%fluid", "%%fluid", *_LAB) or line == words[0]:
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
        if words[-1] == "--program":
            return list(self._bench.programs)
        if words[-1] == "--search":
            return self._searched()
        if words[-1] in _WORDS:
            return list(_WORDS[words[-1]])
        if words[0] in _LAB:
            return [*_LAB[words[0]], *(d.type for d in all_ops())]
        if words[0] == "%%fluid":
            return [*_CELL_OPTIONS, *self._cells()]
        if len(words) == 1:
            return list(COMMANDS)
        options = list(_OPTIONS.get(words[1], ()))
        if words[1] in ("show", "graph", "drop"):
            options += self._cells()
        if words[1] in ("block", "graph"):
            options += self._blocks()
        if words[1] == "runs" or words[-1] == "--beside":
            options += [run.name for run in self._bench.runs]
        if words[1] == "uses":
            options += self._variables()
        if words[1] in ("run", "train", "debug", "nan"):
            options += list(self._named(words).desc.blocks[0].vars)
        if words[1] in ("build", "add"):
            options += Site(self._bench).completions(words[2:])
        if words[1] == "teach":
            options += lesson_words(self._bench, words[2:])
        if words[1] == "kernels" and len(words) == 2:
            options += ["drop", "mine"]
        if words[1] in ("ops", "kernels"):
            options += [d.type for d in all_ops()]
        if words[1] in ("scope", "set"):
            options += global_scope().local_var_names()
        session, step = current(), STEPS.get(words[1])
        if session is not None and words[1] in ("break", "until") and words[-1] == "var":
            return list(dict.fromkeys(n for b in session.program.desc.blocks for n in b.vars))
        if session is not None and step is not None and session.snapshot.state != "idle":
            options += session.names() if step.offers == "vars" else [d.type for d in all_ops()] if step.offers else []
        return options

    def _named(self, words: list[str]) -> Program:
        """The program that a line names, the session's if it names none or one that is not there."""
        name = words[words.index("--program") + 1] if "--program" in words[:-1] else None
        return self._bench.program(name if name in self._bench.programs else None)[0]

    def _cells(self) -> list[str]:
        return [placed.title for placed in self._bench.cells]

    def _variables(self) -> list[str]:
        return list(dict.fromkeys(n for b in self._bench.program()[0].desc.blocks for n in b.vars))

    def _searched(self) -> list[str]:
        types = dict.fromkeys(op.optype for b in self._bench.program()[0].desc.blocks for op in b.ops)
        return [*types, *self._variables(), *(f"{field}:" for field in FIELDS)]

    def _blocks(self) -> list[str]:
        return [name for main, _ in self._bench.programs.values() for name in self._bench.blocks.names(main)]
