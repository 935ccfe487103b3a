"""The builder without a widget: blocks in which one can build, candidates, drafts and trial runs."""

import builtins
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fluidnb.builder import Candidate, Draft, Recipe, Rehearsal, in_reach, recipes, rehearse, suggestion
from fluidnb.builder.draft import Text
from fluidnb.errors import NotFound, near
from fluidnb.program import Program
from fluidnb_magics.session.cell_groups import Placed
from fluidnb_magics.session.name_hints import NameHints
from fluidnb_magics.session.workbench import DEFAULT, Workbench


@dataclass(frozen=True, slots=True)
class Location:
    """A block in which one can build."""

    name: str  # how it is chosen: ``main``, a program's name, the name of a block
    label: str  # what one reads
    program: str | None  # the program's name; None for the default one
    block: int  # the block's index
    head: str  # the first line of a cell that builds there


class Site:
    """The builder's access to a session."""

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench

    def locations(self) -> list[Location]:
        """The blocks in which cells can build: the global ones, and those that cells opened."""
        return [
            location for name, (main, _) in self._bench.programs.items() for location in self._locations(name, main)
        ]

    def location(self, name: str = "") -> Location:
        """The block of a name; default the global block of the default program."""
        locations = self.locations()
        location = next((each for each in locations if each.name == (name or locations[0].name)), None)
        if location is None:
            names = [each.name for each in locations]
            raise NotFound(
                f"one cannot build in {name}.", expected=", ".join(names), received=name,
                hint=near(name, names) or "%fluid block lists the blocks.",
            )  # fmt: skip
        return location

    def cells(self, location: Location) -> list[Placed]:
        """The cells of a front end that build in a block, in program order; a line can be added to one of them."""
        return [p for p in self._bench.cells if p.cell.cell_id and not p.stale and self._builds(p, location)]

    def cell_ids(self) -> list[str]:
        """The front end's ids of all cells that build, in program order."""
        return [p.cell.cell_id for p in self._bench.cells if p.cell.cell_id]

    def main(self, location: Location) -> Program:
        """The program of a location."""
        return self._bench.program(location.program)[0]

    def hidden(self, location: Location, cell: Placed | None) -> set[str]:
        """The Python names that a line in a cell, or in a new one (None), cannot read: later cells bind them."""
        within = cell or next((p for p in self._bench.cells if p.key == self._opener(location)), None)
        if within is None:
            return set()
        runs = list(self._bench.log.runs)
        at = next(i for i, f in enumerate(runs) if f is within.run)
        earlier = {name for f in runs[: at + 1] for name in f.bound}
        return {name for f in runs[at + 1 :] for name in f.bound} - earlier

    def candidates(self, location: Location, cell: Placed | None = None) -> list[Candidate]:
        """The variables that a line in a cell, or in a new one (None), can read."""
        return in_reach(self.main(location), location.block, self._bench.shell.user_ns, self.hidden(location, cell))

    def draft(self, recipe: Recipe, values: Mapping[str, Text], result: str | None, hidden: set[str]) -> Draft:
        """A draft over the names of the notebook; names of results are suggested where ``result`` is None."""
        names = {name: value for name, value in self._bench.shell.user_ns.items() if name not in hidden}
        wanted = suggestion(recipe, values, self.taken()) if result is None else result
        return Draft(recipe, values, wanted, names)

    def taken(self) -> set[str]:
        """The names in use, in Python or in a program."""
        programs = [main for main, _ in self._bench.programs.values()]
        variables = {name for main in programs for b in main.desc.blocks for name in b.vars}
        return {*self._bench.shell.user_ns, *variables, *dir(builtins)}

    def rehearse(self, draft: Draft, location: Location, cell: Placed | None = None) -> Rehearsal | None:
        """The trial run of a draft in a cell, or in a new one; None while it cannot be tried."""
        if draft.problems:
            return None
        programs = self._bench.program(location.program)
        hint = NameHints("cell" if cell is None else cell.cell.name)
        return rehearse(draft.source(), draft.targets, draft.names, programs, location.block, hint)

    def completions(self, words: list[str]) -> list[str]:
        """The words that may follow ``%fluid add`` or ``%fluid build``: recipes, then variables and arguments."""
        if not words:
            return [recipe.name for recipe in recipes()]
        recipe = next((recipe for recipe in recipes() if recipe.name == words[0]), None)
        if recipe is None:
            return []
        left = [a for a in recipe.arguments if not any(word.startswith(f"{a.name}=") for word in words)]
        values = [f"{a.name}={choice}" for a in left for choice in a.choices]
        names = [c.source for c in self.candidates(self.location()) if c.named]
        return [*names, *(f"{a.name}=" for a in left), *values, "--as", "--in", "--program"]

    def _locations(self, name: str, main: Program) -> Iterator[Location]:
        default = name == DEFAULT
        option = "" if default else f" --program {name}"
        program = None if default else name
        yield Location("main" if default else name, "global block" + ("" if default else f" of {name}"), program, 0,
                    f"%%fluid{option}")  # fmt: skip
        for block in main.desc.blocks[1:]:
            called = self._bench.blocks.called(block)
            if called:
                label = f"block {block.idx}: {called[0]}" + ("" if default else f" of {name}")
                yield Location(called[0], label, program, block.idx, f"%%fluid{option} --in {called[0]}")

    def _builds(self, cell: Placed, location: Location) -> bool:
        if cell.program != location.program:
            return False
        block = self._bench.block_of(cell)
        if location.block:
            return block is not None and block.idx == location.block
        return cell.owner is None and not cell.group.state

    def _opener(self, location: Location) -> Any:
        """The key of the cell that opened the block of a location; None for a global block."""
        opened = self._bench.blocks.of(self.main(location).desc.blocks[location.block])
        return None if opened is None else opened.key
