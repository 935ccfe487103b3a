"""The program explorer: a program as a foldable listing, with search, links and graphs; it follows the program."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any
from weakref import WeakMethod

from traitlets import Bool, Bytes, Dict, List

from fluidnb import viz
from fluidnb.debug.debugger import Debugger
from fluidnb.debug.session import Session, current
from fluidnb.debug.snapshot import Snapshot
from fluidnb.errors import EnforceNotMet, FluidError, NotFound
from fluidnb.op import has_op
from fluidnb.program import Program
from fluidnb.program.origin import cell_key
from fluidnb.runtime import global_scope
from fluidnb.viz.base.styled_text import Line
from fluidnb.viz.base.svg import new_uid
from fluidnb.viz.program.html import folding_html
from fluidnb.viz.program.table import table_json
from fluidnb.viz.session.values import last_value
from fluidnb_magics.session.program_parts import picture_of, program_of
from fluidnb_magics.session.selection import Chosen
from fluidnb_magics.session.workbench import Workbench
from fluidnb_magics.widgets.background import in_background
from fluidnb_magics.widgets.widget import NotebookWidget, script, style

SHOWN = 200  # operators that are shown before the rest is read, and in the static renderings


@dataclass(frozen=True, slots=True)
class Graph:
    """A drawn graph."""

    span: str = ""  # the part of the program; empty for all of it
    svg: str = ""  # the picture; empty if there is none
    why: str = ""  # the reason why it is a listing, or why there is none
    counts: str = ""  # the counts of its operators, as text
    uid: str = ""  # start of all ids in the picture
    # id of a node that stands for several operators -> the part to open
    folds: dict[str, str] = field(default_factory=dict)


class Explorer(NotebookWidget):
    """A program explorer; ``picture`` has only the beginning of the program until the cell that shows it has ended."""

    _esm = script("explorer_program", "explorer_card", "explorer")
    _css = style("explorer")
    table = Bytes().tag(sync=True)
    cells: Any = List().tag(sync=True)  # the cells that built it; see `cell_spans`
    position = Dict().tag(sync=True)  # of a debug session of the program; empty without one
    graph: Any = Bool(False).tag(sync=True)  # shows the graph first, not the listing

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
        self._observers = weakly(self.refresh), weakly(self._selected), weakly(self._moved)
        self.picture, self._seen = self._read(SHOWN)
        super().__init__(table=table_json(self.picture), cells=cell_spans(bench, self.program), graph=graph)
        bench.changes.observe(self._observers[0])
        bench.selection.observe(self._observers[1])
        self._follow()

    def lines(self) -> Sequence[Line]:
        """The listing, of `SHOWN` operators at most; or the graph."""
        if self.graph:
            return viz.graph_lines(viz.level(self.picture))
        return viz.program_lines(self.picture, 0, SHOWN)

    def html(self) -> str:
        if self.graph:
            return viz.graph_html(viz.level(self.picture))
        return folding_html(viz.select(self.picture, fold=["layers"]), SHOWN)

    def refresh(self) -> None:
        """Read the program again, if it has changed, and its debug session; deferred without a page."""
        if not self._reading.acquire(blocking=False):
            return
        try:
            self._follow()
            partial = any(inner.left for block in self.picture.blocks for inner in block.inside())
            if not self._views and not partial:
                return
            program = program_of(self._bench, *self._named)
            numbers = [(placed.key, placed.cell.number) for placed in self._bench.cells]
            changed = self._seen != (id(program), program.version)
            if changed or partial:
                self.program = program
                self._follow()
                self.picture, self._seen = self._read()
                self.table = table_json(self.picture)
                if changed:
                    self.update_static()
            if changed or numbers != self._numbers:
                self.cells, self._numbers = cell_spans(self._bench, self.program), numbers
        except Exception as error:  # what it shows may be an expression of the user's
            self.report(str(error))
        finally:
            self._reading.release()

    def close(self) -> None:
        """Remove all observers; the page keeps its content."""
        if hasattr(self, "_observers"):
            self._stop.set()
            self._bench.changes.forget(self._observers[0])
            self._bench.selection.forget(self._observers[1])
            self._leave()
        super().close()

    # Requests of the page.

    def do_shown(self) -> None:
        self._views += 1
        self.refresh()
        self._selected(self._bench.selection.chosen)

    def do_hidden(self) -> None:
        self._views -= 1

    def do_select(self, block: int, index: int) -> None:
        """Select an operator, here and in all other widgets."""
        self._choose(Chosen(self.program, ((block, index),)))

    def do_select_variable(self, name: str) -> None:
        self._choose(Chosen(self.program, variable=name))

    def do_select_cell(self, title: str) -> None:
        """Select a cell, and the operators that it appended."""
        spans: list[list[int]] = next((cell["spans"] for cell in self.cells if cell["title"] == title), [])
        ops = tuple((block, index) for block, first, last in spans for index in range(first, last + 1))
        self._choose(Chosen(self.program, ops, cell=title))

    def do_sheet(self, type: str, width: int) -> None:
        """Send the documentation of an operator type."""
        self.send({"sheet": type, "lines": viz.sheet_lines(viz.read_op(type), width) if has_op(type) else []})

    def do_value(self, name: str) -> None:
        """Send a summary of a variable's value."""

        def reply(summary: viz.TensorSummary | None, where: str) -> None:
            self.send({"value": name, "lines": [] if summary is None else viz.tensor_lines(summary), "where": where})

        last_value(name, global_scope(), self._session, reply)

    def do_graph(self, span: str) -> None:
        """Draw a level of the program, or of a part of it, as a graph, in a separate thread."""
        self.do_cancel()
        self._graphs += 1
        stop = self._stop = threading.Event()
        in_background(self._draw, span, self._graphs, stop)

    def do_cancel(self) -> None:
        """Cancel the graph that is being drawn."""
        self._stop.set()

    # Helpers.

    def _read(self, limit: int = 0) -> tuple[viz.ProgramPicture, tuple[int, int]]:
        """The picture, and the program and version that it shows."""
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
        session = current()
        if session is not None and (session.closed or session.program is not self.program):
            session = None
        if session is not self._session:
            self._leave()
            self._session = session
            if session is not None:
                session.post(Debugger.observe, self._observers[2])

    def _leave(self) -> None:
        if self._session is not None:
            with suppress(EnforceNotMet):  # it is closed
                self._session.post(Debugger.forget, self._observers[2])
            self._session = None
            self.position = {}

    def _moved(self, snapshot: Snapshot) -> None:
        if self._session is not None:
            self.position = position_of(snapshot)


