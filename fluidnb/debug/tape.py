"""The tape: all steps of all runs of a session in order, which can be stepped both ways.

The journal has the newest steps. Older ones are recomputed: their run is replayed from its checkpoint, with the same
feeds, the same random numbers and the user's edits.
"""

import contextlib
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from fluidnb.debug.change import Change, SetAttrs
from fluidnb.debug.journal import Journal
from fluidnb.errors import EnforceNotMet, FluidError
from fluidnb.runtime.compile.lowering import LoweredProgram
from fluidnb.runtime.executor import Executor
from fluidnb.runtime.feed_fetch import Fed
from fluidnb.runtime.interpreter.checkpoint import Checkpoint
from fluidnb.runtime.interpreter.interpreter import Interpreter, Undo
from fluidnb.runtime.scope import Scope
from fluidnb.values.device_context import copy_of
from fluidnb.values.tensor import LoDTensor

T = TypeVar("T")
#: The user's edits by (first step of the run, step).
Edits = Mapping[tuple[int, int], Change]


@dataclass(slots=True)
class Run:
    """A run on the tape."""

    lowered: LoweredProgram
    scope: Scope  # the user's scope
    feeds: Mapping[str, Fed]  # copies of the fed values
    number: int  # the number of the run; random numbers depend on it
    first: int  # the step at which it begins
    start: Checkpoint  # the variables of the user's scope that it changes, as they were
    interpreter: Interpreter | None  # None when it is finished and its variables would take too much memory
    changes: dict[int, Change] = field(default_factory=dict)  # the user's edits, by step
    kept: int = 0  # bytes of its variables after its end

    @property
    def nbytes(self) -> int:
        """Bytes that it keeps: copies to replay it, and its variables."""
        return self.start.nbytes + sum(array.nbytes for array, _ in self.feeds.values()) + self.kept


