"""The controls of a debugger panel: its buttons, breakpoints, watches and edits, posted to the session."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar

from fluidnb.debug.breakpoints import parse
from fluidnb.debug.debugger import Debugger
from fluidnb.debug.session import Session
from fluidnb.debug.snapshot import Snapshot
from fluidnb.errors import EnforceNotMet, FluidError, NotFound, OpValueError

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Button:
    """A button.

    Args:
        word: the word of ``%fluid`` that does the same; for pause, what does.
        label: what stands on it.
        icon: a sign before the label.
        key: the key that presses it, as the page names it.
        help: what it does.
        action: what the debugger does; None for pause.
        back: whether it goes backwards.
    """

    word: str
    label: str
    icon: str
    key: str
    help: str
    action: Callable[[Debugger], Snapshot] | None
    back: bool = False

    @property
    def tip(self) -> str:
        """Its help, with its key and its word."""
        same = "interrupting the kernel does the same" if self.action is None else f"%fluid {self.word}"
        return f"{self.help}  (key {self.key}; {same})"

    @property
    def data(self) -> dict[str, Any]:
        """What the page is given of it."""
        return {
            "word": self.word, "label": self.label, "icon": self.icon, "key": self.key, "tip": self.tip,
            "back": self.back, "pauses": self.action is None,
        }  # fmt: skip


#: The buttons, in the order in which they stand.
BUTTONS = (
    Button("restart", "restart", "⟲", "r", "Go back to the beginning of this run", Debugger.restart, True),
    Button(
        "rcontinue", "reverse", "◀◀", "C", "Go back to where a breakpoint would have stopped last",
        Debugger.reverse_continue, True,
    ),
    Button(
        "rnext", "back over", "↶", "N", "Step back over one operator with the blocks that it ran",
        Debugger.step_back_over, True,
    ),
    Button("back", "back", "◀", "b", "Take one step back", Debugger.back, True),
    Button("step", "step", "▶", "s", "Run one operator, entering the blocks that it runs", Debugger.step),
    Button("next", "next", "↷", "n", "Run one operator with the blocks that it runs", Debugger.next),
    Button("out", "out", "↑", "o", "Run to the end of this block and of its iterations", Debugger.out),
    Button("continue", "continue", "▶▶", "c", "Run to the next breakpoint, or to the end", Debugger.continue_),
    Button("pause", "pause", "❚❚", "p", "Pause after the current operator", None),
)
_BY_WORD = {button.word: button for button in BUTTONS}


class SessionControls:
    """Commands that a page sends to a debug session; a call posts a request and never waits for the session.

    Args:
        session: the session.
        report: shows the text of an error.
    """

    def __init__(self, session: Session, report: Callable[[str], None]) -> None:
        self._session = session
        self._report = report
        self._lock = threading.Lock()
        self._goal: int | None = None

    def do_move(self, word: str) -> None:
        """Press a button.

        Args:
            word: its word.

        Raises:
            NotFound: there is no such button.
        """
        button = _BY_WORD.get(word)
        if button is None:
            raise NotFound(f"The panel has no button {word}.", expected=", ".join(_BY_WORD), received=word)
        if button.action is None:
            self._session.pause()
        else:
            self.post(button.action)

    def do_go(self, at: int) -> None:
        """Go to a step, backwards or forwards; of several that come while one is under way, the last one counts.

        Args:
            at: the count of steps.
        """
        with self._lock:
            goes, self._goal = self._goal is not None, at
        if not goes:
            self._go(at)

    def do_until(self, block: int, index: int) -> None:
        """Run to an operator, once.

        Args:
            block: its block.
            index: its index there.
        """
        self.post(Debugger.run_to, parse(f"at {block}:{index}"))

    def do_mark(self, block: int, index: int) -> None:
        """Set a breakpoint at an operator, or remove the one that is there.

        Args:
            block: its block.
            index: its index there.
        """
        text = f"at {block}:{index}"
        there = [b.number for b in self._session.breakpoints if b.text == text]
        for number in there:
            self.post(Debugger.clear_breakpoints, number)
        if not there:
            self.post(Debugger.add_breakpoint, parse(text))

    def do_break(self, text: str) -> None:
        """Set a breakpoint.

        Args:
            text: as in `Session.stop_at`.
        """
        if not text.strip():
            raise OpValueError("There is no place to stop.", expected="op mul, var loss, when loss.mean() > 3, ...")
        self.post(Debugger.add_breakpoint, parse(text))

    def do_clear(self, number: int) -> None:
        """Remove a breakpoint.

        Args:
            number: its number.
        """
        self.post(Debugger.clear_breakpoints, number)

    def do_watch(self, text: str) -> None:
        """Show an expression at every stop.

        Args:
            text: a variable's name, or an expression.
        """
        if text.strip():
            self._session.check_watch(text.strip())
            self.post(Debugger.watch, text.strip())

    def do_unwatch(self, text: str) -> None:
        """Show it no more.

        Args:
            text: the expression.
        """
        self.post(Debugger.unwatch, text)

    def do_edit(self, name: str, text: str, frame: int = -1) -> None:
        """Give a variable other values; going back undoes it.

        Args:
            name: the variable.
            text: a number, or an expression as in ``%fluid edit``.
            frame: the scope from which it is seen, 0 for the outermost, -1 for the innermost.
        """
        if self._session.snapshot.state == "running":
            raise EnforceNotMet("The program runs.", hint="pause it, then give the variable other values.")
        if not text.strip():
            raise OpValueError("There is no value.", expected="a number, or an expression", received="nothing")
        self.post(_edit, name, text, frame, self._session.around)

    def _go(self, at: int) -> None:
        try:
            self.post(Debugger.go, at).add_done_callback(lambda _: self._gone(at))
        except FluidError:
            self._goal = None
            raise

    def _gone(self, at: int) -> None:
        with self._lock:
            goal = self._goal
            if goal == at or self._session.closed:
                goal = self._goal = None
        if goal is not None:
            self._go(goal)

    def post(
        self, request: Callable[Concatenate[Debugger, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> Future[T]:
        """Posts a request to the session; its error is reported.

        Args:
            request: called with the debugger, in the session's thread, then with the other arguments.

        Returns:
            Its result, once it is done.
        """
        future = self._session.post(request, *args, **kwargs)
        future.add_done_callback(self._answered)
        return future

    def _answered(self, future: Future[Any]) -> None:
        error = None if future.cancelled() else future.exception()
        if error is not None:
            self._report(error_text(error))


def error_text(error: BaseException) -> str:
    """The text of an error, without the line of the cell that showed the panel.

    Args:
        error: the error of a command.

    Example:
        >>> error_text(ValueError("no")), error_text(NotFound("There is no such thing."))
        ('ValueError: no', 'There is no such thing.')
    """
    if not isinstance(error, FluidError):
        return f"{type(error).__name__}: {error}"
    if error.op is None:
        error.where = None
    return str(error)


def _edit(debugger: Debugger, name: str, text: str, frame: int, around: Any) -> None:
    debugger.edit(name, debugger.evaluate(text, around), max(frame - 1, 0) if frame >= 0 else -1)
