"""A debug session: a program that stands still where the user wants, and goes forwards and backwards.

One worker thread owns the machine. Front ends only post commands, and observe snapshots that never change; so it makes
no difference whether a button, a magic, a prompt or a script gives them, or several at once.
"""

from __future__ import annotations

import contextvars
import queue
import re
import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from typing import Any

from fluidnb.debug.breakpoints import Breakpoint, parse
from fluidnb.debug.history import Touch, touches
from fluidnb.debug.snapshot import Snapshot
from fluidnb.debug.walker import Walker
from fluidnb.errors import EnforceNotMet, FluidError, NotFound, OpValueError
from fluidnb.expressions import code_of
from fluidnb.program import Program, default_main_program, hooks
from fluidnb.runtime.executor import Executor, Prepared
from fluidnb.runtime.interpreter.failed_run import last_failed
from fluidnb.runtime.program_state import program_state
from fluidnb.runtime.scope import Scope, global_scope
from fluidnb.values import invalidation as epoch
from fluidnb.values.place import CPUPlace, Place

#: Bytes that a journal may hold unless told otherwise.
BUDGET = 256 << 20
#: Commands that only look: an observer may give them, and has the answer at once.
LOOKS = ("call", "evaluate", "marks", "matches", "names", "value")

#: The session that front ends speak to when none is named.
_current: list[weakref.ref[Session]] = []


class Stopped(FluidError):
    """A run stands at a breakpoint, and nobody is there to go on: no prompt, no panel, no ``on_stop``."""


