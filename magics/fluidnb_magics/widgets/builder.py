"""The builder as a widget: choose what to build, from what and how; the page writes the line into a cell."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import traitlets

from fluidnb.builder import (
    Argument,
    Draft,
    Recipe,
    Rehearsal,
    draft_lines,
    find_recipe,
    ordered,
    rehearsal_lines,
    search,
)
from fluidnb.builder.draft import Text
from fluidnb.errors import FluidError
from fluidnb.viz import read_op, sheet_lines
from fluidnb.viz.base.styled_text import Line
from fluidnb_magics.session.builder import Place, Site
from fluidnb_magics.session.cell_groups import Placed
from fluidnb_magics.session.workbench import Workbench
from fluidnb_magics.widgets.widget import NotebookWidget, script, style

#: Characters of a line of the page about an operator.
_PAGE = 90


class Builder(NotebookWidget):
    """The widget.

    Its commands run on the kernel's main thread between two cells, never beside one: a dry run switches the default
    programs, which a cell that runs would see.

    Args:
        bench: the session.
        name: what to begin with; empty for nothing.

    Attributes:
        home: the front end's id of the cell that shows the widget; empty when it gives none.
        found: what fits the search, a row each: name, group, summary.
        state: the draft as the page shows it.
        page: all about what is chosen, lines of pieces; empty until it is asked for.
    """

    _esm = script("notebook", "builder")
    _css = style("builder")
    home = traitlets.Unicode().tag(sync=True)
    found: traitlets.List[Any] = traitlets.List().tag(sync=True)
    state: traitlets.Dict[str, Any] = traitlets.Dict().tag(sync=True)
    page: traitlets.List[Any] = traitlets.List().tag(sync=True)

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
        """The line that was drafted, and what it would make."""
        head: Line = [("builder", "name"), ("  %fluid build shows it; the lines that it wrote are in the cells", "dim")]
        if self._draft is None:
            return [head]
        if self._tried is None:
            recipe = self._draft.recipe
            return [head, [(recipe.name, "bold"), (f"  {recipe.summary}", "")]]
        return [head, *draft_lines(self._draft, self._tried)]

    def do_search(self, text: str) -> None:
        """Look for something to build.

        Args:
            text: words.
        """
        self.found = [[r.name, r.group, r.summary.replace("``", "")] for r in search(text)]

    def do_choose(self, name: str, place: str = "", cell: str = "", serial: int = 0) -> None:
        """Begin a draft.

        Args:
            name: what to build; empty for nothing.
            place: where.
            cell: id of the cell to which the line is added; empty for a new one.
            serial: which change of the page this answers.
        """
        self.page, self._serial = [], serial
        if not name:
            self._show(None, {}, None, place, cell, fresh=True)
            return
        recipe = find_recipe(name)
        where = self._place(place)
        candidates = self._site.candidates(where, self._cell(where, cell))
        values: dict[str, Text] = {}
        used: set[str] = set()
        for argument in recipe.arguments:
            if argument.is_input and argument.required:
                fitting = [c.source for c, fits in ordered(argument, candidates) if fits and c.named]
                first = next((source for source in fitting if source not in used), "")
                used.add(first)
                values[argument.name] = [first] if argument.kind == "variables" else first
        self._show(recipe, values, None, place, cell, fresh=True)

    def do_draft(
        self,
        name: str,
        values: Mapping[str, Text],
        result: str | None = None,
        place: str = "",
        cell: str = "",
        serial: int = 0,
    ) -> None:
        """Check a draft and try it.

        Args:
            name: what is built.
            values: its arguments as they were typed or chosen.
            result: the names of its results; None for those that are suggested.
            place: where it is built.
            cell: id of the cell to which the line is added; empty for a new one.
            serial: which change of the page this answers.
        """
        self._serial = serial
        self._show(find_recipe(name), values, result, place, cell)

    def do_page(self) -> None:
        """Show all about what is chosen: its documentation, and the page of its operator."""
        if self._draft is None:
            return
        recipe = self._draft.recipe
        lines: list[Line] = [] if recipe.group == "operator" else [[(row, "")] for row in recipe.doc.splitlines()]
        if recipe.page:
            lines += [[("", "")]] * bool(lines) + sheet_lines(read_op(recipe.page), _PAGE)
        self.page = [[list(span) for span in line] for line in lines]

    def _hear(self, widget: Any, content: dict[str, Any], buffers: Any) -> None:
        if self._loop is None:
            super()._hear(widget, content, buffers)
        else:
            self._loop.call_soon_threadsafe(super()._hear, widget, content, buffers)

    def _show(
        self,
        recipe: Recipe | None,
        values: Mapping[str, Text],
        result: str | None,
        place: str,
        cell: str,
        fresh: bool = False,
    ) -> None:
        site, where = self._site, self._place(place)
        target = self._cell(where, cell)
        cells = site.cells(where)
        state: dict[str, Any] = {
            "places": [[p.name, p.label] for p in site.places()], "place": where.name,
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
                    a.name: [[c.source, _label(c.source, c.row.name, c.row.facts, c.named), fits, c.named]
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

    def _place(self, name: str) -> Place:
        return self._site.place(name)

    def _cell(self, place: Place, cell_id: str) -> Placed | None:
        """The cell to which the line goes; None for a new one, and when it is gone."""
        return next((p for p in self._site.cells(place) if cell_id and p.cell.cell_id == cell_id), None)


def _recipe(recipe: Recipe) -> dict[str, Any]:
    call = recipe.call or f"operator {recipe.name}"
    return {
        "name": recipe.name, "group": recipe.group, "call": call, "summary": recipe.summary.replace("``", ""),
        "arguments": [_argument(a) for a in recipe.arguments],
    }  # fmt: skip


def _argument(argument: Argument) -> dict[str, Any]:
    return {
        "name": argument.name, "kind": argument.kind, "doc": argument.doc.replace("``", ""),
        "required": argument.required, "default": argument.default_text, "choices": list(argument.choices),
    }  # fmt: skip


def _label(source: str, name: str, facts: str, named: bool) -> str:
    return f"{source if named else name}  {facts}"


def _problems(draft: Draft, tried: Rehearsal | None) -> dict[str, str]:
    """Errors by field. The error of the dry run is shown below; the argument that it names is marked too."""
    found = {name: str(error) for name, error in draft.problems.items()}
    refused = None if tried is None else tried.problem
    if isinstance(refused, FluidError):
        for argument in draft.recipe.arguments:
            text = draft.values.get(argument.name)
            if text and (argument.name == refused.argument or repr(text) == refused.received):
                found[argument.name] = refused.summary
    return found
