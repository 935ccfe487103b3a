"""A debug session: steps a program forwards and backwards, with breakpoints, watches and edits.

One worker thread owns the debugger; where no thread can start, requests are done inline, in the caller's. Front ends
post requests and observe immutable snapshots, so that buttons, magics, prompts and scripts can use a session together.
"""

from __future__ import annotations

import os
import re
import sys
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from functools import partial, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

from fluidnb.arguments import checked
from fluidnb.debug.breakpoints import Breakpoint, parse
from fluidnb.debug.debugger import Debugger, Steps
from fluidnb.debug.expressions import code_of
from fluidnb.debug.history import Access, accesses
from fluidnb.debug.snapshot import Snapshot
from fluidnb.debug.worker import Pause, Request, worker_of
from fluidnb.errors import EnforceNotMet, FluidError, NotFound, OpValueError
from fluidnb.program import Program, default_main_program, hooks
from fluidnb.runtime.executor import Executor, Prepared
from fluidnb.runtime.interpreter.failed_run import last_failed
from fluidnb.runtime.program_state import program_state
from fluidnb.runtime.scope import Scope, global_scope
from fluidnb.utils.representations import repr_html, save_html
from fluidnb.values import invalidation as epoch
from fluidnb.values.place import CPUPlace, Place

BUDGET = 256 << 20  # bytes of the undo journal by default

P = ParamSpec("P")
T = TypeVar("T")

_current: list[weakref.ref[Session]] = []  # the session that front ends use by default


