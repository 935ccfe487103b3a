"""The debugger panel built from ipywidgets alone, for front ends without custom widgets."""

from typing import Any

import ipywidgets

from fluidnb.debug.debugger import Debugger
from fluidnb.debug.session import Session
from fluidnb.debug.snapshot import Snapshot
from fluidnb.terminal.commands import run_command
from fluidnb.viz import plain
from fluidnb.viz.base.html import lines_html
from fluidnb.viz.base.styled_text import Line
from fluidnb.viz.session.html import session_html
from fluidnb.viz.session.panel_buttons import BUTTONS
from fluidnb.viz.session.panel_text import below_lines, panel_lines
from fluidnb_magics.jupyter.kernel_private import answer_anywhere
from fluidnb_magics.widgets.background import in_background
from fluidnb_magics.widgets.session_controls import SessionControls, error_text

_AROUND = 10  # operators before and after the next one


class PlainPanel(ipywidgets.VBox):  # type: ignore[misc]
    """Buttons, a time slider, the session's position, its scope, and a line for every other command."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.controls = SessionControls(session, lambda problem: self.report(problem))
        self.buttons = {
            button.word: ipywidgets.Button(
                description=f"{button.icon} {button.label}", tooltip=button.tip, layout={"width": "auto"}
            )
            for button in BUTTONS
        }
        self.time = ipywidgets.IntSlider(description="step", max=0, continuous_update=False, layout={"width": "auto"})
        self.line = ipywidgets.Text(
            placeholder="a command: break op mul, watch loss, print h, edit h = 0, until loss",
            continuous_update=False, layout={"width": "auto"},
        )  # fmt: skip
        self.where, self.output = ipywidgets.HTML(), ipywidgets.HTML()
        rows = ipywidgets.HBox(list(self.buttons.values()), layout={"flex_flow": "row wrap"})
        super().__init__([rows, self.time, self.where, self.line, self.output])
        for word, button in self.buttons.items():
            button.on_click(lambda _, word=word: self.controls.do_move(word))
        self.time.observe(self._dragged, "value")
        self.line.observe(self._typed, "value")
        for widget in (*self.buttons.values(), self.time, self.line):
            answer_anywhere(widget)
        if not session.closed:
            self.controls.post(Debugger.observe, self._moved)

    def report(self, problem: str) -> None:
        """Show the text of an error."""
        self._print([[(row, "warn")] for row in problem.splitlines()])

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs) or {}
        html = session_html(self.session, _AROUND) + lines_html(below_lines(self.session))
        return {**bundle, "text/plain": plain(panel_lines(self.session)), "text/html": html}

    def _moved(self, snapshot: Snapshot) -> None:
        """Observer of the session, in its thread."""
        html = session_html(self.session, _AROUND)
        if snapshot.state != "running":
            html += lines_html(below_lines(self.session))
        self.where.value = html
        for button in BUTTONS:
            runs = snapshot.state == "running"
            allowed = runs if button.action is None else not runs and (snapshot.can_back or not button.back)
            self.buttons[button.word].disabled = snapshot.closed or snapshot.state == "idle" or not allowed
        with self.time.hold_trait_notifications():
            self.time.max, self.time.value = max(snapshot.reached, snapshot.at), snapshot.at
        if snapshot.closed:
            self._print([[("This session has ended; its last state is shown.", "")]])

    def _dragged(self, change: Any) -> None:
        if change["new"] != self.session.snapshot.at and not self.session.closed:
            self.controls.do_go(change["new"])

    def _typed(self, change: Any) -> None:
        if change["new"].strip():
            # a command waits for its result, and a callback must not
            in_background(self._run, change["new"])
            self.line.value = ""

    def _run(self, line: str) -> None:
        try:
            self._print(run_command(self.session, line))
        except Exception as error:
            self.report(error_text(error))

    def _print(self, lines: list[Line]) -> None:
        self.output.value = lines_html(lines)