class Tape:
    """Steps runs forwards and backwards."""

    def __init__(self, budget: int) -> None:  # bytes of the journal; as many again for the runs before the current one
        self.runs: list[Run] = []
        self.ahead: list[Run] = []  # the runs after the current one, the next one last
        self.at = 0
        self.forgotten = 0  # the first step that is still recorded
        self.journal = Journal(budget)
        self.check: Callable[[], None] = lambda: None

    @property
    def run(self) -> Run:
        """The current run; raises EnforceNotMet before the first one."""
        if not self.runs:
            raise EnforceNotMet("No run was begun yet.", hint="begin(feed, fetch_list) begins one.")
        return self.runs[-1]

    @property
    def interpreter(self) -> Interpreter:
        """The interpreter of the current run; raises EnforceNotMet before the first run."""
        interpreter = self.run.interpreter
        assert interpreter is not None, "only finished runs drop their interpreter"
        return interpreter

    @property
    def can_back(self) -> bool:
        """Whether a step back is possible."""
        return self.at > self.forgotten

    @property
    def done(self) -> bool:
        """Whether the current run is over, and no run comes after it."""
        return not self.ahead and self.interpreter.done

    # ---- forwards

    def begin(
        self, lowered: LoweredProgram, scope: Scope, feeds: Mapping[str, Fed], number: int, ahead: Iterable[Run] = ()
    ) -> None:
        """Begin a run; the one before stays where it is. ``ahead``: the runs after it, the next one last."""
        feeds = {name: (copy_of(array), lod) for name, (array, lod) in feeds.items()}
        start = Checkpoint(lowered, scope)
        if self.runs:
            _hide(self.runs[-1])
            self.runs[-1].kept = _bytes_in(self.interpreter.stack[0].scope)
        self.ahead = list(ahead)
        self.runs.append(
            Run(lowered, scope, feeds, number, self.at, start, self._interpreter(lowered, scope, feeds, number))
        )
        self._save_memory()

    def forward(self) -> Undo:
        """Take one step, at the end of a run into the next recorded one; an operator that fails changes nothing."""
        if self.interpreter.done:
            self._enter_run()
        try:
            self.interpreter.step()
        except FluidError as error:
            edits = [(at, c.stop.text) for at, c in self.runs[-1].changes.items() if isinstance(c, SetAttrs)]
            if edits:  # the program's line has other attributes than those that ran
                error.where = None
                error.hint = f"back {self.at - edits[0][0]} undoes: {'; '.join(text for _, text in edits)}."
            raise
        self.at += 1
        return self.journal[-1]

    def change(self, change: Change) -> None:
        """Apply an edit as a step; one that is not possible raises a FluidError and changes nothing."""
        run = self.runs[-1]
        self.journal.append(change.apply(self.interpreter))
        run.lowered = self.interpreter.lowered
        run.changes[self.at] = change
        self.at += 1

    # ---- backwards

    def last(self) -> Undo:
        """The last step, which `back` would undo; raises IndexError at the beginning."""
        if not self.can_back:
            raise IndexError("the beginning of the tape")
        if self.at == self.runs[-1].first:
            self._leave_run()
        if not len(self.journal):
            self._replay(self.at)
        return self.journal[-1]

    def back(self) -> None:
        """Undo the last step, at the beginning of a run that of the run before; raises IndexError if there is none."""
        self.last()
        run = self.runs[-1]
        change = run.changes.pop(self.at - 1, None)
        if change is None:
            self.interpreter.back()
        else:
            change.undo(self.interpreter, self.journal.pop())
            run.lowered = self.interpreter.lowered
        self.at -= 1

    def go(self, at: int) -> None:
        """Go back to a step, which is not after this one; raises IndexError if it is not recorded any more."""
        if at < self.forgotten:
            raise IndexError("before the beginning of the tape")
        while self.runs[-1].first > at:
            self._rewind()
            self._leave_run()
        if self.at - at > len(self.journal):
            self._replay(at)
        while self.at > at:
            self.back()

    def replay(self, visit: Callable[[Undo], None]) -> None:
        """Replay the current run from its beginning up to here; ``visit`` is called after each step."""
        self._replay(self.at, visit)

    def visit(self, at: int, function: Callable[[], T]) -> T:
        """Call a function at another step, or at the end before it, and return here with edits applied again."""
        with self._excursion(at):
            while self.at < at and not self.done:
                self.forward()
            return function()

    def walk(self, first: int, last: int, look: Callable[[], None]) -> None:
        """Call a function at each step from ``first`` to ``last``, and return here.

        Between two runs it is called twice: at the end of the one, and at the beginning of the other.
        """
        runs = len(self.runs)
        with self._excursion(first) as edits:
            look()
            while not self.done and (self.at < last or len(self.runs) < runs):
                self._advance(edits)
                look()

    @contextlib.contextmanager
    def _excursion(self, at: int) -> Iterator[Edits]:
        """Inside a ``with`` the tape may be anywhere, first at a step that is not after this one; then here again."""
        here, first = self.at, self.run.first
        edits = {(run.first, step): change for run in self.runs for step, change in run.changes.items() if step >= at}
        with quiet(self.runs[-1].lowered):
            if at < here:
                self.go(at)
            try:
                yield edits
            finally:
                if self.at > here:
                    self.go(here)
                while self.at < here:
                    self._advance(edits)
                if self.runs[-1].first < first:  # from the end of a run to the beginning of the next
                    self._enter_run()
                elif self.runs[-1].first > first:
                    self._leave_run()

    def _advance(self, edits: Edits) -> None:
        """One step of a replay: the user's edit, else the operator; at the end of a run into the next one."""
        change = edits.get((self.runs[-1].first, self.at))
        if change is not None:
            self.change(change)
        elif self.interpreter.done:
            self._enter_run()
        else:
            self.forward()

    def close(self) -> None:
        """Remove the scopes of all runs from the user's."""
        for run in self.runs:
            _hide(run)

    # ---- helpers

    def _interpreter(self, lowered: LoweredProgram, scope: Scope, feeds: Mapping[str, Fed], number: int) -> Interpreter:
        interpreter = Executor.interpreter(lowered, scope, feeds, number)
        interpreter.journal, interpreter.check = self.journal, self.check
        return interpreter

    def _enter_run(self) -> None:
        """From the end of a run to the beginning of the one after it."""
        later = self.ahead.pop()
        self.begin(later.lowered, later.scope, later.feeds, later.number, self.ahead)

    def _leave_run(self) -> None:
        """Go from the beginning of a run to the end of the one before it."""
        left = self.runs.pop()
        left.start.restore()
        _hide(left)
        self.ahead.append(left)
        run = self.runs[-1]
        if run.interpreter is None:
            self._replay(self.at)
        else:
            run.scope.kids.append(run.interpreter.stack[0].scope)

    def _rewind(self) -> None:
        """Go to the beginning of the current run, at once."""
        run = self.runs[-1]
        _hide(run)
        run.start.restore()
        if run.interpreter is not None:
            for change in reversed(list(run.changes.values())):
                change.restore_program(run.interpreter)
            run.lowered = run.interpreter.lowered
        run.changes = {}
        run.interpreter = self._interpreter(run.lowered, run.scope, run.feeds, run.number)
        self.journal.clear()
        self.at = run.first

    def _replay(self, at: int, visit: Callable[[Undo], None] | None = None) -> None:
        """Replay the current run from its beginning to a count of steps."""
        changes = self.run.changes
        self._rewind()
        with quiet(self.runs[-1].lowered):
            while self.at < at:
                change = changes.get(self.at)
                if change is None:
                    self.forward()
                else:
                    self.change(change)
                if visit is not None:
                    visit(self.journal[-1])

    def _save_memory(self) -> None:
        """Drop the variables of finished runs, oldest first, then whole runs, while they take too much memory."""
        nbytes = sum(run.nbytes for run in self.runs[:-1])
        for i, run in enumerate(self.runs[:-1]):
            if nbytes <= self.journal.budget:
                return
            if run.interpreter is not None and not run.changes:
                nbytes -= run.kept
                run.interpreter, run.kept = None, 0
                self.journal.keep(self.at - self.runs[i + 1].first)
        while len(self.runs) > 1 and nbytes > self.journal.budget:
            nbytes -= self.runs[0].nbytes
            _hide(self.runs.pop(0))
            self.forgotten = self.runs[0].first
        self.journal.keep(self.at - self.forgotten)


def _hide(run: Run) -> None:
    """Remove a run's scope from the user's."""
    local = None if run.interpreter is None else run.interpreter.stack[0].scope
    if local is not None and local in run.scope.kids:
        run.scope.kids.remove(local)


def _bytes_in(scope: Scope) -> int:
    """The bytes of the tensors in a scope and those inside it."""
    own = (v.value for v in scope.vars.values())
    total = sum(t.array.nbytes for t in own if type(t) is LoDTensor and t.array is not None)
    return total + sum(map(_bytes_in, scope.kids))


@contextlib.contextmanager
def quiet(lowered: LoweredProgram) -> Iterator[None]:
    """Inside a ``with``, replayed operators do not print again."""
    if any(op.desc.optype in ("print", "py_func") for block in lowered.blocks for op in block.ops):
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    else:
        yield
