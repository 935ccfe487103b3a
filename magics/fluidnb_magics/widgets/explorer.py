"""The program explorer: a program as a listing that folds, with search, links and graphs, as it is at any moment."""

from __future__ import annotations

import json
import threading
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import asdict, fields
from typing import Any

from traitlets import Bool, Bytes, Dict, List

from fluidnb.debug.debugger import Debugger
from fluidnb.debug.session import Session, current
from fluidnb.debug.snapshot import Snapshot
from fluidnb.errors import EnforceNotMet, NotFound
from fluidnb.op import has_op
from fluidnb.runtime import global_scope
from fluidnb.viz import (
    ProgramPicture,
    TensorSummary,
    graph_html,
    graph_lines,
    level,
    program_html,
    program_lines,
    read_op,
    sheet_lines,
    tensor_lines,
)
from fluidnb.viz.base.styled_text import Line
from fluidnb.viz.program.table import ProgramTable, read_table
from fluidnb.viz.session.current_value import last_value
from fluidnb_magics.session.program_parts import picture_of, program_of
from fluidnb_magics.session.selection import Chosen
from fluidnb_magics.session.workbench import Workbench
from fluidnb_magics.widgets.explorer_graph import drawn
from fluidnb_magics.widgets.explorer_links import cell_spans, stand_of, weakly
from fluidnb_magics.widgets.widget import NotebookWidget, script, style

#: Operators that are shown at once, before the rest is read; and in the faces that stay when the kernel is gone.
SHOWN = 200