class Session:
    """A program being walked.

    Args:
        program: the program; default the main program.
        feed: what to feed; with it (``{}`` is enough) the session stands at the first operator at once.
        fetch_list: variables whose values `results` gives when the run is over.
        scope: where persistable variables live; default the global scope.
        place: where to run; default the CPU.
        budget: bytes that the journal may hold; what it has dropped is recomputed when it is needed.

    Attributes:
        snapshot: how it stands.
        breakpoints: where it stops by itself.
        watches: expressions that each snapshot evaluates.
        around: the user's own names, for expressions; default those of ``__main__``.
        waited_for: whether ``exe.run`` waits for the run that is under way.
        stop_at_entry: whether the next run in ``exe.run`` stops at its first operator, once.
        on_stop: called with the session, in the thread of the caller, when a run under way in ``exe.run`` stops; by
            default the ``(fluid)`` prompt where somebody can answer, else `Stopped` is raised.

    Raises:
        FluidError: what ``exe.run`` would raise about program, feed and fetch_list.

    Example:
        >>> x = fluid.layers.data("x", shape=[2])
        >>> y = fluid.layers.scale(fluid.layers.relu(x), scale=3.0)
        >>> d = fluid.debug(feed={"x": np.array([[-1.0, 2.0]], "float32")}, fetch_list=[y])
        >>> d.step().op.type, d["relu_0.tmp_0"]
        ('scale', array([[0., 2.]], dtype=float32))
        >>> d.edit("relu_0.tmp_0", 5.0); d.go_on().state, d.results[0]
        ('done', array([[15., 15.]], dtype=float32))
        >>> d.back(2).op.type, d["relu_0.tmp_0"]
        ('scale', array([[0., 2.]], dtype=float32))
        >>> d.close()

    Source: DESIGN, "Notebook" and decisions 4 and 5; release note of Fluid 0.11 ("a debugger, like GDB").
    """

    def __init__(
        self,
        program: Program | None = None,
        feed: Mapping[str, Any] | None = None,
        fetch_list: Any = None,
        scope: Scope | None = None,
        place: Place | None = None,
        budget: int = BUDGET,
    ) -> None:
        self.program = default_main_program() if program is None else program
        self.on_stop: Callable[[Session], None] | None = None
        self.around: Mapping[str, Any] | None = None
        self.waited_for = self.stop_at_entry = False
        self._joined: list[Program] = []
        self._scope, self._place = scope, CPUPlace() if place is None else place
        self._inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._walker = Walker(budget)
        self._finish = weakref.finalize(self, self._inbox.put, None)
        self._last: Future[Any] = Future()
        self._last.set_result(None)
        self._posting = threading.Lock()
        context = contextvars.copy_context()  # front ends find out from it which cell asked
        self._worker = threading.Thread(target=context.run, args=(_work, self._inbox), name="fluid-debug", daemon=True)
        # A debugger of Python leaves it alone: it answers while that one holds every other thread.
        vars(self._worker).update(pydev_do_not_trace=True)
        self._worker.start()
        _current[:] = [weakref.ref(self)]
        if hooks.debug_began is not None:
            hooks.debug_began(self)
        if feed is not None:
            self.begin(feed, fetch_list)

    # ---- posting

    def post(self, command: str, *args: Any) -> Future[Any]:
        """Ask for a command without waiting for it; safe in any callback.

        Args:
            command: the name of a command of `Walker`.
            args: its arguments.

        Returns:
            What it will give.
        """
        future: Future[Any] = Future()
        pausing = self._walker.pausing
        if not self._finish.alive:
            raise EnforceNotMet("This session is closed.", hint="fluid.debug(program) begins another.")
        with self._posting:  # what was posted last is what comes last
            if self._last.done():
                pausing.clear()
            self._last = future
            self._inbox.put((future, getattr(self._walker, command), args, pausing))
        return future

    def do(self, command: str, *args: Any) -> Any:
        """Ask for a command and wait; Ctrl-C pauses the program, it does not stop it.

        An observer is called in the middle of a command: it may look, but not walk.

        Args:
            command: the name of a command of `Walker`.
            args: its arguments.

        Returns:
            What it gives.

        Raises:
            EnforceNotMet: an observer asks for more than a look.
            KeyboardInterrupt: Ctrl-C came before the wait began; the program pauses all the same.
            Exception: what it raises.
        """
        if threading.current_thread() is self._worker:
            if command not in LOOKS:
                raise EnforceNotMet(
                    "An observer only looks.", expected=", ".join(LOOKS), received=command,
                    hint="session.post asks for it without waiting.",
                )  # fmt: skip
            return getattr(self._walker, command)(*args)
        try:
            future = self.post(command, *args)
            while True:
                try:
                    return future.result(timeout=0.2)
                except TimeoutError:
                    if future.done():
                        raise
                except KeyboardInterrupt:
                    self.pause()
        except KeyboardInterrupt:  # before it waits, or between two waits: nothing may run on unseen
            self.pause()
            raise

    def slip(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """Ask for something between two steps, without waiting; a program that runs goes on afterwards.

        Args:
            function: called with the `Walker` and the arguments, in the worker's thread.
            args: its arguments.

        Returns:
            What it will give.

        Raises:
            EnforceNotMet: the session is closed.
        """
        future: Future[Any] = Future()
        if not self._finish.alive:
            raise EnforceNotMet("This session is closed.", hint="fluid.debug(program) begins another.")
        self._walker.asides.put((future, function, args))
        self._inbox.put((Future(), self._walker.settle, (), threading.Event()))
        return future

    def aside(self, function: Callable[..., Any], *args: Any) -> Any:
        """The same as `slip`, and wait: for what must not wait until the program stands, as setting a breakpoint.

        Args:
            function: called with the `Walker` and the arguments, in the worker's thread.
            args: its arguments.

        Returns:
            What it gives.

        Raises:
            EnforceNotMet: the session is closed.
            KeyboardInterrupt: Ctrl-C came meanwhile; it is done all the same.
            Exception: what it raises.
        """
        future = self.slip(function, *args)
        interrupted = False
        while not future.done():
            try:
                wait([future], timeout=0.2)
            except KeyboardInterrupt:  # half of what is done in here would be worse than a moment
                interrupted = True
            if not future.done() and not self._finish.alive:
                raise EnforceNotMet("This session is closed.")
        if interrupted:
            raise KeyboardInterrupt
        return future.result()

    def pause(self) -> None:
        """Let a running program stop after the operator that is under way; so does one that is about to run."""
        if not self._last.done():
            self._walker.pausing.set()

    def observe(self, look: Callable[[Snapshot], None]) -> Callable[[Snapshot], None]:
        """Be told of every snapshot, at most ten times a second while the program runs.

        Args:
            look: called in the worker's thread, now and from now on; what it raises is printed, and noted in the
                next snapshot.

        Returns:
            ``look``.
        """
        self.do("observe", look)
        return look

    def forget(self, look: Callable[[Snapshot], None]) -> None:
        """Tell somebody no more.

        Args:
            look: what was given to `observe`.
        """
        self.do("forget", look)

    # ---- runs

    def begin(self, feed: Mapping[str, Any] | None = None, fetch_list: Any = None) -> Snapshot:
        """Begin a run, and stand at its first operator. Earlier runs can still be gone back to.

        Args:
            feed: as in ``exe.run``.
            fetch_list: as in ``exe.run``.

        Returns:
            The snapshot.

        Raises:
            FluidError: what ``exe.run`` would raise.
        """
        scope = global_scope() if self._scope is None else self._scope
        plan, values = Executor(self._place).prepare(self.program, feed, fetch_list, scope)
        start = Prepared(plan, self.program, scope, values, True)
        return self.do("begin", start)  # type: ignore[no-any-return]

    def __enter__(self) -> Session:
        """From now on ``exe.run`` of this program is walked by this session."""
        self.join(self.program)
        return self

    def __exit__(self, *exc: object) -> None:
        for program in self._joined:
            state = program_state(program.desc)
            if state.attached == self._attached:
                state.attached = None
        self._joined = []

    def join(self, program: Program) -> None:
        """From now on ``exe.run`` of a program is walked by this session too; it speaks of the one that ran last.

        Args:
            program: the program.

        Raises:
            EnforceNotMet: it is in another session.
        """
        state = program_state(program.desc)
        if state.attached is not None:
            raise EnforceNotMet("This program is in another debug session.", hint="close that one first.")
        state.attached = self._attached
        self._joined.append(program)
        epoch.value += 1  # bound runs look again, and find this session

    def _attached(self, start: Prepared) -> list[Any]:
        """A run that ``exe.run`` asks for while the session is attached."""
        self.program = start.program
        self.waited_for = True
        try:
            return self._walk(start)
        finally:
            self.waited_for = False

    def _walk(self, start: Prepared) -> list[Any]:
        stands, self.stop_at_entry = self.stop_at_entry, False
        snapshot = self.do("begin", start, stands)
        fresh = True
        while True:
            snapshot = snapshot if stands else self.do("go_on", fresh)
            stands = False
            if snapshot.state == "done":
                return self.do("fetched", start.return_numpy)  # type: ignore[no-any-return]
            ask = self.on_stop or (hooks.debug_prompt() if hooks.debug_prompt is not None else None)
            if ask is None:
                raise unanswered(snapshot)
            ask(self)
            if self.snapshot.state == "done":
                return self.do("fetched", start.return_numpy)  # type: ignore[no-any-return]
            if self.snapshot.error is not None:
                raise self.snapshot.error
            fresh = False

    @property
    def results(self) -> list[Any]:
        """What ``fetch_list`` names, when the run is over."""
        return self.do("fetched", True)  # type: ignore[no-any-return]

    def close(self) -> None:
        """End the session: its scopes go, its thread ends, the program runs as before."""
        self.__exit__()
        if self._finish.alive:
            self.do("close")
            self._finish()

    # ---- walking

    @property
    def snapshot(self) -> Snapshot:
        """How it stands."""
        return self._walker.snapshot

    def step(self, count: int = 1) -> Snapshot:
        """Run operators, entering the blocks that they run.

        Args:
            count: how many steps; entering a block is one, leaving one too.
        """
        return self.do("step", count)  # type: ignore[no-any-return]

    def next(self) -> Snapshot:
        """Run one operator with all that its blocks do."""
        return self.do("next")  # type: ignore[no-any-return]

    def out(self) -> Snapshot:
        """Run to the end of this block, and of its iterations."""
        return self.do("out")  # type: ignore[no-any-return]

    def go_on(self) -> Snapshot:
        """Run to the next breakpoint, or to the end."""
        return self.do("go_on")  # type: ignore[no-any-return]

    def run_to(self, where: str) -> Snapshot:
        """Run to a place, once.

        Args:
            where: as in `stop_at`.
        """
        return self.do("run_to", parse(where))  # type: ignore[no-any-return]

    def back(self, count: int = 1) -> Snapshot:
        """Take steps back.

        Args:
            count: how many.
        """
        return self.do("back", count)  # type: ignore[no-any-return]

    def back_over(self) -> Snapshot:
        """Go back over one operator with all that its blocks did."""
        return self.do("back_over")  # type: ignore[no-any-return]

    def back_on(self) -> Snapshot:
        """Go back to where a breakpoint would have stopped last, or to the beginning."""
        return self.do("back_on")  # type: ignore[no-any-return]

    def last_write(self, name: str) -> Snapshot:
        """Go back to just before the step that gave a variable the value that it has here.

        Args:
            name: the variable, as seen from here.
        """
        return self.do("last_write", name)  # type: ignore[no-any-return]

    def restart(self) -> Snapshot:
        """Go back to the beginning of this run."""
        return self.do("restart")  # type: ignore[no-any-return]

    def go(self, at: int) -> Snapshot:
        """Go to a step, backwards or forwards; breakpoints do not stop it.

        Args:
            at: the count of steps.
        """
        return self.do("go", at)  # type: ignore[no-any-return]

    # ---- looking and changing

    def __getitem__(self, name: str) -> Any:
        """A copy of what a variable holds, as seen from here: ndarray, LoDTensor if there is LoD, list, SelectedRows.

        Raises:
            NotFound: it has no value here.
        """
        return self.do("value", name)

    def evaluate(self, text: str) -> Any:
        """What a Python expression gives here: over the program's variables first, then over those in ``around``."""
        around = vars(sys.modules["__main__"]) if self.around is None else self.around
        return self.do("evaluate", text, around)

    def names(self) -> list[str]:
        """The names of the variables that have a value here, innermost scope first."""
        return self.do("names")  # type: ignore[no-any-return]

    def history(self, name: str) -> list[Touch]:
        """A variable on its way through this run so far: forward, backward and optimizer.

        Args:
            name: the variable; its gradients are told with it.

        Returns:
            The steps that read or wrote it, in order.
        """
        return self.do("call", touches, name)  # type: ignore[no-any-return]

    def edit(self, name: str, value: Any) -> None:
        """Give a variable other values here; going back undoes it.

        Args:
            name: the variable.
            value: a number, or an array of its shape.
        """
        self.do("edit", name, value)

    def change_op(self, block: int, index: int, **attrs: Any) -> None:
        """Give an operator other attributes; going back undoes it.

        Args:
            block: its block.
            index: its index there.
            attrs: attribute -> value.
        """
        self.do("change_op", block, index, attrs)

    def watch(self, text: str) -> None:
        """Show an expression in every snapshot.

        Args:
            text: a variable's name, or an expression as in `evaluate`.

        Raises:
            OpValueError: it is no Python expression.
        """
        self.check_watch(text)
        self.do("watch", text)

    def check_watch(self, text: str) -> None:
        """Refuse what cannot be watched.

        Args:
            text: a variable's name, or an expression.

        Raises:
            OpValueError: it is neither.
        """
        if text not in self.program.global_block().vars and not _is_expression(text):
            raise OpValueError("That cannot be watched.", expected="a variable, or a Python expression", received=text)

    def unwatch(self, text: str | None = None) -> None:
        """Show it no more; None for all."""
        self.do("unwatch", text)

    def stop_at(self, where: str | Callable[..., Any], after: int = 0) -> Breakpoint:
        """Set a breakpoint.

        Args:
            where: ``op mul``, ``var fc_0.w_0``, ``line net:3``, ``block 1@5``, ``at 0:12``, ``nan``,
                ``when loss.mean() > 3``, or a function of a `View` that says whether to stop.
            after: how many times to pass it first.

        Returns:
            The breakpoint.
        """
        made = parse(where) if isinstance(where, str) else Breakpoint("when", where.__name__, test=where)
        made.after = after or made.after
        self.do("add", made)
        return made

    def clear(self, number: int | None = None) -> None:
        """Remove a breakpoint.

        Args:
            number: its number; None for all.
        """
        self.do("clear", number)

    def marks(self) -> set[tuple[int, int]]:
        """(block, index) of the operators of the innermost block at which a breakpoint may stop."""
        return self.do("marks")  # type: ignore[no-any-return]

    @property
    def breakpoints(self) -> tuple[Breakpoint, ...]:
        """Where it stops by itself."""
        return tuple(self._walker.breakpoints)

    @property
    def watches(self) -> tuple[str, ...]:
        """The expressions that snapshots show."""
        return tuple(self._walker.watches)

    @property
    def closed(self) -> bool:
        """Whether it was ended."""
        return not self._finish.alive

    def __repr__(self) -> str:
        return f"<debug session: {self.snapshot.text}>"

    def _repr_html_(self) -> str | None:
        return None if hooks.repr_html is None else hooks.repr_html(self)


def current() -> Session | None:
    """The session that was begun last and is still there.

    Example:
        >>> current() is None or current().snapshot.state in ("idle", "paused", "running", "done")
        True
    """
    session = _current[-1]() if _current else None
    return session if session is not None and not session.closed else None


def debug(
    program: Program | None = None,
    feed: Mapping[str, Any] | None = None,
    fetch_list: Any = None,
    scope: Scope | None = None,
    place: Place | None = None,
    budget: int = BUDGET,
) -> Session:
    """Begin a debug session; see `Session`, whose arguments these are.

    Example:
        >>> y = fluid.layers.fill_constant([1], "float32", 2.0)
        >>> with fluid.debug() as d:
        ...     d.on_stop = lambda d: print(d.snapshot.text)
        ...     stop = d.stop_at("op fill_constant")
        ...     fluid.Executor().run(fetch_list=[y])
        paused at step 0, breakpoint op fill_constant  0:0  fill_constant_0.tmp_0 = fill_constant()
        [array([2.], dtype=float32)]
    """
    return Session(program, feed, fetch_list, scope, place, budget)


def post_mortem(budget: int = BUDGET) -> Session:
    """Walk the run that failed last again, and stand at the operator that failed.

    Feeds and random numbers are the same. What the run had changed before it failed is put back first where a copy was
    kept: with FLAGS_check_nan_inf each run keeps one. Without it the snapshot names what had changed.

    Args:
        budget: bytes that the journal may hold.

    Returns:
        The session.

    Raises:
        NotFound: no run has failed, or its program or scope is gone.

    Example:
        >>> x = fluid.layers.data("x", shape=[2])
        >>> y = fluid.layers.reshape(fluid.layers.relu(x), [-1, 3])
        >>> fluid.Executor().run(feed={"x": np.ones((2, 2), "float32")}, fetch_list=[y])
        Traceback (most recent call last):
        fluidnb.op.context.RuleError: X cannot be reshaped to Attr(shape) of reshape: sizes do not divide.
          ...
        >>> d = fluid.debug.post_mortem()
        >>> d.snapshot.op.type, d["relu_0.tmp_0"].shape
        ('reshape', (2, 2))
        >>> d.close()
    """
    failed = last_failed()
    program = None if failed is None else failed.program()
    if failed is None or program is None:
        raise NotFound(
            "There is no failed run to look at.", expected="a run that raised; its program and scope as they were",
            hint="fluid.debug(program, feed=...) walks a run from its beginning.",
        )  # fmt: skip
    session = Session(program, scope=failed.scope(), place=failed.place, budget=budget)
    session.do("post_mortem", failed)
    return session


def unanswered(snapshot: Snapshot) -> BaseException:
    """What a run raises that stands still while nobody can be asked how to go on.

    Args:
        snapshot: where it stands.

    Returns:
        The error of its operator, or `Stopped`.

    Example:
        >>> from fluidnb.debug.stop import Stop, StopKind
        >>> type(unanswered(Snapshot("paused", Stop(StopKind.PAUSE)))).__name__
        'Stopped'
    """
    if snapshot.error is not None:
        return snapshot.error
    return Stopped(
        f"The run stands still: {snapshot.reason}.", received=snapshot.text,
        hint="%fluid step, back, continue ... go on from here; session.on_stop says what to do by itself.",
    )  # fmt: skip


def _is_expression(text: str) -> bool:
    try:
        code_of(text, "<watch>")
    except SyntaxError:
        return bool(re.fullmatch(r"[^\s()]+@[^\s()]+", text))  # the name of a gradient
    return True


def _work(inbox: queue.SimpleQueue[Any]) -> None:
    """What the worker does: one command after another, until the session is gone."""
    while (item := inbox.get()) is not None:
        future, command, args, pausing = item
        if not future.set_running_or_notify_cancel():
            continue
        try:
            result, error = command(*args), None
        except BaseException as e:
            e.__traceback__ = None if isinstance(e, FluidError) else e.__traceback__
            result, error = None, e
        pausing.clear()  # before the answer: a pause that comes after it is for the next command
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
        del item, future, command, args, pausing, result, error  # nothing of the session is kept while waiting
