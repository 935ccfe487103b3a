"""The builder as a widget: a form for a recipe, its inputs and arguments; the page writes the line into a cell."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import traitlets

from fluidnb.builder import Recipe, Rehearsal, draft_lines, find_recipe, ordered, rehearsal_lines, search
from fluidnb.builder.draft import Draft, Text
from fluidnb.errors import FluidError
from fluidnb.viz import read_op, sheet_lines
from fluidnb.viz.base.styled_text import Line
from fluidnb_magics.session.builder import Location, Site
from fluidnb_magics.session.cell_groups import Placed
from fluidnb_magics.session.workbench import Workbench
from fluidnb_magics.widgets.widget import NotebookWidget, script, style

_PAGE = 90  # characters of a line of the page about an operator


class Builder(NotebookWidget):
    """The widget; ``name``: the recipe to begin with.

    Its commands run on the kernel's main thread between two cells, never beside one: a trial run switches the default
    programs, which a running cell would see.
    """

    _esm = script("notebook", "builder")
    _css = style("builder")
    home = traitlets.Unicode().tag(sync=True)  # the front end's id of the cell that shows the widget, or empty
    matches: traitlets.List[Any] = traitlets.List().tag(sync=True)  # of the search: name, group, summary
    state: traitlets.Dict[str, Any] = traitlets.Dict().tag(sync=True)  # the draft as the page shows it
    page: traitlets.List[Any] = traitlets.List().tag(sync=True)  # the documentation, once requested: lines of pieces

    def __init__(self, bench: Workbench, name: str = "", **traits: Any) -> None:
        self._site = Site(bench)
        self._draft: Draft | None = None
        self._tried: Rehearsal | None = None
        try:
            self._loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            self._loop = None  # no loop runs the cells, so nothing runs beside them
        super().__init__(**traits)
        kernel = getattr(bench.shell, "kernel", None)
        parent = {} if kernel is None else kernel.get_parent() or {}
        self.home = parent.get("metadata", {}).get("cellId") or ""
        self.do_search("")
        self.do_choose(name)

    def lines(self) -> Sequence[Line]:
        """The drafted line, and the results of its trial run."""
        head: Line = [("builder", "name"), ("  %fluid build shows it; the lines that it wrote are in the cells", "dim")]
        if self._draft is None:
            return [head]
        if self._tried is None:
            recipe = self._draft.recipe
            return [head, [(recipe.name, "bold"), (f"  {recipe.summary}", "")]]
        return [head, *draft_lines(self._draft, self._tried)]

    def do_search(self, text: str) -> None:
        """Search for a recipe."""
        self.matches = [[r.name, r.group, r.summary.replace("``", "")] for r in search(text)]

    def do_choose(self, name: str, location: str = "", cell: str = "", serial: int = 0) -> None:
        """Begin a draft of a recipe (empty for none), for a line in a cell (its id; empty for a new one)."""
        self.page, self._serial = [], serial
        if not name:
            self._show(None, {}, None, location, cell, fresh=True)
            return
        recipe = find_recipe(name)
        where = self._site.location(location)
        candidates = self._site.candidates(where, self._cell(where, cell))
        values: dict[str, Text] = {}
        used: set[str] = set()
        for argument in recipe.arguments:
            if argument.is_input and argument.required:
                fitting = [c.source for c, fits in ordered(argument, candidates) if fits and c.named]
                first = next((source for source in fitting if source not in used), "")
                used.add(first)
                values[argument.name] = [first] if argument.kind == "variables" else first
        self._show(recipe, values, None, location, cell, fresh=True)

    def do_draft(
        self, name: str, values: Mapping[str, Text], result: str | None = None, location: str = "", cell: str = "",
        serial: int = 0,
    ) -> None:  # fmt: skip
        """Check a draft and try it; suggests names of results where ``result`` is None."""
        self._serial = serial
        self._show(find_recipe(name), values, result, location, cell)

    def do_page(self) -> None:
        """Show the documentation of a recipe, and the page of its operator."""
        if self._draft is None:
            return
        recipe = self._draft.recipe
        lines: list[Line] = [] if recipe.group == "operator" else [[(row, "")] for row in recipe.doc.splitlines()]
        if recipe.page:
            lines += [[("", "")]] * bool(lines) + sheet_lines(read_op(recipe.page), _PAGE)
        self.page = [[list(span) for span in line] for line in lines]

    def _on_message(self, widget: Any, content: dict[str, Any], buffers: Any) -> None:
        if self._loop is None:
            super()._on_message(widget, content, buffers)
        else:
            self._loop.call_soon_threadsafe(super()._on_message, widget, content, buffers)

    def _show(
        self, recipe: Recipe | None, values: Mapping[str, Text], result: str | None, location: str, cell: str,
        fresh: bool = False,
    ) -> None:  # fmt: skip
        site, where = self._site, self._site.location(location)
        target = self._cell(where, cell)
        cells = site.cells(where)
        state: dict[str, Any] = {
            "locations": [[p.name, p.label] for p in site.locations()], "location": where.name,
            "cells": [[p.cell.cell_id, p.title] for p in cells], "cell": target.cell.cell_id if target else "",
            "known": site.cell_ids(), "recipe": None, "serial": self._serial, "fresh": fresh,
        }  # fmt: skip
        self._draft = self._tried = None
        if recipe is not None:
            draft = self._draft = site.draft(recipe, values, result, site.hidden(where, target))
            tried = self._tried = site.rehearse(draft, where, target)
            candidates = site.candidates(where, target)
            state |= {
                "recipe": _recipe(recipe),
                "values": dict(values),
                "result": draft.result,
                "choices": {
                    a.name: [[c.source, f"{c.source if c.named else c.row.name}  {c.row.facts}", fits, c.named]
                             for c, fits in ordered(a, candidates)]
                    for a in recipe.arguments if a.is_input
                },
                "problems": _problems(draft, tried),
                "preview": [] if tried is None else [[list(s) for s in line] for line in rehearsal_lines(tried)],
                "refused": tried is not None and tried.problem is not None,
                "line": "" if draft.problems else draft.source(),
                "head": where.head,
            }  # fmt: skip
        self.state = state

    def _cell(self, location: Location, cell_id: str) -> Placed | None:
        """The cell to which the line is added; None for a new one, and when the cell was removed."""
        return next((p for p in self._site.cells(location) if cell_id and p.cell.cell_id == cell_id), None)


def _recipe(recipe: Recipe) -> dict[str, Any]:
    call = recipe.call or f"operator {recipe.name}"
    return {
        "name": recipe.name, "group": recipe.group, "call": call, "summary": recipe.summary.replace("``", ""),
        "arguments": [
            {"name": a.name, "kind": a.kind, "doc": a.doc.replace("``", ""), "required": a.required,
             "default": a.default_text, "choices": list(a.choices)}
            for a in recipe.arguments
        ],
    }  # fmt: skip


def _problems(draft: Draft, tried: Rehearsal | None) -> dict[str, str]:
    """Errors by field; the argument that the error of the trial run names is marked, too."""
    problems = {name: str(error) for name, error in draft.problems.items()}
    refused = None if tried is None else tried.problem
    if isinstance(refused, FluidError):
        for argument in draft.recipe.arguments:
            text = draft.values.get(argument.name)
            if text and (argument.name == refused.argument or repr(text) == refused.received):
                problems[argument.name] = refused.summary
    return problems
