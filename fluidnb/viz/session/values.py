"""Summaries of tensors: those that a paused session wrote last and reads next, the current one of a variable."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from fluidnb.debug.debugger import Debugger
from fluidnb.debug.journal import wrote
from fluidnb.debug.session import Session
from fluidnb.debug.view import has_value
from fluidnb.op import EMPTY
from fluidnb.runtime.scope import Scope
from fluidnb.values.tensor import LoDTensor
from fluidnb.viz.values.model import TensorSummary
from fluidnb.viz.values.reader import read_tensor

#: Variables of each kind read at most.
_MOST = 6


@dataclass(frozen=True, slots=True)
class Values:
    """The tensors around the position of a session."""

    reads: tuple[TensorSummary, ...] = ()  # inputs of the next operator
    wrote: tuple[TensorSummary, ...] = ()  # outputs of the last step
    fetched: tuple[TensorSummary, ...] = ()  # fetched values, after the end of the run
    more: int = 0  # number of further outputs of the last step


def is_paused(session: Session) -> bool:
    """Whether the values of a session can be read."""
    return not session.closed and session.snapshot.state in ("paused", "done")


def read_values(session: Session) -> Values:
    """Reads the tensors around the position of a session."""
    if not is_paused(session):
        return Values()
    return session.inspect(_read)


def _read(debugger: Debugger) -> Values:
    tape, names = debugger.tape, debugger.snapshot.wrote
    interpreter = tape.interpreter
    here = interpreter.here
    reads = _summaries(() if here is None else here.reads(), interpreter.stack[-1].scope)
    fetched = _summaries(interpreter.lowered.fetches, interpreter.stack[0].scope) if tape.done else ()
    if not names or tape.at == tape.runs[-1].first:
        return Values(reads, (), fetched)
    undo = tape.last()
    inner = undo.stack[-1]
    scope = inner.scope if inner.pc < len(inner.block.ops) else undo.stack[-2].scope  # after leaving a block
    names = tuple(name for name in names if (v := scope.find_var(name)) is not None and wrote(undo, v))
    return Values(reads, _summaries(names[:_MOST], scope), fetched, max(0, len(names) - _MOST))


def _summaries(names: Iterable[str], scope: Any) -> tuple[TensorSummary, ...]:
    summaries = (_summary(name, scope) for name in list(dict.fromkeys(names))[:_MOST] if name != EMPTY)
    return tuple(summary for summary in summaries if summary is not None)


def last_value(
    name: str, scope: Scope, session: Session | None, report: Callable[[TensorSummary | None, str], None]
) -> None:
    """Reports a tensor in a paused session, else in the scope, with its origin in words; never waits."""
    if session is None or not is_paused(session):
        report(_summary(name, scope), "in the scope")
        return

    def answer(result: Future[Any]) -> None:
        if result.exception() is None:
            report(result.result(), f"at step {session.snapshot.at} of the debug session")

    def read(debugger: Debugger) -> TensorSummary | None:
        return _summary(name, debugger.tape.interpreter.stack[-1].scope)

    session.post(read).add_done_callback(answer)


def _summary(name: str, scope: Any) -> TensorSummary | None:
    variable = scope.find_var(name)
    value = None if variable is None else variable.value
    return read_tensor(value, name) if type(value) is LoDTensor and has_value(value) else None
