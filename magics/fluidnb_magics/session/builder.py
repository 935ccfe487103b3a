"""Where one can build in a session, from what, and the text that the builder leaves in a cell. No widget here."""

from __future__ import annotations

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
class Place:
    """A block in which one can build.

    Args:
        name: how it is chosen: ``main``, a program's name, the name of a block.
        label: what one reads.
        program: the program's name; None for the default one.
        block: the block's index.
        head: the first line of a cell that builds there.
    """

    name: str
    label: str
    program: str | None
    block: int
    head: str


class Site:
    """The session as the builder sees it.

    Args:
        bench: the session.
    """

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench

    # Where.

    def places(self) -> list[Place]:
        """The blocks in which cells can build: the global ones, and those that cells opened."""
        return [place for name, (main, _) in self._bench.programs.items() for place in self._places(name, main)]

    def place(self, name: str = "") -> Place:
        """One of the places.

        Args:
            name: its name; the global block of the default program when left out.

        Raises:
            NotFound: there is none.
        """
        places = self.places()
        for place in places:
            if place.name == (name or places[0].name):
                return place
        names = [place.name for place in places]
        raise NotFound(
            f"one cannot build in {name}.", expected=", ".join(names), received=name,
            hint=near(name, names) or "%fluid block lists the blocks.",
        )  # fmt: skip

    def cells(self, place: Place) -> list[Placed]:
        """The cells of a front end that build at a place, in program order; a line can be added to one of them.

        Args:
            place: the place.
        """
        return [p for p in self._bench.cells if p.cell.cell_id and not p.stale and self._builds(p, place)]

    def cell_ids(self) -> list[str]:
        """The front end's ids of all cells that build, in program order."""
        return [p.cell.cell_id for p in self._bench.cells if p.cell.cell_id]

    def main(self, place: Place) -> Program:
        """The program of a place."""
        return self._bench.program(place.program)[0]

    # What.

    def hidden(self, place: Place, cell: Placed | None) -> set[str]:
        """Python names that a line there cannot read, because later cells bind them.

        Args:
            place: where it is built.
            cell: the cell to which it is added, or None for one of its own.
        """
        within = cell or next((p for p in self._bench.cells if p.key == self._opener(place)), None)
        if within is None:
            return set()
        fragments = list(self._bench.log.fragments)
        at = next(i for i, f in enumerate(fragments) if f is within.fragment)
        earlier = {name for f in fragments[: at + 1] for name in f.bound}
        return {name for f in fragments[at + 1 :] for name in f.bound} - earlier

    def candidates(self, place: Place, cell: Placed | None = None) -> list[Candidate]:
        """The variables that a line there can read.

        Args:
            place: where it is built.
            cell: the cell to which it is added, or None for one of its own.
        """
        return in_reach(self.main(place), place.block, self._bench.shell.user_ns, self.hidden(place, cell))

    def draft(self, recipe: Recipe, values: Mapping[str, Text], result: str | None, hidden: set[str]) -> Draft:
        """A draft over the names of the notebook.

        Args:
            recipe: what is built.
            values: its arguments as they were typed.
            result: the names of its results; suggested when None.
            hidden: names that it cannot read.
        """
        names = {name: value for name, value in self._bench.shell.user_ns.items() if name not in hidden}
        wanted = suggestion(recipe, values, self.taken()) if result is None else result
        return Draft(recipe, values, wanted, names)

    def taken(self) -> set[str]:
        """Names that mean something already: in Python, or in a program."""
        programs = [main for main, _ in self._bench.programs.values()]
        variables = {name for main in programs for b in main.desc.blocks for name in b.vars}
        return {*self._bench.shell.user_ns, *variables, *dir(builtins)}

    def rehearse(self, draft: Draft, place: Place, cell: Placed | None = None) -> Rehearsal | None:
        """The dry run of a draft, or None while it cannot be tried.

        Args:
            draft: the draft.
            place: where it is built.
            cell: the cell to which it is added, or None for one of its own.
        """
        if draft.problems:
            return None
        programs = self._bench.program(place.program)
        hint = NameHints("cell" if cell is None else cell.cell.name)
        return rehearse(draft.source(), draft.targets, draft.names, programs, place.block, hint)

    def completions(self, words: list[str]) -> list[str]:
        """What may follow ``%fluid add`` or ``%fluid build``.

        Args:
            words: what stands behind it already.

        Returns:
            What can be built; behind that the variables in reach, and the arguments with what is known to fit.
        """
        if not words:
            return [recipe.name for recipe in recipes()]
        recipe = next((recipe for recipe in recipes() if recipe.name == words[0]), None)
        if recipe is None:
            return []
        left = [a for a in recipe.arguments if not any(word.startswith(f"{a.name}=") for word in words)]
        values = [f"{a.name}={choice}" for a in left for choice in a.choices]
        names = [c.source for c in self.candidates(self.place()) if c.named]
        return [*names, *(f"{a.name}=" for a in left), *values, "--as", "--in", "--program"]

    # Inside.

    def _places(self, name: str, main: Program) -> Iterator[Place]:
        default = name == DEFAULT
        option = "" if default else f" --program {name}"
        program = None if default else name
        yield Place("main" if default else name, "global block" + ("" if default else f" of {name}"), program, 0,
                    f"%%fluid{option}")  # fmt: skip
        for block in main.desc.blocks[1:]:
            called = self._bench.blocks.called(block)
            if called:
                label = f"block {block.idx}: {called[0]}" + ("" if default else f" of {name}")
                yield Place(called[0], label, program, block.idx, f"%%fluid{option} --in {called[0]}")

    def _builds(self, cell: Placed, place: Place) -> bool:
        if cell.program != place.program:
            return False
        block = self._bench.block_of(cell)
        if place.block:
            return block is not None and block.idx == place.block
        return cell.owner is None and not cell.group.state

    def _opener(self, place: Place) -> Any:
        """The key of the cell that opened the block of a place; None for a global block."""
        opened = self._bench.blocks.of(self.main(place).desc.blocks[place.block])
        return None if opened is None else opened.key
