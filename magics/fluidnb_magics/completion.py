"""Tab in ``%fluid``: its words, options, cells, programs and variables."""

from typing import Any

from IPython.core.completer import SimpleCompletion, SimpleMatcherResult, context_matcher

from fluidnb_magics.commands import COMMANDS
from fluidnb_magics.commands._command import Offers, choices_of, words_of
from fluidnb_magics.commands._offers import blocks, cells, folds, op_types, programs, roles, search_words, training_runs
from fluidnb_magics.session.workbench import Workbench

#: option -> the words that may follow it
_AFTER_OPTION: dict[str, Offers] = {
    "--in": blocks,
    "--program": programs,
    "--search": search_words,
    "--beside": training_runs,
    "--role": roles,
    "--fold": folds,
    "--place": lambda bench, words: ("cpu", "cuda:0"),
}
#: cell magic -> the words that may follow it beside its options
_CELL_MAGICS: dict[str, Offers] = {"%%fluid": cells, "%%kernel": op_types, "%%op": op_types}


class Completion:
    """The matcher for IPython's completer."""

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench

    @context_matcher(identifier="fluid")
    def match(self, context: Any) -> SimpleMatcherResult:
        """The words that may come next; none outside our magics."""
        line = context.line_with_cursor[: context.cursor_position]
        words = line.split()
        if not words or words[0] not in ("%fluid", *_CELL_MAGICS) or line == words[0]:
            return SimpleMatcherResult(completions=[])
        start = "" if line[-1:].isspace() else words.pop()
        words = [word for word in self.offered(words) if word.startswith(start)]
        completions = [SimpleCompletion(text=word, type="fluid") for word in words]
        return SimpleMatcherResult(completions=completions, matched_fragment=start, suppress=bool(words))

    def offered(self, words: list[str]) -> list[str]:
        """The words that may follow the words of a line."""
        magic, *rest = words
        if words[-1] in _AFTER_OPTION:
            return list(_AFTER_OPTION[words[-1]](self._bench, rest))
        if magic in _CELL_MAGICS:
            parser, offers = self._bench.shell.find_cell_magic(magic.removeprefix("%%")).parser, _CELL_MAGICS[magic]
        elif rest in ([], ["help"]):
            return [*COMMANDS, *([] if rest else ["help"])]
        elif (command := COMMANDS.get(rest.pop(0))) is not None:
            parser, offers = command.parser, command.offers
        else:
            return []
        if parser is None:
            return list(offers(self._bench, rest))
        return choices_of(parser, words[-1]) or [*words_of(parser), *offers(self._bench, rest)]
