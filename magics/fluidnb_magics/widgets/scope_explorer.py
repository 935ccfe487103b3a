"""The scope explorer: scopes and their values during runs, and any tensor page by page."""

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
from fluidnb.viz.values.reader import ScopeNode, levels, read_scope, read_scope_tree, read_variable, value_at
from fluidnb.viz.values.tensor_window import View, plane_image, plane_picture, read_page
from fluidnb.viz.values.text import scope_lines
from fluidnb_magics.session.selection import Chosen
from fluidnb_magics.session.workbench import Workbench
from fluidnb_magics.widgets.live_widget import LiveWidget
from fluidnb_magics.widgets.widget import script, style

_SAMPLE = 1 << 16  # elements for the statistics of a row; an opened tensor has more
_FIRST = 40  # rows that are read before the page has requested its rows
_STATIC = 100  # variables and scopes of the static rendering, at most
_TITLE = "global scope"
_POINTS = 160  # points of a curve that are sent


class ScopeExplorer(LiveWidget):
    """Scopes, live."""

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
        self._tracked, self._updates, self._sent_runs = ValueHistories(), 0, -1
        self._bytes, self._count = Curve("bytes"), Curve("variables")
        self._keys: list[str] = []
        self._open: tuple[str, int] | None = None if opened is None else (_key((), opened), -1)
        self._view = View()
        super().__init__(bench)
        self.update()

    def lines(self) -> Sequence[Line]:
        scope = self._scope()
        return [] if scope is None else scope_lines(read_scope(scope, _TITLE, most=_STATIC))

    def html(self) -> str:
        scope = self._scope()
        return "" if scope is None else scope_html(read_scope(scope, _TITLE, previews=True, most=_STATIC))

    # Requests of the page.

    def do_see(self, keys: list[str]) -> None:
        """Read the rows in view from now on."""
        with self._guard:
            self._keys = keys
            self._show_rows()

    def do_open(self, key: str, part: int = -1) -> None:
        """Opens a tensor, or a part of a value, and selects its variable."""
        with self._guard:
            if self._open != (key, part):
                self._open, self._view = (key, part), View()
            self._show_opened()
        name = _parsed(key)[1]
        program = self._program_of(name)
        if program is not None:
            self.bench.selection.choose(Chosen(program, variable=name))

    def do_shut(self) -> None:
        with self._guard:
            self._open = None
            self._show_opened()

    def do_view(self, axes: list[int] | None, at: list[int], row: int, column: int, rows: int, columns: int) -> None:
        """Shows another part of the tensor; ``axes`` are rows and columns (None: the last two)."""
        view = View(None if axes is None else (axes[0], axes[1]), tuple(at), row, column, rows, columns)
        with self._guard:
            before, self._view = self._view, view
            try:
                self._show_opened()
            except Exception:
                self._view = before
                raise

    # Updates.

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
        if self.runs != self._sent_runs:
            self._sent_runs = self.runs
            nbytes, count = bytes_in(scope)
            self._bytes.add(self.runs, nbytes)
            self._count.add(self.runs, count)
            words = f"{size_text(nbytes)} in {plural(count, 'variable')}"
            curves = {"bytes": _even(self._bytes.points), "variables": _even(self._count.points)}
            self.push(growth={"words": words, **curves})
        self._show_rows()
        self._show_opened()
        state = [f"after {plural(self.runs, 'run')}"] if self.runs else []
        session = self.session
        if session is not None and session.snapshot.state != "idle":
            state.append(f"debug session {session.snapshot.state} at step {session.snapshot.at}")
        self.push(state=", ".join(state))

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
        rows = {key: self._row(value_at(scope, *_parsed(key)), key) for key in self._keys}
        self._tracked.keep([*self._keys, *([self._open[0], self._open] if self._open else [])])
        self.push(rows={"update": self._updates, "rows": rows})

    def _row(self, value: Any, key: str) -> dict[str, Any]:
        variable = read_variable(_parsed(key)[1], value, sample=_SAMPLE)
        changed = self._tracked.add(key, value, self._updates, self.runs, variable.tensor)
        return {**_facts(variable), "changed": changed, "line": levels(value)}

    def _show_opened(self) -> None:
        scope = self._scope()
        if self._open is None or scope is None:
            if self.opened:
                self.push(opened={})
            return
        key, part = self._open
        path, name = _parsed(key)
        whole = value_at(scope, path, name)
        value, parts = _part(whole, part)
        variable = read_variable(name, value)
        data: dict[str, Any] = {"key": key, "name": name, "part": part, "parts": parts, "update": self._updates}
        data |= {"scope": _title(self.outline, path), **_facts(variable), "gone": whole is None}
        data["changed"] = self._tracked.add(self._open, value, self._updates, self.runs, variable.tensor)
        points = _even(self._tracked[self._open].points)
        data["history"] = [[step, _finite(mean), _finite(deviation)] for step, mean, deviation in points]
        array = array_of(value)
        if array is not None:
            data |= self._window(array)
        self.push(opened=data)

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

    def _program_of(self, name: str) -> Program | None:
        """The program that declares a variable: the one that ran last, or another one of the session."""
        ran = None if self._program is None else self._program()
        known = [ran, *(program for pair in self.bench.programs.values() for program in pair)]
        return next((p for p in known if p is not None and any(name in b.vars for b in p.desc.blocks)), None)


def _key(path: Sequence[int], name: str) -> str:
    """The page's key of a variable of a scope."""
    return f"{'.'.join(map(str, path))}|{name}"


def _parsed(key: str) -> tuple[tuple[int, ...], str]:
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


def _facts(variable: ScopeVariable) -> dict[str, Any]:
    """The facts about a value for one row."""
    tensor = variable.tensor
    if tensor is None:
        return {"facts": variable.kind}
    lod = lod_html(tensor.lod, tensor.shape[0] if tensor.shape else 0)
    size = math.prod(tensor.shape)
    return {
        "facts": tensor.facts if tensor.dtype else "empty", "where": tensor.where, "lod": lod,
        "statistics": tensor.statistics, "about": size > _SAMPLE, "warn": bool(tensor.nan or tensor.inf),
        "histogram": list(tensor.histogram), "bytes": size_text(tensor.nbytes),
        "range": [_finite(tensor.low), _finite(tensor.high)],
    }  # fmt: skip


def _part(value: Any, part: int) -> tuple[Any, int]:
    """One part of a value, and the number of its parts."""
    if isinstance(value, SelectedRows):
        return (value.rows_, value.value)[part] if 0 <= part < 2 else value.value, 2
    if isinstance(value, list | tuple) and not any(hasattr(v, "kids") for v in value):
        return value[part if 0 <= part < len(value) else 0] if value else None, len(value)
    return value, 0


def _even(points: Sequence[Any]) -> list[Any]:
    """At most `_POINTS` of many points, the last one among them."""
    stride = -(-len(points) // _POINTS) or 1
    return list(points[::-1][::stride][::-1])


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None
