"""The controls of a debugger panel: its buttons, breakpoints, watches and edits, posted to the session."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Concatenate, ParamSpec, TypeVar

from fluidnb.debug.breakpoints import parse
from fluidnb.debug.debugger import Debugger
from fluidnb.debug.session import Session
from fluidnb.errors import EnforceNotMet, FluidError, NotFound, OpValueError
from fluidnb.viz.session.panel_buttons import BUTTONS

P = ParamSpec("P")
T = TypeVar("T")


_BY_WORD = {button.word: button for button in BUTTONS}


class SessionControls:
    """Commands that a page sends to a debug session; a call posts a request and never waits for the session."""

    def __init__(self, session: Session, report: Callable[[str], None]) -> None:
        self._session, self._report = session, report
        self._lock = threading.Lock()
        self._goal: int | None = None  # the step to go to

    def do_move(self, word: str) -> None:
        """Press a button."""
        button = _BY_WORD.get(word)
        if button is None:
            raise NotFound(f"The panel has no button {word}.", expected=", ".join(_BY_WORD), received=word)
        if button.action is None:
            self._session.pause()
        else:
            self.post(button.action)

    def do_go(self, at: int) -> None:
        """Go to a step, backwards or forwards; of several requests while one is unfinished, the last one counts."""
        with self._lock:
            goes, self._goal = self._goal is not None, at
        if not goes:
            self._go(at)

    def do_until(self, block: int, index: int) -> None:
        """Run to an operator, once."""
        self.post(Debugger.run_to, parse(f"at {block}:{index}"))

    def do_mark(self, block: int, index: int) -> None:
        """Set a breakpoint at an operator, or remove the one that is there."""
        text = f"at {block}:{index}"
        there = [b.number for b in self._session.breakpoints if b.text == text]
        for number in there:
            self.post(Debugger.clear_breakpoints, number)
        if not there:
            self.post(Debugger.add_breakpoint, parse(text))

    def do_break(self, text: str) -> None:
        """Adds a breakpoint."""
        if not text.strip():
            raise OpValueError("There is no place to stop.", expected="op mul, var loss, when loss.mean() > 3, ...")
        self.post(Debugger.add_breakpoint, parse(text))

    def do_clear(self, number: int) -> None:
        """Removes a breakpoint."""
        self.post(Debugger.clear_breakpoints, number)

    def do_watch(self, text: str) -> None:
        """Evaluate an expression at every stop."""
        if text.strip():
            self._session.check_watch(text.strip())
            self.post(Debugger.watch, text.strip())

    def do_unwatch(self, text: str) -> None:
        """Removes a watch."""
        self.post(Debugger.unwatch, text)

    def do_edit(self, name: str, text: str, frame: int = -1) -> None:
        """Sets a variable as seen from a scope (0: the outermost, -1: the innermost); stepping back undoes it."""
        if self._session.snapshot.state == "running":
            raise EnforceNotMet("The program runs.", hint="pause it, then give the variable other values.")
        if not text.strip():
            raise OpValueError("There is no value.", expected="a number, or an expression", received="nothing")
        self.post(_edit, name, text, frame, self._session.around)

    def _go(self, at: int) -> None:
        try:
            self.post(Debugger.go, at).add_done_callback(lambda _: self._arrived(at))
        except FluidError:
            self._goal = None
            raise

    def _arrived(self, at: int) -> None:
        with self._lock:
            goal = self._goal
            if goal == at or self._session.closed:
                goal = self._goal = None
        if goal is not None:
            self._go(goal)

    def post(self, request: Callable[Concatenate[Debugger, P], T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Post a request to the session; its error is reported."""
        future = self._session.post(request, *args, **kwargs)
        future.add_done_callback(self._finished)
        return future

    def _finished(self, future: Future[Any]) -> None:
        error = None if future.cancelled() else future.exception()
        if error is not None:
            self._report(error_text(error))


def error_text(error: BaseException) -> str:
    """The text of an error, without the line of the cell that showed the panel."""
    if not isinstance(error, FluidError):
        return f"{type(error).__name__}: {error}"
    if error.op is None:
        error.where = None
    return str(error)


def _edit(debugger: Debugger, name: str, text: str, frame: int, around: Any) -> None:
    debugger.edit(name, debugger.evaluate(text, around), max(frame - 1, 0) if frame >= 0 else -1)