class Explorer(NotebookWidget):
    """A program explorer.

    Args:
        bench: the session.
        what: what is shown, as `picture_of` takes it.
        program: a program of the session.
        startup: the startup program instead of the main one.
        graph: shows the graph first, not the listing.

    Attributes:
        graph: whether the graph is shown first.
        table: the program as JSON: a `ProgramTable`.
        cells: the cells that built it; see `cell_spans`.
        stand: where a debug session of it stands; empty without one.
        picture: the program; at first only its beginning, the rest when the cell that shows it is over.

    Raises:
        FluidError: there is no such program, block or operator.
    """

    _esm = script("explorer_program", "explorer_card", "explorer")
    _css = style("explorer")
    table = Bytes().tag(sync=True)
    cells: Any = List().tag(sync=True)
    stand = Dict().tag(sync=True)
    graph: Any = Bool(False).tag(sync=True)

    def __init__(
        self, bench: Workbench, what: str = "", program: str | None = None, startup: bool = False, graph: bool = False
    ) -> None:
        self._bench, self._named = bench, (what, program, startup)
        self.program = program_of(bench, *self._named)
        self._session: Session | None = None
        self._views, self._mine, self._graphs = 0, False, 0
        self._numbers: list[tuple[Hashable, int]] = []
        self._stop = threading.Event()
        self._reading = threading.Lock()
        self._looks = weakly(self.refresh), weakly(self._selected), weakly(self._stands)
        self.picture, self._seen = self._read(SHOWN)
        super().__init__(table=_packed(self.picture), cells=cell_spans(bench, self.program), graph=graph)
        bench.changes.observe(self._looks[0])
        bench.selection.observe(self._looks[1])
        self._follow()

    def lines(self) -> Sequence[Line]:
        """The listing, of `SHOWN` operators at most; or the graph."""
        if self.graph:
            return graph_lines(level(self.picture))
        return program_lines(self.picture, 0, SHOWN)

    def html(self) -> str:
        """The picture, of `SHOWN` operators at most; or the graph."""
        if self.graph:
            return graph_html(level(self.picture))
        return program_html(self.picture, limit=SHOWN)

    def refresh(self) -> None:
        """Reads the program again, if it has changed, and its debug session; deferred without a page.

        When what it shows is gone, the page says so and keeps what it has.
        """
        if not self._reading.acquire(blocking=False):
            return
        try:
            self._follow()
            partial = any(inner.left for block in self.picture.blocks for inner in block.inside())
            if not self._views and not partial:
                return
            found = program_of(self._bench, *self._named)
            numbers = [(placed.key, placed.cell.number) for placed in self._bench.cells]
            changed = self._seen != (id(found), found.version)
            if changed or partial:
                self.program = found
                self._follow()
                self.picture, self._seen = self._read()
                self.table = _packed(self.picture)
                if changed:
                    self.renew_still()
            if changed or numbers != self._numbers:
                self.cells, self._numbers = cell_spans(self._bench, self.program), numbers
        except Exception as error:  # what it shows may be an expression of the user's
            self.tell(str(error))
        finally:
            self._reading.release()

    def close(self) -> None:
        """Let go of everything; the page keeps what it shows."""
        if hasattr(self, "_looks"):
            self._stop.set()
            self._bench.changes.forget(self._looks[0])
            self._bench.selection.forget(self._looks[1])
            self._leave()
        super().close()

    # What the page asks for.

    def do_shown(self) -> None:
        """A page shows it."""
        self._views += 1
        self.refresh()
        self._selected(self._bench.selection.chosen)

    def do_hidden(self) -> None:
        """A page shows it no more."""
        self._views -= 1

    def do_select(self, block: int, index: int) -> None:
        """Select an operator, here and in all other widgets."""
        self._choose(Chosen(self.program, ((block, index),)))

    def do_select_variable(self, name: str) -> None:
        """Select a variable."""
        self._choose(Chosen(self.program, variable=name))

    def do_select_cell(self, title: str) -> None:
        """Select a cell, and the operators that it made."""
        spans: list[list[int]] = next((cell["spans"] for cell in self.cells if cell["title"] == title), [])
        ops = tuple((block, index) for block, first, last in spans for index in range(first, last + 1))
        self._choose(Chosen(self.program, ops, cell=title))

    def do_sheet(self, type: str, width: int) -> None:
        """Sends the documentation of an operator type."""
        self.send({"sheet": type, "lines": sheet_lines(read_op(type), width) if has_op(type) else []})

    def do_value(self, name: str) -> None:
        """Sends a summary of a variable's value."""

        def tell(found: TensorSummary | None, where: str) -> None:
            lines = [] if found is None else tensor_lines(found)
            self.send({"value": name, "lines": lines, "where": where})

        last_value(name, global_scope(), self._session, tell)

    def do_graph(self, span: str) -> None:
        """Draws a level of the program, or of a part of it, as a graph, in a separate thread."""
        self.do_cancel()
        self._graphs += 1
        stop = self._stop = threading.Event()
        threading.Thread(target=self._draw, args=(span, self._graphs, stop), daemon=True).start()

    def do_cancel(self) -> None:
        """Give up the graph that is being drawn."""
        self._stop.set()

    # How it is done.

    def _read(self, limit: int = 0) -> tuple[ProgramPicture, tuple[int, int]]:
        """The picture, and of which program and version it is."""
        seen = id(self.program), self.program.version  # before: what changes meanwhile is read again
        picture = picture_of(self._bench, *self._named, limit)
        if picture is None:
            raise NotFound("only programs, blocks and operators can be explored.", received=self._named[0])
        return picture, seen

    def _draw(self, span: str, number: int, stop: threading.Event) -> None:
        graph = drawn(self.picture, span, stop)
        if number == self._graphs and self.comm is not None:
            self.send({"graph": asdict(graph)})

    def _choose(self, chosen: Chosen) -> None:
        self._mine = True
        try:
            self._bench.selection.choose(chosen)
        finally:
            self._mine = False

    def _selected(self, chosen: Chosen | None) -> None:
        if self._mine or chosen is None or chosen.program is not self.program:
            return
        self.send({"chosen": {"ops": chosen.ops, "variable": chosen.variable, "cell": chosen.cell}})

    def _follow(self) -> None:
        """Reads the debug session of this program, if there is one."""
        session = current()
        if session is not None and (session.closed or session.program is not self.program):
            session = None
        if session is not self._session:
            self._leave()
            self._session = session
            if session is not None:
                session.post(Debugger.observe, self._looks[2])

    def _leave(self) -> None:
        if self._session is not None:
            with suppress(EnforceNotMet):  # it is closed
                self._session.post(Debugger.forget, self._looks[2])
            self._session = None
            self.stand = {}

    def _stands(self, snapshot: Snapshot) -> None:
        if self._session is not None:
            self.stand = stand_of(snapshot)


def _packed(picture: ProgramPicture) -> bytes:
    """A picture's table as JSON. Bytes travel as they are, where text would be quoted once more."""
    table = read_table(picture)
    plain = {field.name: getattr(table, field.name) for field in fields(ProgramTable)}
    return json.dumps(plain, separators=(",", ":")).encode()
