"""The debugger panel: a session with its program, scopes, watches and breakpoints, and buttons that walk both ways."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import traitlets

from fluidnb import where
from fluidnb.debug.debugger import Debugger
from fluidnb.debug.session import Session
from fluidnb.debug.snapshot import Snapshot
from fluidnb.debug.view import has_value
from fluidnb.errors import FluidError
from fluidnb.values.tensor import LoDTensor
from fluidnb.viz.base.html import lines_html
from fluidnb.viz.base.styled_text import Line
from fluidnb.viz.session.difference import Difference, difference, value_at
from fluidnb.viz.session.html import session_html
from fluidnb.viz.session.panel_model import SessionPosition, read_breakpoints, read_position
from fluidnb.viz.session.panel_text import below_lines, panel_lines
from fluidnb.viz.session.panel_values import Window, find_value, read_details, read_lines, read_window
from fluidnb.viz.values.tensor_window import View
from fluidnb_magics.session.change_notifier import ChangeNotifier
from fluidnb_magics.widgets.panel_listing import PanelListing
from fluidnb_magics.widgets.panel_stop_handler import DEAF, PanelStopHandler
from fluidnb_magics.widgets.session_controls import BUTTONS, SessionControls
from fluidnb_magics.widgets.widget import NotebookWidget, script, style

#: Operators before and after the next one in the face that stays when the kernel is gone.
_AROUND = 10
#: Seconds after which that face follows.
_STILL = 0.5
#: What is seen of a tensor at first.
_VIEW = View(rows=12, columns=10)


class Panel(NotebookWidget):
    """The panel of a debug session.

    What it shows is read in the session's own thread, each time that it stands, and told to the page as plain data.

    Args:
        session: the session.
        changes: tells when a cell has run, for cells change programs; None where nobody does.
        cell_id: title of a cell -> the front end's id of it, empty if unknown; the page marks the line there.

    Attributes:
        session: the session.
    """

    _esm = script("notebook", "panel_parts", "panel_values", "panel")
    _css = style("panel")

    buttons: Any = traitlets.List().tag(sync=True)
    listing: Any = traitlets.Unicode("{}").tag(sync=True)
    stand: Any = traitlets.Dict().tag(sync=True)
    stops: Any = traitlets.List().tag(sync=True)
    watches: Any = traitlets.List().tag(sync=True)
    values: Any = traitlets.Dict().tag(sync=True)
    scope: Any = traitlets.Dict().tag(sync=True)
    opened: Any = traitlets.Dict(allow_none=True, default_value=None).tag(sync=True)
    cell: Any = traitlets.Unicode().tag(sync=True)
    note: Any = traitlets.Unicode().tag(sync=True)
    deaf: Any = traitlets.Unicode().tag(sync=True)
    waits: Any = traitlets.Bool(False).tag(sync=True)
    ended: Any = traitlets.Bool(False).tag(sync=True)

    def __init__(
        self, session: Session, changes: ChangeNotifier | None = None, cell_id: Callable[[str], str] = lambda title: ""
    ) -> None:
        super().__init__()
        self.session = session
        self.controls = SessionControls(session, lambda problem: self.tell(problem))
        self.handlers = (self, self.controls)
        self.buttons = [button.data for button in BUTTONS]
        self._telling = threading.RLock()
        self._window, self._name, self._frame, self._view = Window(), "", -1, _VIEW
        self._pages, self._asleep = 0, False
        self._renewing = threading.Event()
        self._program = PanelListing(session)
        self._stop_handler: PanelStopHandler | None = None
        self._changes = changes
        self._cell_id = cell_id
        self._against: int | None = None
        self._old: tuple[Any, Any] | None = None  # what is compared, and its value at the other step
        if not session.closed:
            self._stop_handler = PanelStopHandler.join(self, session)
            observing = session.post(Debugger.observe, self._look)
            if session.snapshot.state != "running":
                observing.result()
        if changes is not None:
            changes.observe(self._cell_ran)
        self._tell_program()

    def close(self) -> None:
        """End the widget; the session stays."""
        if self._changes is not None:
            self._changes.forget(self._cell_ran)
        if self._stop_handler is not None:
            self._stop_handler.leave(self)
        if not self.session.closed:
            self.session.post(Debugger.forget, self._look)
        super().close()

    def lines(self) -> Sequence[Line]:
        """See `NotebookWidget`."""
        return panel_lines(self.session)

    def html(self) -> str:
        """See `NotebookWidget`."""
        return session_html(self.session, _AROUND) + lines_html(below_lines(self.session))

    # ---- what the page asks, beside `SessionControls`

    def do_shown(self) -> None:
        """A page shows the panel."""
        self._pages += 1
        if self._asleep:
            self._asleep = False
            self._read_again()

    def do_hidden(self) -> None:
        """A page shows it no more; while none does, nothing is read."""
        self._pages -= 1
        self._asleep = self._pages <= 0

    def do_frame(self, frame: int) -> None:
        """Show the variables of another scope.

        Args:
            frame: 0 for the outermost; -1 for the innermost, whichever that is.
        """
        self._window = Window(frame, 0, self._window.count, self._window.part)
        self._read_again()

    def do_window(self, first: int, count: int, part: str = "") -> None:
        """Show other variables of the scope.

        Args:
            first: the first one seen.
            count: how many.
            part: only those whose name has this in it.
        """
        self._window = Window(self._window.frame, first, count, part)
        self._read_again()

    def do_open(self, name: str, frame: int = -1) -> None:
        """Opens a variable in detail.

        Args:
            name: the variable; empty for none.
            frame: the scope from which it is seen.
        """
        self._name, self._frame, self._view, self._against = name, frame, _VIEW, None
        self._read_again()

    def do_against(self, step: int | None) -> None:
        """Compare the variable that is open with its value at another step.

        Args:
            step: the count of steps; None compares no more.
        """
        self._against = step
        self._read_again()

    def do_view(
        self, at: Sequence[int], row: int, column: int, rows: int, columns: int, axes: Sequence[int] | None = None
    ) -> None:
        """Shows another part of the open variable.

        Args:
            at: an index for each axis.
            row: the first row.
            column: the first column.
            rows: how many rows.
            columns: how many columns.
            axes: the axes that are rows and columns; None for the last two.
        """
        chosen = None if axes is None else (int(axes[0]), int(axes[1]))
        self._view = View(chosen, tuple(at), row, column, rows, columns)
        self._read_again()

    def do_answer(self) -> None:
        """The page hears: a cell may wait for it."""
        if self._stop_handler is not None:
            self._stop_handler.heard()

    def do_leave(self) -> None:
        """Ends the cell that waits for the panel, and leaves its run paused."""
        if self._stop_handler is not None:
            self._stop_handler.let_go()

    # ---- `WaitingPanel`

    def ask_page(self) -> None:
        """See `WaitingPanel`."""
        self.send({"ask": True})

    def say_waiting(self, waits: bool) -> None:
        """See `WaitingPanel`."""
        with self._telling:
            self.waits = waits

    def say_deaf(self, deaf: bool) -> None:
        """See `WaitingPanel`."""
        with self._telling:
            self.deaf = DEAF if deaf else ""

    # ---- how it follows the session

    def _look(self, snapshot: Snapshot) -> None:
        """Observes the session, in its thread."""
        if self._stop_handler is not None:
            self._stop_handler.moved()
        if snapshot.closed:
            self._tell_program()
        elif self._asleep:
            return
        elif snapshot.state == "idle":
            self._tell(stand=asdict(SessionPosition(snapshot.state, snapshot.reason)))
            self._tell_settings(None)
        else:
            self.session.inspect(self._read)

    def _read(self, debugger: Debugger) -> None:
        """Read what is shown, in the session's thread."""
        snapshot = debugger.snapshot
        stand = read_position(debugger, snapshot)
        if snapshot.state == "running":
            self._tell(stand=asdict(stand))
            return
        plan = debugger.tape.machine.plan
        self._program.follow(plan)
        with self._telling, self.hold_sync():
            self._tell_program()
            self._tell_settings(plan)
            self.scope = asdict(read_window(debugger, self._window))
            self.values = {
                "wrote": [asdict(line) for line in read_lines(debugger, stand.wrote)],
                "reads": [asdict(line) for line in read_lines(debugger, stand.reads)],
            }
            opened = read_details(debugger, self._name, self._frame, self._view) if self._name else None
            self.opened = None if opened is None else {**asdict(opened), "difference": self._difference(debugger)}
            self.cell = self._cell_of(debugger)
            self.stand = asdict(stand)
        self._renew_soon()

    def _difference(self, debugger: Debugger) -> dict[str, Any] | None:
        """The variable that is open, compared with its value at the other step."""
        at, value = self._against, find_value(debugger, self._name, self._frame)
        if at is None or type(value) is not LoDTensor or not has_value(value):
            return None
        asked = self._name, self._frame, at
        if self._old is None or self._old[0] != asked or debugger.tape.at <= at:
            try:
                self._old = asked, value_at(debugger, self._name, self._frame, at)
            except FluidError as error:
                return asdict(Difference(at, str(error).strip().splitlines()[0]))
        found = difference(value.array, self._old[1], at, self._view)
        return {**asdict(found), "summary": found.summary}

    def _cell_of(self, debugger: Debugger) -> str:
        """The front end's id of the cell that appended the operator that comes next."""
        op = debugger.snapshot.op
        title = where.cell_names.get(op.file, "") if op is not None else ""
        return self._cell_id(title) if title else ""

    def _renew_soon(self) -> None:
        """Updates the static rendering, once after a quick series of changes."""
        if not self._renewing.is_set():
            self._renewing.set()
            later = threading.Timer(_STILL, self._renew)
            later.daemon = True
            later.start()

    def _renew(self) -> None:
        self._renewing.clear()
        if not self.session.closed and self.session.snapshot.state != "running":
            self.renew_still()

    def _read_again(self) -> None:
        if not self.session.closed and self.session.snapshot.state != "idle":
            self.controls.post(self._read)

    def _cell_ran(self) -> None:
        """Observes cells: they may have changed the program."""
        self._program.look_again()
        self._tell_program()

    def _tell_program(self) -> None:
        program = self._program
        self._tell(listing=program.text, note=program.note, ended=self.session.snapshot.closed)

    def _tell_settings(self, plan: Any) -> None:
        stops = [asdict(stop) for stop in read_breakpoints(self.session.breakpoints, plan)]
        self._tell(stops=stops, watches=[list(row) for row in self.session.snapshot.watches])

    def _tell(self, **traits: Any) -> None:
        with self._telling, self.hold_sync():
            for name, value in traits.items():
                self.set_trait(name, value)
