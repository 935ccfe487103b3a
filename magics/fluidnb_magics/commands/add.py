"""``%fluid add``: writes a line of a program from a layer and its arguments."""

import argparse
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from fluidnb.builder import Argument, Draft, Recipe, draft_lines, find_recipe, ordered, recipe_lines
from fluidnb.builder.draft import Text
from fluidnb.program import Variable
from fluidnb_magics.arguments import unquoted
from fluidnb_magics.commands._command import Section, UsageError, Workbench, command, show, width
from fluidnb_magics.commands._offers import builder_words
from fluidnb_magics.session.builder import Location, Site


@command(Section.BUILD, "add fc x size=10", builder_words, raw=True)
def add(bench: Workbench, line: str) -> None:
    """::

      %fluid add NAME [INPUT ...] [ARGUMENT=VALUE ...] [--as RESULT] [--in BLOCK] [--program NAME]

    Write a line of a program into the next cell, from a layer and its arguments.

    ``%fluid add fc x size=10`` writes ``h = layers.fc(x, 10)``. Missing arguments are asked for. The line is tried
    first, which changes nothing, and the shapes of its results are shown; the next cell, or prompt, then contains it as
    a ``%%fluid`` cell, which you may edit before you run it.
    """
    parser = _Parser(prog="%fluid add", add_help=False)
    parser.add_argument("name", nargs="?")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--as", dest="result")
    parser.add_argument("--in", dest="block")
    parser.add_argument("--program")
    try:
        args = parser.parse_args(shlex.split(line, posix=False))
    except ValueError as error:  # of shlex
        raise UsageError(f"%fluid add: {error}") from None
    if args.name is None:
        raise UsageError("%fluid add needs a NAME: a layer, an optimizer or an operator, for example fc.")
    site, recipe = Site(bench), find_recipe(args.name)
    location = _location(site, args.block, args.program)
    values = _values(recipe, args.words, bench.shell.user_ns)
    hidden = site.hidden(location, None)
    for name, problem in site.draft(recipe, values, args.result, hidden).problems.items():
        if values.get(name) or name == "result":
            raise problem
    missing = [a for a in recipe.arguments if a.required and not values.get(a.name)]
    if missing:
        show(bench.shell, recipe_lines(recipe, width(bench.shell)))
        for argument in missing:
            values[argument.name] = _ask(bench, site, location, recipe, argument)
    draft = site.draft(recipe, values, args.result, hidden)
    if missing and args.result is None:
        draft = site.draft(recipe, values, _read(bench, "result", draft.result, [draft.result]), hidden)
    source, rehearsal = draft.source(), site.rehearse(draft, location)
    assert rehearsal is not None, "what is wrong with a draft is raised by its source"
    if rehearsal.problem is not None:
        raise rehearsal.problem
    show(bench.shell, draft_lines(draft, rehearsal))
    head = location.head
    if getattr(bench.shell, "kernel", None) is None:  # a terminal has no ids of cells: the cell gets a name
        name = bench.free_name((draft.targets or [draft.recipe.name])[0])
        head = head.replace("%%fluid", f"%%fluid {name}", 1)
    bench.shell.set_next_input(f"{head}\n{source}")


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are the shell's."""

    def error(self, message: str) -> Any:
        """Raise instead of exiting the process."""
        raise UsageError(f"%fluid add: {message}")


def _location(site: Site, block: str | None, program: str | None) -> Location:
    if block is None:
        return site.location(program or "")
    meant = [p for p in site.locations() if program is None or p.program == program]
    named = [p for p in meant if block in (p.name, str(p.block))]
    return named[0] if named else site.location(block)


def _values(recipe: Recipe, words: list[str], names: Mapping[str, Any]) -> dict[str, Text]:
    """The arguments of a line: ``NAME=VALUE``, and without a name in order; a list of inputs takes all variables."""
    values: dict[str, Text] = {}
    for word in words:
        name, sign, text = word.partition("=")
        if sign and name.isidentifier():
            values[recipe.argument(name).name] = unquoted(text)
            continue
        is_variable = isinstance(names.get(word), Variable)
        free = [a for a in recipe.arguments if a.name not in values or (a.kind == "variables" and is_variable)]
        if not free:
            raise UsageError(f"%fluid add: {word} is one argument too many; it is {recipe.usage}.")
        if free[0].kind == "variables":
            values[free[0].name] = [*values.get(free[0].name, []), word]
        else:
            values[free[0].name] = word
    return values


def _ask(bench: Workbench, site: Site, location: Location, recipe: Recipe, argument: Argument) -> Text:
    """Prompts for an argument until its value can be parsed."""
    candidates = site.candidates(location)
    words, first = list(argument.choices), ""
    if argument.is_input:
        words = [candidate.source for candidate, _ in ordered(argument, candidates) if candidate.named]
        first = words[0] if words else ""
    while True:
        text = _read(bench, argument.name, first, words)
        value: Text = text.replace(",", " ").split() if argument.kind == "variables" else text
        draft = Draft(recipe, {argument.name: value}, "", bench.shell.user_ns)
        problem = draft.problems.get(argument.name)
        if problem is None:
            return value
        show(bench.shell, [[(row, "warn")] for row in str(problem).splitlines()])


def _read(bench: Workbench, name: str, default: str, words: list[str]) -> str:
    """A line from the user, with completion in a terminal; an empty one means the default."""
    prompt: Callable[[str], str] = input
    if getattr(bench.shell, "pt_app", None) is not None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import WordCompleter

        prompt = PromptSession[str](completer=WordCompleter(words)).prompt
    try:
        return (prompt(f"{name} [{default}]: " if default else f"{name}: ") or default).strip()
    except EOFError:
        raise UsageError(f"There is no {name}, and no prompt: give it in the line, {name}=….") from None