def _method(
    request: Callable[Concatenate[Debugger, P], T], only_reads: bool = False, name: str = ""
) -> Callable[Concatenate[Session, P], T]:
    """A method of a session that does a method of the debugger; observers may call those that only read."""

    @wraps(request)
    def method(self: Session, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.inspect(request, *args, **kwargs) if only_reads else self.do(request, *args, **kwargs)

    # Its arguments are checked by the annotations of the debugger's method, its object as a session.
    method.__module__, method.__qualname__ = __name__, f"Session.{name or request.__name__}"
    return checked(cast("Callable[Concatenate[Session, P], T]", method))


class Stopped(FluidError):
    """A run is paused, and nothing can continue it: no prompt, no panel, no ``on_stop``."""


class Role(Protocol):
    """A trainer or a parameter server of a training, whose program runs again when a run is over."""

    name: str

    @property
    def there(self) -> Callable[..., Any] | None:
        """Gives the result of a function of the session in the process of the role; None where that is this one."""

    def wait(self) -> None:
        """Wait until it is paused."""

    def leave(self) -> None:
        """Let it run on without stops."""


class Session:
    """A debug session of a program.

    Args:
        program: the program; default the main program.
        feed: what to feed; with it (``{}`` is enough) a run begins at once, paused at its first operator.
        scope: the scope of persistable variables; default the global scope.
        place: where to run; default the CPU.
        budget: bytes of the undo journal; older steps are recomputed when they are needed.
        inline: whether requests are done in the caller's thread; without threads, as in a browser, they always are.

    Attributes:
        around: the user's own names, for expressions; default those of ``__main__``.
        on_stop: called with the session, in the caller's thread, when a run in ``exe.run`` stops; default the
            ``(fluid)`` prompt in a terminal, else `Stopped` is raised.
        role: the role of a training that the session is in, or None.

    Source: DESIGN, "Notebook" and decisions 4 and 5; release note of Fluid 0.11 ("a debugger, like GDB").
    """

    def __init__(
        self, program: Program | None = None, feed: Mapping[str, Any] | None = None, fetch_list: Any = None,
        scope: Scope | None = None, place: Place | None = None, budget: int = BUDGET, inline: bool = False,
    ) -> None:  # fmt: skip
        self.program = default_main_program() if program is None else program
        self.on_stop: Callable[[Session], None] | None = None
        self.around: Mapping[str, Any] | None = None
        self.role: Role | None = None
        self.waited_for = self.stop_at_entry = False
        self._programs: list[Program] = []
        self._scope, self._place = scope, CPUPlace() if place is None else place
        self._debugger = Debugger(budget)
        self._worker = worker_of(self._debugger.pausing.set, inline)
        self._finish = weakref.finalize(self, self._worker.end)
        self._pause = Pause(self._debugger.pausing)
        _current[:] = [weakref.ref(self)]
        if hooks.debug_began is not None:
            hooks.debug_began(self)
        if feed is not None:
            self.begin(feed, fetch_list)

    def __del__(self) -> None:
        """Remove the scopes of a session that was not closed from the user's."""
        if hasattr(self, "_debugger"):
            self._debugger.tape.close()

    @property
    def there(self) -> Callable[..., Any] | None:
        """Calls functions of the session that is in the role, where that is in another process; None for here."""
        return None if self.role is None else self.role.there

    # ---- requests to the worker

    def post(self, request: Callable[Concatenate[Debugger, P], T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Post a method of `Debugger`, or a function of one, without waiting for it; safe in any callback."""
        return self._posted(request, *args, **kwargs).future

    def _posted(self, request: Callable[Concatenate[Debugger, P], Any], *args: P.args, **kwargs: P.kwargs) -> Request:
        self._require_open()
        posted = Request(partial(request, self._debugger, *args, **kwargs), self._pause)
        self._pause.put(posted, self._worker.put)
        self._worker.work()
        return posted

    def do(self, request: Callable[Concatenate[Debugger, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Post a request and wait; Ctrl-C pauses the program, it does not stop it."""
        if self._worker.busy_here:
            raise EnforceNotMet(
                "An observer may only inspect the session.", expected="values, names, expressions, breakpoints",
                received=getattr(request, "__name__", None), hint="session.post does it afterwards.",
            )  # fmt: skip
        try:
            posted = self._posted(request, *args, **kwargs)
            while True:
                try:
                    if posted.wait(0.2):
                        return cast(T, posted.future.result())
                except KeyboardInterrupt:
                    if posted.done and isinstance(posted.future.exception(), KeyboardInterrupt):
                        raise  # of the request itself
                    self.pause()
        except KeyboardInterrupt:  # before it waits, or between two waits: nothing may run on unseen
            self.pause()
            raise

    def inspect(self, request: Callable[Concatenate[Debugger, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do a request that only reads; observers may call this too."""
        if self._worker.busy_here:
            return request(self._debugger, *args, **kwargs)
        return self.do(request, *args, **kwargs)

    def post_between_steps(
        self, request: Callable[Concatenate[Debugger, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> Future[T]:
        """Post a request that need not wait until the program pauses; one that runs continues afterwards."""
        return self._posted_between_steps(request, *args, **kwargs).future

    def _posted_between_steps(
        self, request: Callable[Concatenate[Debugger, P], Any], *args: P.args, **kwargs: P.kwargs
    ) -> Request:
        self._require_open()
        posted = Request(partial(request, self._debugger, *args, **kwargs))
        self._debugger.between_steps.put(posted.run)
        self._worker.put(Request(self._debugger.run_between_steps))
        self._worker.work()
        return posted

    def do_between_steps(self, request: Callable[Concatenate[Debugger, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The same as `post_between_steps`, and wait."""
        posted = self._posted_between_steps(request, *args, **kwargs)
        interrupted = False
        while not posted.done:
            try:
                posted.wait(0.2)
            except KeyboardInterrupt:  # half of what is done in here would be worse than a moment
                interrupted = True
            if not posted.done and not self._finish.alive:
                raise EnforceNotMet("This session is closed.")
        if interrupted:
            raise KeyboardInterrupt
        return cast(T, posted.future.result())

    def settle(self, seconds: float) -> bool:
        """Wait until what was posted so far is done, at most so many seconds; whether it is."""
        return not wait([self._pause.last], timeout=seconds).not_done

    def _require_open(self) -> None:
        if not self._finish.alive:
            raise EnforceNotMet("This session is closed.", hint="fluid.debug(program) begins another.")

    def pause(self) -> None:
        """Let a running program pause after the current operator; so does one that is about to run."""
        self._pause.want()

    @checked
    def observe(self, observer: Callable[[Snapshot], None]) -> Callable[[Snapshot], None]:
        """Report every snapshot to an observer, at most ten times a second while the program runs.

        Args:
            observer: called by the worker, now and from now on; what it raises is printed, and noted in the
                next snapshot.
        """
        self.do(Debugger.observe, observer)
        return observer

    @checked
    def forget(self, observer: Callable[[Snapshot], None]) -> None:
        """Remove an observer."""
        self.do(Debugger.forget, observer)

    # ---- runs

    def begin(self, feed: Mapping[str, Any] | None = None, fetch_list: Any = None) -> Snapshot:
        """Begin a run, paused at its first operator; earlier runs can still be stepped back to."""
        scope = global_scope() if self._scope is None else self._scope
        lowered, values = Executor(self._place).prepare(self.program, feed, fetch_list, scope)
        start = Prepared(lowered, self.program, scope, values, True)
        return self.do(Debugger.begin, start)

    def __enter__(self) -> Session:
        """From now on ``exe.run`` of this program runs in this session."""
        self.attach(self.program)
        return self

    def __exit__(self, *exc: object) -> None:
        for program in self._programs:
            state = program_state(program.desc)
            if state.attached == self._run:
                state.attached = None
        self._programs = []

    @checked
    def attach(self, program: Program) -> None:
        """From now on ``exe.run`` of a program runs in this session too; `program` is the one that ran last."""
        state = program_state(program.desc)
        if state.attached is not None:
            raise EnforceNotMet("This program is in another debug session.", hint="close that one first.")
        state.attached = self._run
        self._programs.append(program)
        epoch.ask()  # bound runs check again, and find this session

    #: Earlier name.
    join = attach

    def _run(self, start: Prepared) -> list[Any]:
        """A run of ``exe.run`` while the session is attached."""
        self.program = start.program
        self.waited_for = True
        try:
            return self._run_to_end(start)
        finally:
            self.waited_for = False

    def _run_to_end(self, start: Prepared) -> list[Any]:
        """The fetched values; at each stop, `on_stop` or the prompt decides how to continue."""
        paused, self.stop_at_entry = self.stop_at_entry, False
        snapshot = self.do(Debugger.begin, start, paused)
        fresh = True
        while True:
            snapshot = snapshot if paused else self.do(Debugger.continue_, fresh)
            paused = False
            if snapshot.state == "done":
                return self.do(Debugger.results, start.return_numpy)
            on_stop = self.on_stop or (hooks.debug_prompt() if hooks.debug_prompt is not None else None)
            if on_stop is None:
                raise stopped_error(snapshot)
            on_stop(self)
            if self.snapshot.state == "done":
                return self.do(Debugger.results, start.return_numpy)
            if self.snapshot.error is not None:
                raise self.snapshot.error
            fresh = False

    @property
    def results(self) -> list[Any]:
        """The values of ``fetch_list``, after the end of the run."""
        return self.do(Debugger.results, True)

    def close(self) -> None:
        """End the session: its scopes are removed, its thread ends, the program runs as before."""
        if self.role is not None:
            self.role.leave()
        self.__exit__()
        if self._finish.alive:
            self.do(Debugger.close)
            self._finish()

    # ---- stepping

    @property
    def snapshot(self) -> Snapshot:
        """The current state."""
        return self._debugger.snapshot

    step = _method(Debugger.step)
    next = _method(Debugger.next)
    out = _method(Debugger.out)
    back = _method(Debugger.back)
    step_back_over = _method(Debugger.step_back_over)
    reverse_continue = _method(Debugger.reverse_continue)
    last_write = _method(Debugger.last_write)
    restart = _method(Debugger.restart)
    go = _method(Debugger.go)

    def continue_(self) -> Snapshot:
        """Run to the next breakpoint, or to the end."""
        return self.do(Debugger.continue_)

    @checked
    def run_to(self, where: str) -> Snapshot:
        """Run to an operator, line, block or condition, once."""
        return self.do(Debugger.run_to, parse(where))

    #: Earlier names.
    go_on, back_over, back_on = continue_, step_back_over, reverse_continue

    # ---- values, edits, watches, breakpoints

    __getitem__ = _method(Debugger.value, only_reads=True, name="__getitem__")
    names = _method(Debugger.names, only_reads=True)
    marks = _method(Debugger.marks, only_reads=True)
    unwatch = _method(Debugger.unwatch)
    clear = _method(Debugger.clear_breakpoints, name="clear")

    @checked
    def history(self, name: str) -> list[Access]:
        """Replay the current run up to here, and list each step that reads or writes a variable or its gradients."""
        return self.inspect(accesses, name)

    @checked
    def evaluate(self, text: str) -> Any:
        """Evaluate a Python expression over the program's variables, then those in ``around``."""
        around = vars(sys.modules["__main__"]) if self.around is None else self.around
        return self.inspect(Debugger.evaluate, text, around)

    @checked
    def edit(self, name: str, value: Any) -> None:
        """Set a variable; stepping back undoes it.

        Args:
            value: a number, or an array of its shape.
        """
        self.do(Debugger.edit, name, value)

    @checked
    def change_op(self, block: int, index: int, **attrs: Any) -> None:
        """Set attributes of an operator for the rest of this run; the program itself stays as it is."""
        self.do(Debugger.change_op, block, index, attrs)

    @checked
    def watch(self, text: str) -> None:
        """Evaluate an expression in every snapshot."""
        self.check_watch(text)
        self.do(Debugger.watch, text)

    @checked
    def check_watch(self, text: str) -> None:
        """Check an expression for `watch`."""
        if text not in self.program.global_block().vars and not _is_expression(text):
            raise OpValueError("That cannot be watched.", expected="a variable, or a Python expression", received=text)

    @checked
    def stop_at(self, where: str | Callable[..., Any], after: int = 0) -> Breakpoint:
        """Set a breakpoint.

        Args:
            where: ``op mul``, ``var fc_0.w_0``, ``line net:3``, ``block 1@5``, ``at 0:12``, ``nan``,
                ``when loss.mean() > 3``, or a function of a `View` that returns whether to stop.
        """
        point = parse(where) if isinstance(where, str) else _condition(where)
        point.after = after or point.after
        self.do(Debugger.add_breakpoint, point)
        return point

    @property
    def breakpoints(self) -> tuple[Breakpoint, ...]:
        """The breakpoints."""
        return tuple(self._debugger.breakpoints)

    @property
    def watches(self) -> tuple[str, ...]:
        """The expressions that snapshots evaluate."""
        return tuple(self._debugger.watches)

    @property
    def inline(self) -> bool:
        """Whether requests are done in the caller's thread, so that Ctrl-C alone pauses a running program."""
        return self._worker.inline

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return not self._finish.alive

    @checked
    def save(self, file: str | os.PathLike[str], last: Steps | None = None, max_bytes: int = 2_000_000) -> Path:
        """Write the program and all recorded steps as one HTML file, which needs no network and no kernel.

        A reader steps through it in both directions, opens tensors, and searches the program. The size is printed
        before the file is written. Large tensors are thinned to fit: their statistics are of all elements, the elements
        in the file are evenly spaced.

        Args:
            file: path of the file.
            last: the number of steps at most, the last ones; None for all that are recorded.
            max_bytes: bytes of the file at most.

        Returns:
            The path of the file.

        Raises:
            OpValueError: the program alone is larger.
        """
        return save_html(self, file, last=last, max_bytes=max_bytes)

    def __repr__(self) -> str:
        return f"<debug session: {self.snapshot.text}>"

    _repr_html_ = repr_html


def current() -> Session | None:
    """The session that was begun last, if it is still open."""
    session = _current[-1]() if _current else None
    return session if session is not None and not session.closed else None


debug = Session  # `fluid.debug(...)` begins a session


def post_mortem(budget: int = BUDGET) -> Session:
    """Replay the last failed run up to the operator that failed.

    Feeds and random numbers are the same. Variables that the run had changed before it failed are restored first where
    a copy was kept: with FLAGS_check_nan_inf each run keeps one. Without it the snapshot names them.

    Args:
        budget: bytes of the undo journal.
    """
    failed = last_failed()
    program = None if failed is None else failed.program()
    if failed is None or program is None:
        raise NotFound(
            "There is no failed run.", expected="a run that raised, whose program and scope still exist",
            hint="fluid.debug(program, feed=...) steps through a run from its beginning.",
        )  # fmt: skip
    session = Session(program, scope=failed.scope(), place=failed.place, budget=budget)
    session.do(Debugger.replay_failed, failed)
    return session


def stopped_error(snapshot: Snapshot) -> BaseException:
    """The error of a paused run that nothing can continue: that of its operator, or `Stopped`."""
    if snapshot.error is not None:
        return snapshot.error
    return Stopped(
        f"The run is paused: {snapshot.reason}.", received=snapshot.text,
        hint="%fluid step, back and continue move it; session.on_stop decides without a prompt.",
    )  # fmt: skip


def _condition(test: Callable[..., Any]) -> Breakpoint:
    """A breakpoint with a function, which may be an object without a name."""
    return Breakpoint("when", getattr(test, "__name__", repr(test)), test=test)


def _is_expression(text: str) -> bool:
    try:
        code_of(text, "<watch>")
    except SyntaxError:
        return bool(re.fullmatch(r"[^\s()]+@[^\s()]+", text))  # the name of a gradient
    return True