def drawn(picture: viz.ProgramPicture, span: str, stop: threading.Event) -> Graph:
    """A level of a program, or of a part of it, as a graph; where Graphviz gives none, as a listing."""
    try:
        shown = viz.level(viz.part(picture, span) if span else picture)
    except FluidError as error:
        return Graph(span, why=str(error))
    uid = new_uid()
    layout = viz.dot_svg(shown, uid, stop=stop)
    if stop.is_set():
        return Graph(span, why=layout.why)
    ops = [op for block in shown.blocks for _, op in block.walk()]
    folds = {}  # of each node that stands for several operators, those inside it
    for op in ops:
        if op.hides:
            folds[f"{uid}op_{op.block}_{op.index}"] = f"{op.block}:{op.hides[0].index}-{op.hides[-1].index}"
        elif op.folded:
            folds[f"{uid}op_{op.block}_{op.index}"] = str(op.folded[0].index)
    return Graph(span, layout.svg or viz.program_svg(shown, uid), layout.why, shown.counts, uid, folds)


def weakly(method: Callable[..., Any]) -> Callable[..., None]:
    """A method as a function that does not keep its object alive, and does nothing when that is gone."""
    weak = WeakMethod(method)

    def call(*args: Any) -> None:
        if (strong := weak()) is not None:
            strong(*args)

    return call


def cell_spans(bench: Workbench, program: Program) -> list[dict[str, Any]]:
    """The cells that built a program: title, number of the prompt, spans of operators as [block, first, last]."""
    spans: dict[Any, list[list[int]]] = {}
    for block in program.desc.blocks:
        before = None
        for index, op in enumerate(block.ops):
            key = cell_key(getattr(op.view, "origin", None))
            if key is not None and key == before:
                spans[key][-1][2] = index
            elif key is not None:
                spans.setdefault(key, []).append([block.idx, index, index])
            before = key
    return [
        {"title": placed.title, "number": placed.cell.number, "spans": spans[placed.key]}
        for placed in bench.cells
        if placed.key in spans
    ]


def position_of(snapshot: Snapshot) -> dict[str, Any]:
    """The position of a debug session, as plain data; operators are [block, index]."""
    op = snapshot.op
    return {
        "state": snapshot.state,
        "op": None if op is None else [op.block, op.index],
        "frames": [[frame.block, frame.pc, frame.iteration] for frame in snapshot.frames],
        "text": snapshot.text,
    }
