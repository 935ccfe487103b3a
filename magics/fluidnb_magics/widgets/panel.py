"""The debugger panel: a session with its program, scopes, watches and breakpoints, and buttons for both directions."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import traitlets

from fluidnb.debug.debugger import Debugger
from fluidnb.debug.session import Role, Session
from fluidnb.debug.snapshot import Snapshot
from fluidnb.debug.view import has_value
from fluidnb.distributed.attachment import attach, role_keys, running
from fluidnb.errors import FluidError
from fluidnb.utils.source_location import cell_names
from fluidnb.values.tensor import LoDTensor
from fluidnb.viz.base.html import lines_html
from fluidnb.viz.base.styled_text import Line
from fluidnb.viz.session.difference import Difference, difference, value_at
from fluidnb.viz.session.html import session_html
from fluidnb.viz.session.operator_code import read_code
from fluidnb.viz.session.panel_buttons import BUTTONS
from fluidnb.viz.session.panel_model import SessionPosition, read_breakpoints, read_position
from fluidnb.viz.session.panel_text import below_lines, panel_lines
from fluidnb.viz.session.panel_values import Window, find_value, read_details, read_lines, read_window
from fluidnb.viz.values.tensor_window import View
from fluidnb_magics.session.change_notifier import ChangeNotifier
from fluidnb_magics.widgets.background import in_background
from fluidnb_magics.widgets.panel_listing import PanelListing
from fluidnb_magics.widgets.panel_stop_handler import UNANSWERED, PanelStopHandler
from fluidnb_magics.widgets.role_panel import RoleFollower
from fluidnb_magics.widgets.session_controls import SessionControls, error_text
from fluidnb_magics.widgets.widget import NotebookWidget, script, style

_AROUND = 10  # operators before and after the next one in the static rendering
_DELAY = 0.5  # seconds after which the static rendering follows
_VIEW = View(rows=12, columns=10)  # the part of a tensor that is shown first
#: Requests that are handled here, wherever the session is.
_HERE = ("attach", "shown", "hidden", "answer", "leave")


class Panel(NotebookWidget):
    """The panel of a debug session; it reads in the session's thread, at each stop, and sends the page plain data."""

    _esm = script("notebook", "panel_parts", "panel_values", "panel")
    _css = style("panel")

    buttons: Any = traitlets.List().tag(sync=True)
    listing: Any = traitlets.Unicode("{}").tag(sync=True)
    position: Any = traitlets.Dict().tag(sync=True)
    stops: Any = traitlets.List().tag(sync=True)
    watches: Any = traitlets.List().tag(sync=True)
    values: Any = traitlets.Dict().tag(sync=True)
    scope: Any = traitlets.Dict().tag(sync=True)
    opened: Any = traitlets.Dict(allow_none=True, default_value=None).tag(sync=True)
    code: Any = traitlets.Unicode().tag(sync=True)  # C functions of the next operator, while they are shown
    cell: Any = traitlets.Unicode().tag(sync=True)
    note: Any = traitlets.Unicode().tag(sync=True)
    unanswered: Any = traitlets.Unicode().tag(sync=True)
    waits: Any = traitlets.Bool(False).tag(sync=True)
    ended: Any = traitlets.Bool(False).tag(sync=True)
    roles: Any = traitlets.List().tag(sync=True)  # of the training that runs
    role: Any = traitlets.Unicode().tag(sync=True)  # the one that the session is in

    def __init__(
        self, session: Session, changes: ChangeNotifier | None = None, cell_id: Callable[[str], str] = lambda title: ""
    ) -> None:
        super().__init__()
        self.session = session
        self.controls = SessionControls(session, lambda problem: self.report(problem))
        self.handlers = (self, self.controls)
        self.buttons = [button.data for button in BUTTONS]
        self._sending = threading.RLock()
        self._window, self._name, self._frame, self._view = Window(), "", -1, _VIEW
        self._pages, self.asleep = 0, False  # asleep: no page shows it
        self._follower: RoleFollower | None = None
        self._shows_code = False
        self._renewing = threading.Event()
        self._program = PanelListing(session)
        self._stop_handler: PanelStopHandler | None = None
        self._changes = changes
        self._cell_id = cell_id
        self._against: int | None = None
        self._old: tuple[Any, Any] | None = None  # (variable, frame, step) that is compared, and its value there
        if not session.closed:
            self._stop_handler = PanelStopHandler.join(self, session)
            observing = session.post(Debugger.observe, self._moved)
            if session.snapshot.state != "running":
                observing.result()
        if changes is not None:
            changes.observe(self._cell_ran)
        self._send_program()
        self._follow_role()

    def close(self) -> None:
        """End the widget; the session stays."""
        if self._changes is not None:
            self._changes.forget(self._cell_ran)
        if self._stop_handler is not None:
            self._stop_handler.leave(self)
        if not self.session.closed:
            self.session.post(Debugger.forget, self._moved)
        super().close()

    def lines(self) -> Sequence[Line]:
        there, session = self.session.there, self.session
        lines: Sequence[Line] = panel_lines(session) if there is None else there(panel_lines)
        return lines

    def html(self) -> str:
        there, session = self.session.there, self.session
        below = below_lines(session) if there is None else there(below_lines)
        return session_html(session, _AROUND) + lines_html(below)

    # ---- requests of the page, beside `SessionControls`

    def handle(self, request: dict[str, Any]) -> None:
        """Handle a request here, or in the process of the role that the session is in."""
        self._follow_role()
        if self._follower is None or request.get("do") in _HERE:
            super().handle(request)
        else:
            self._follower.post(request)

    def do_shown(self) -> None:
        self._pages += 1
        if self.asleep:
            self.asleep = False
            self._read_again()

    def do_hidden(self) -> None:
        """A page does not show it any more; while none does, nothing is read."""
        self._pages -= 1
        self.asleep = self._pages <= 0

    def do_frame(self, frame: int) -> None:
        """Show the variables of another scope."""
        self._window = Window(frame, 0, self._window.count, self._window.part)
        self._read_again()

    def do_window(self, first: int, count: int, part: str = "") -> None:
        """Show other variables of the scope."""
        self._window = Window(self._window.frame, first, count, part)
        self._read_again()

    def do_open(self, name: str, frame: int = -1) -> None:
        """Show a variable in detail; an empty name for none. One that is open keeps its view."""
        if (name, frame) != (self._name, self._frame):
            self._name, self._frame, self._view, self._against = name, frame, _VIEW, None
        self._read_again()

    def do_against(self, step: int | None) -> None:
        """Compare the open variable with its value at another step; None for no comparison."""
        self._against = step
        self._read_again()

    def do_code(self, shown: bool) -> None:
        """Show the next operator's C functions, or do not."""
        self._shows_code = shown
        self._read_again()

    def do_view(
        self, at: Sequence[int], row: int, column: int, rows: int, columns: int, axes: Sequence[int] | None = None
    ) -> None:
        """Shows another part of the open variable; ``axes`` are rows and columns (None: the last two)."""
        chosen = None if axes is None else (int(axes[0]), int(axes[1]))
        self._view = View(chosen, tuple(at), row, column, rows, columns)
        self._read_again()

    def do_attach(self, role: str) -> None:
        """Go into a role of the training that runs; a thread waits until it has stopped there."""

        def go() -> None:
            try:
                attach(self.session, role)
                self._follow_role()
            except Exception as error:
                self.report(error_text(error))

        in_background(go)

    def do_answer(self) -> None:
        """The page responds: a cell may wait for it."""
        if self._stop_handler is not None:
            self._stop_handler.answered()

    def do_leave(self) -> None:
        """End the cell that waits for the panel, and leave its run paused."""
        if self._stop_handler is not None:
            self._stop_handler.end_wait()

    # ---- `WaitingPanel`

    def ask_page(self) -> None:
        self.send({"ask": True})

    def say_waiting(self, waits: bool) -> None:
        with self._sending:
            self.waits = waits

    def say_unanswered(self, unanswered: bool) -> None:
        with self._sending:
            self.unanswered = UNANSWERED if unanswered else ""

    # ---- roles in other processes

    def _follow_role(self) -> None:
        """Show the panel in the process of the role that the session is in, if that is another one."""
        role = self.session.role
        if role is None or role.there is None:
            self._follower = None
        elif self._follower is None or self._follower.role is not role:
            self._follower = RoleFollower(self, role)

    def show_role(self, traits: dict[str, Any]) -> None:
        """Show traits of the panel in the process of a role."""
        role = "" if self.session.role is None else self.session.role.name
        self._push(**traits, roles=list(role_keys(running[-1].plan)) if running else [], role=role)
        self._renew_soon()

    def role_left(self, role: Role) -> None:
        """The session is not in a role any more whose process showed its state."""
        if self._follower is not None and self._follower.role is role:
            self._follower = None
        if self.session.role is None or self.session.role is role:
            snapshot = self.session.snapshot
            self._push(position=asdict(SessionPosition(snapshot.state, snapshot.reason)))
            self._send_settings(None)
            self._send_program()

    # ---- observers

    def _moved(self, snapshot: Snapshot) -> None:
        """Observer of the session, in its thread."""
        if self._stop_handler is not None:
            self._stop_handler.moved()
        if snapshot.closed:
            self._send_program()
        elif self.asleep:
            return
        elif snapshot.state == "idle":
            self._push(position=asdict(SessionPosition(snapshot.state, snapshot.reason)))
            self._send_settings(None)
        else:
            self.session.inspect(self._read)

    def _read(self, debugger: Debugger) -> None:
        """Update the page, in the session's thread."""
        snapshot = debugger.snapshot
        position = read_position(debugger, snapshot)
        if snapshot.state == "running":
            self._push(position=asdict(position))
            return
        lowered = debugger.tape.interpreter.lowered
        self._program.follow(lowered)
        with self._sending, self.hold_sync():
            self._send_program()
            self._send_settings(lowered)
            self.scope = asdict(read_window(debugger, self._window))
            self.values = {
                "wrote": [asdict(line) for line in read_lines(debugger, position.wrote)],
                "reads": [asdict(line) for line in read_lines(debugger, position.reads)],
            }
            self.code = self._code(debugger) if self._shows_code else ""
            opened = read_details(debugger, self._name, self._frame, self._view) if self._name else None
            self.opened = None if opened is None else {**asdict(opened), "difference": self._difference(debugger)}
            title = "" if snapshot.op is None else cell_names.get(snapshot.op.file, "")
            self.cell = self._cell_id(title) if title else ""  # the cell that appended the next operator
            self.position = asdict(position)
        self._renew_soon()

    def _code(self, debugger: Debugger) -> str:
        """The C functions of the next operator, or why there are none."""
        try:
            return read_code(debugger, self.session.program).text
        except FluidError as error:
            return str(error).strip().splitlines()[0]

    def _difference(self, debugger: Debugger) -> dict[str, Any] | None:
        """The open variable, compared with its value at the other step."""
        at, value = self._against, find_value(debugger, self._name, self._frame)
        if at is None or type(value) is not LoDTensor or not has_value(value):
            return None
        key = self._name, self._frame, at
        if self._old is None or self._old[0] != key or debugger.tape.at <= at:
            try:
                self._old = key, value_at(debugger, self._name, self._frame, at)
            except FluidError as error:
                return asdict(Difference(at, str(error).strip().splitlines()[0]))
        changes = difference(value.array, self._old[1], at, self._view)
        return {**asdict(changes), "summary": changes.summary}

    def _renew_soon(self) -> None:
        """Update the static rendering, once after a quick series of changes."""
        if not self._renewing.is_set():
            self._renewing.set()
            in_background(self._renew, delay=_DELAY)

    def _renew(self) -> None:
        self._renewing.clear()
        if not self.session.closed and self.session.snapshot.state != "running":
            self.update_static()

    def _read_again(self) -> None:
        if not self.session.closed and self.session.snapshot.state != "idle":
            self.controls.post(self._read)

    def _cell_ran(self) -> None:
        self._follow_role()
        if self._follower is None:
            self._program.update()
            self._send_program()

    def _send_program(self) -> None:
        program = self._program
        self._push(listing=program.text, note=program.note, ended=self.session.snapshot.closed)

    def _send_settings(self, lowered: Any) -> None:
        stops = [asdict(stop) for stop in read_breakpoints(self.session.breakpoints, lowered)]
        names = list(role_keys(running[-1].plan)) if running else []
        role = "" if self.session.role is None else self.session.role.name
        self._push(roles=names, role=role)
        self._push(stops=stops, watches=[list(row) for row in self.session.snapshot.watches])

    def _push(self, **traits: Any) -> None:
        with self._sending, self.hold_sync():
            for name, value in traits.items():
                self.set_trait(name, value)
