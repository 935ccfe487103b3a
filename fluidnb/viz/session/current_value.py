"""What a variable holds as things stand: in a debug session that stands still, else in a scope."""

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
    name: str, scope: Scope, session: Session | None, tell: Callable[[TensorSummary | None, str], None]
) -> None:
    """Look at the tensor that a variable has_value, without waiting for it.

    Args:
        session: a session of its program, or None.
        tell: called with the tensor's summary, or None where there is none, and with where it was found; in the
            session's thread when it is found there.

    Example:
        >>> scope = fluid.Scope(); scope.var("x").get_tensor().set(np.ones(3, "float32"))
        >>> last_value("x", scope, None, lambda found, where: print(found.statistics, where))
        [1, 1, 1] in the scope
    """
    if session is None or session.closed or session.snapshot.state not in ("paused", "done"):
        tell(_summary(name, scope), "in the scope")
        return

    def answer(found: Future[Any]) -> None:
        if found.exception() is None:
            tell(found.result(), f"at step {session.snapshot.at} of the debug session")

    def read(debugger: Debugger) -> TensorSummary | None:
        return _summary(name, debugger.tape.machine.stack[-1].scope)

    session.post(read).add_done_callback(answer)


def _summary(name: str, scope: Any) -> TensorSummary | None:
    found = scope.find_var(name)
    value = None if found is None else found.value
    return read_tensor(value, name) if type(value) is LoDTensor and has_value(value) else None
