"""The current value of a variable: in a paused debug session, else in a scope."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from fluidnb.debug.debugger import Debugger
from fluidnb.debug.session import Session
from fluidnb.debug.view import has_value
from fluidnb.runtime.scope import Scope
from fluidnb.values.tensor import LoDTensor
from fluidnb.viz.values.model import TensorSummary
from fluidnb.viz.values.reader import read_tensor


def last_value(
    name: str, scope: Scope, session: Session | None, report: Callable[[TensorSummary | None, str], None]
) -> None:
    """Reads the tensor of a variable without waiting.

    Args:
        session: a session of its program, or None.
        report: called with the summary of the tensor, None without one, and with its origin; in the thread of the
            session if it is paused.

    Example:
        >>> scope = fluid.Scope(); scope.var("x").get_tensor().set(np.ones(3, "float32"))
        >>> last_value("x", scope, None, lambda summary, origin: print(summary.statistics, origin))
        [1, 1, 1] in the scope
    """
    if session is None or session.closed or session.snapshot.state not in ("paused", "done"):
        report(_summary(name, scope), "in the scope")
        return

    def answer(result: Future[Any]) -> None:
        if result.exception() is None:
            report(result.result(), f"at step {session.snapshot.at} of the debug session")

    def read(debugger: Debugger) -> TensorSummary | None:
        return _summary(name, debugger.tape.machine.stack[-1].scope)

    session.post(read).add_done_callback(answer)


def _summary(name: str, scope: Any) -> TensorSummary | None:
    variable = scope.find_var(name)
    value = None if variable is None else variable.value
    return read_tensor(value, name) if type(value) is LoDTensor and has_value(value) else None
