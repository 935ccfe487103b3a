"""What the buttons of a debugger panel do: they post commands to the session, and never wait for it."""

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
class Move:
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
MOVES = (
    Move("restart", "restart", "⟲", "r", "Go back to the beginning of this run", Debugger.restart, True),
    Move(
        "rcontinue", "reverse", "◀◀", "C", "Go back to where a breakpoint would have stopped last",
        Debugger.reverse_continue, True,
    ),
    Move(
        "rnext", "back over", "↶", "N", "Step back over one operator with the blocks that it ran",
        Debugger.step_back_over, True,
    ),
    Move("back", "back", "◀", "b", "Take one step back", Debugger.back, True),
    Move("step", "step", "▶", "s", "Run one operator, entering the blocks that it runs", Debugger.step),
    Move("next", "next", "↷", "n", "Run one operator with the blocks that it runs", Debugger.next),
    Move("out", "out", "↑", "o", "Run to the end of this block and of its iterations", Debugger.out),
    Move("continue", "continue", "▶▶", "c", "Run to the next breakpoint, or to the end", Debugger.continue_),
    Move("pause", "pause", "❚❚", "p", "Pause after the current operator", None),
)
_BY_WORD = {move.word: move for move in MOVES}


class Moves:
    """What a page asks of a session. A mix-in: the widget has `tell`.

    Attributes:
        session: the session.
    """

    session: Session
    tell: Callable[[str], None]
    _goals = threading.Lock()
    _goal: int | None = None

    def do_move(self, word: str) -> None:
        """Press a button.

        Args:
            word: its word.

        Raises:
            NotFound: there is no such button.
        """
        move = _BY_WORD.get(word)
        if move is None:
            raise NotFound(f"The panel has no button {word}.", expected=", ".join(_BY_WORD), received=word)
        if move.action is None:
            self.session.pause()
        else:
            self._post(move.action)

    def do_go(self, at: int) -> None:
        """Go to a step, backwards or forwards; of several that come while one is under way, the last one counts.

        Args:
            at: the count of steps.
        """
        with self._goals:
            goes, self._goal = self._goal is not None, at
        if not goes:
            self._go(at)

    def do_until(self, block: int, index: int) -> None:
        """Run to an operator, once.

        Args:
            block: its block.
            index: its index there.
        """
        self._post(Debugger.run_to, parse(f"at {block}:{index}"))

    def do_mark(self, block: int, index: int) -> None:
        """Set a breakpoint at an operator, or remove the one that is there.

        Args:
            block: its block.
            index: its index there.
        """
        text = f"at {block}:{index}"
        there = [b.number for b in self.session.breakpoints if b.text == text]
        for number in there:
            self._post(Debugger.clear_breakpoints, number)
        if not there:
            self._post(Debugger.add_breakpoint, parse(text))

    def do_break(self, text: str) -> None:
        """Set a breakpoint.

        Args:
            text: as in `Session.stop_at`.
        """
        if not text.strip():
            raise OpValueError("There is no place to stop.", expected="op mul, var loss, when loss.mean() > 3, ...")
        self._post(Debugger.add_breakpoint, parse(text))

    def do_clear(self, number: int) -> None:
        """Remove a breakpoint.

        Args:
            number: its number.
        """
        self._post(Debugger.clear_breakpoints, number)

    def do_watch(self, text: str) -> None:
        """Show an expression at every stop.

        Args:
            text: a variable's name, or an expression.
        """
        if text.strip():
            self.session.check_watch(text.strip())
            self._post(Debugger.watch, text.strip())

    def do_unwatch(self, text: str) -> None:
        """Show it no more.

        Args:
            text: the expression.
        """
        self._post(Debugger.unwatch, text)

    def do_edit(self, name: str, text: str, frame: int = -1) -> None:
        """Give a variable other values; going back undoes it.

        Args:
            name: the variable.
            text: a number, or an expression as in ``%fluid edit``.
            frame: the scope from which it is seen, 0 for the outermost, -1 for the innermost.
        """
        if self.session.snapshot.state == "running":
            raise EnforceNotMet("The program runs.", hint="pause it, then give the variable other values.")
        if not text.strip():
            raise OpValueError("There is no value.", expected="a number, or an expression", received="nothing")
        self._post(_edit, name, text, frame, self.session.around)

    def _go(self, at: int) -> None:
        try:
            self._post(Debugger.go, at).add_done_callback(lambda _: self._gone(at))
        except FluidError:
            self._goal = None
            raise

    def _gone(self, at: int) -> None:
        with self._goals:
            goal = self._goal
            if goal == at or self.session.closed:
                goal = self._goal = None
        if goal is not None:
            self._go(goal)

    def _post(
        self, request: Callable[Concatenate[Debugger, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> Future[T]:
        future = self.session.post(request, *args, **kwargs)
        future.add_done_callback(self._answered)
        return future

    def _answered(self, future: Future[Any]) -> None:
        error = None if future.cancelled() else future.exception()
        if error is not None:
            self.tell(in_words(error))


def in_words(error: BaseException) -> str:
    """An error as the user's program sees it.

    Args:
        error: what a command raised.

    Returns:
        Its text, without the line of the cell that showed the panel.

    Example:
        >>> in_words(ValueError("no")), in_words(NotFound("There is no such thing."))
        ('ValueError: no', 'There is no such thing.')
    """
    if not isinstance(error, FluidError):
        return f"{type(error).__name__}: {error}"
    if error.op is None:
        error.where = None
    return str(error)


def _edit(debugger: Debugger, name: str, text: str, frame: int, around: Any) -> None:
    debugger.edit(name, debugger.evaluate(text, around), max(frame - 1, 0) if frame >= 0 else -1)
