"""The scope explorer: scopes and their values during runs, and any tensor page by page."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import Any

import traitlets

from fluidnb.memory import size_text
from fluidnb.program import Program
from fluidnb.runtime import Scope
from fluidnb.values.selected_rows import SelectedRows
from fluidnb.values.tensor import array_of
from fluidnb.viz.base.curves import Curve
from fluidnb.viz.base.styled_text import Line, plural
from fluidnb.viz.memory.growth import bytes_in
from fluidnb.viz.values.history import ValueHistories
from fluidnb.viz.values.html import scope_html
from fluidnb.viz.values.model import ScopeVariable
from fluidnb.viz.values.preview_html import lod_html, preview_url
from fluidnb.viz.values.reader import levels, read_scope, read_variable
from fluidnb.viz.values.scope_tree import ScopeNode, read_scope_tree, value_at
from fluidnb.viz.values.tensor_window import View, plane_image, plane_picture, read_page
from fluidnb.viz.values.text import scope_lines
from fluidnb_magics.session.selection import Chosen
from fluidnb_magics.session.workbench import Workbench
from fluidnb_magics.widgets.live_widget import Live
from fluidnb_magics.widgets.widget import script, style

#: Elements that make the statistics of a row; of an opened tensor, more do.
_SAMPLE = 1 << 16
#: Rows that are read before the page has said which ones it shows.
_FIRST = 40
#: Variables and scopes of the static face, at most.
_STATIC = 100
_TITLE = "global scope"
#: Points of a curve that are sent.
_POINTS = 160


class ScopeExplorer(Live):
    """Scopes, live.

    Args:
        bench: the session behind the magics.
        scope: the outermost scope.
        opened: a variable that is looked at from the beginning.

    Attributes:
        outline: the scopes and the names in them.
        rows: what is held under the names in view.
        opened: the tensor that is looked at.
        growth: how much the scopes held after each update.
        picked: the names that are selected.
        state: when the last look was, in words.
    """

    _esm = script("chart", "scope")
    _css = style("chart", "scope")
    outline = traitlets.Dict().tag(sync=True)
    rows = traitlets.Dict().tag(sync=True)
    opened = traitlets.Dict().tag(sync=True)
    growth = traitlets.Dict().tag(sync=True)
    picked_names = traitlets.Dict().tag(sync=True)
    state = traitlets.Unicode().tag(sync=True)

    def __init__(self, bench: Workbench, scope: Scope, opened: str | None = None) -> None:
        self._scope = weakref.ref(scope)
        self._program: weakref.ref[Program] | None = None
        self._tracked, self._updates, self._told_runs = ValueHistories(), 0, -1
        self._bytes, self._count = Curve("bytes"), Curve("variables")
        self._keys: list[str] = []
        self._open: tuple[str, int] | None = None if opened is None else (_key((), opened), -1)
        self._view = View()
        super().__init__(bench)
        self.update()

    # Static faces.

    def lines(self) -> Sequence[Line]:
        scope = self._scope()
        return [] if scope is None else scope_lines(read_scope(scope, _TITLE, most=_STATIC))

    def html(self) -> str:
        scope = self._scope()
        return "" if scope is None else scope_html(read_scope(scope, _TITLE, previews=True, most=_STATIC))

    # What the page asks.

    def do_see(self, keys: list[str]) -> None:
        """Read the rows in view from now on.

        Args:
            keys: the rows.
        """
        with self._guard:
            self._keys = keys
            self._show_rows()

    def do_open(self, key: str, part: int = -1) -> None:
        """Opens a tensor, and selects its variable.

        Args:
            key: its row.
            part: which of the things that the variable consists of; -1 for the variable itself.
        """
        with self._guard:
            if self._open != (key, part):
                self._open, self._view = (key, part), View()
            self._show_opened()
        name = _place(key)[1]
        program = self._program_of(name)
        if program is not None:
            self.bench.selection.choose(Chosen(program, variable=name))

    def do_shut(self) -> None:
        """Closes the tensor."""
        with self._guard:
            self._open = None
            self._show_opened()

    def do_view(self, axes: list[int] | None, at: list[int], row: int, column: int, rows: int, columns: int) -> None:
        """Shows another part of the tensor.

        Args:
            axes: which axes are rows and columns; None for the last two.
            at: an index for each other axis.
            row: the first row.
            column: the first column.
            rows: how many rows.
            columns: how many columns.
        """
        asked = View(None if axes is None else (axes[0], axes[1]), tuple(at), row, column, rows, columns)
        with self._guard:
            before, self._view = self._view, asked
            try:
                self._show_opened()
            except Exception:
                self._view = before
                raise

    # What it shows.

    def ran(self, program: Program, scope: Any) -> bool:
        self._program = weakref.ref(program)
        return scope is self._scope()

    def refresh(self) -> None:
        scope = self._scope()
        if scope is None:
            self.push(state="the scope is gone")
            return
        self._updates += 1
        if not self._keys:
            self._keys = [_key((), name) for name in sorted(scope.vars)[:_FIRST]]
        outline = _outline(read_scope_tree(scope, _TITLE))
        if outline != self.outline:
            self.push(outline=outline)
        if self.runs != self._told_runs:
            self._told_runs = self.runs
            held, count = bytes_in(scope)
            self._bytes.add(self.runs, held)
            self._count.add(self.runs, count)
            words = f"{size_text(held)} in {plural(count, 'variable')}"
            self.push(growth={"words": words, "bytes": _thin(self._bytes), "variables": _thin(self._count)})
        self._show_rows()
        self._show_opened()
        self.push(state=self._words())

    def picked(self, chosen: Chosen | None) -> None:
        names: list[str] = []
        if chosen is not None:
            names = [chosen.variable] if chosen.variable else []
            blocks = chosen.program.desc.blocks
            ops = [blocks[b].ops[i] for b, i in chosen.ops if b < len(blocks) and i < len(blocks[b].ops)]
            names += [name for op in ops for name in (*op.output_arg_names(), *op.input_arg_names())]
        self.push(picked_names={"names": list(dict.fromkeys(names)), "all": bool(chosen and chosen.variable)})

    def _show_rows(self) -> None:
        scope = self._scope()
        if scope is None:
            return
        found = {key: self._row(value_at(scope, *_place(key)), key) for key in self._keys}
        self._tracked.keep([*self._keys, *([self._open[0], self._open] if self._open else [])])
        self.push(rows={"update": self._updates, "rows": found})

    def _row(self, value: Any, key: str) -> dict[str, Any]:
        held = read_variable(_place(key)[1], value, sample=_SAMPLE)
        row = _facts(held)
        row["changed"] = self._tracked.add(key, value, self._updates, self.runs, held.tensor)
        row["line"] = levels(value)
        return row

    def _show_opened(self) -> None:
        scope = self._scope()
        if self._open is None or scope is None:
            if self.opened:
                self.push(opened={})
            return
        key, part = self._open
        path, name = _place(key)
        whole = value_at(scope, path, name)
        value, parts = _part(whole, part)
        held = read_variable(name, value)
        found: dict[str, Any] = {"key": key, "name": name, "part": part, "parts": parts, "update": self._updates}
        found |= {"scope": _title(self.outline, path), **_facts(held), "gone": whole is None}
        found["changed"] = self._tracked.add(self._open, value, self._updates, self.runs, held.tensor)
        track = self._tracked[self._open]
        found["history"] = [[step, _fine(m), _fine(d)] for step, m, d in _even(track.points)]
        array = array_of(value)
        if array is not None:
            found |= self._window(array)
        self.push(opened=found)

    def _window(self, array: Any) -> dict[str, Any]:
        """The visible part of a tensor, and pictures of its plane."""
        page = read_page(array, self._view)
        pictures = {}
        for what, picture in (("plane", plane_picture(array, self._view)), ("image", plane_image(array, self._view))):
            if picture is not None and picture.kind != "line":
                low, high = picture.range
                pictures[what] = {"url": preview_url(picture), "size": picture.size, "range": [low, high]}
        seen = page.view
        return {
            "shape": list(array.shape), "axes": seen.axes, "at": list(seen.at), "row": seen.row, "column": seen.column,
            "size": list(page.shape), "cells": [list(line) for line in page.cells], "wraps": page.wraps,
            "pictures": pictures,
        }  # fmt: skip

    def _words(self) -> str:
        parts = [f"after {plural(self.runs, 'run')}"] if self.runs else []
        session = self.session
        if session is not None and session.snapshot.state != "idle":
            parts.append(f"debug session {session.snapshot.state} at step {session.snapshot.at}")
        return ", ".join(parts)

    def _program_of(self, name: str) -> Program | None:
        """The program that declares a variable: the one that ran last, or another one of the session."""
        ran = None if self._program is None else self._program()
        known = [ran, *(program for pair in self.bench.programs.values() for program in pair)]
        return next((p for p in known if p is not None and any(name in b.vars for b in p.desc.blocks)), None)


def _key(path: Sequence[int], name: str) -> str:
    """What the page calls a variable of a scope."""
    return f"{'.'.join(map(str, path))}|{name}"


def _place(key: str) -> tuple[tuple[int, ...], str]:
    path, _, name = key.partition("|")
    return tuple(int(i) for i in path.split(".") if i), name


def _outline(branch: ScopeNode) -> dict[str, Any]:
    return {"title": branch.title, "names": list(branch.names), "kids": [_outline(kid) for kid in branch.kids]}


def _title(outline: dict[str, Any], path: Sequence[int]) -> str:
    titles = [outline["title"]]
    for i in path:
        if i >= len(outline["kids"]):
            break
        outline = outline["kids"][i]
        titles.append(outline["title"])
    return " › ".join(titles)


def _facts(held: ScopeVariable) -> dict[str, Any]:
    """What is said of a value in one row."""
    tensor = held.tensor
    if tensor is None:
        return {"facts": held.kind}
    lod = lod_html(tensor.lod, tensor.shape[0] if tensor.shape else 0)
    size = math.prod(tensor.shape)
    return {
        "facts": tensor.facts if tensor.dtype else "empty", "where": tensor.where, "lod": lod,
        "statistics": tensor.statistics, "about": size > _SAMPLE, "warn": bool(tensor.nan or tensor.inf),
        "histogram": list(tensor.histogram), "bytes": size_text(tensor.nbytes),
        "range": [_fine(tensor.low), _fine(tensor.high)],
    }  # fmt: skip


def _part(value: Any, part: int) -> tuple[Any, int]:
    """One of the things that a value consists of, and how many there are."""
    if isinstance(value, SelectedRows):
        return (value.rows_, value.value)[part] if 0 <= part < 2 else value.value, 2
    if isinstance(value, list | tuple) and not any(hasattr(v, "kids") for v in value):
        return value[part if 0 <= part < len(value) else 0] if value else None, len(value)
    return value, 0


def _even(points: Sequence[Any]) -> list[Any]:
    """At most so many of many points, the last one among them."""
    stride = -(-len(points) // _POINTS) or 1
    return list(points[::-1][::stride][::-1])


def _thin(curve: Curve) -> list[list[float]]:
    return [[step, value] for step, value in _even(curve.points)]


def _fine(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None
