"""The run that failed last, kept so that a debugger can walk it again up to the operator that failed."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluidnb.program import Program
from fluidnb.runtime.compile.lowering import LoweredProgram
from fluidnb.runtime.feed_fetch import Fed
from fluidnb.runtime.interpreter.checkpoint import Checkpoint
from fluidnb.runtime.scope import Scope
from fluidnb.values.copies import on_host
from fluidnb.values.reader import EOFException


@dataclass(frozen=True, slots=True)
class FailedRun:
    """A failed run, recorded for post-mortem debugging.

    Args:
        program: the program, as long as somebody has it.
        scope: the user's scope, as long as somebody has it.
        fetches: names of what was fetched.
        place: where it ran.
        version: of the program; another one cannot be walked as it was.
        check_nan: whether it looked for NaN.
        values: what was fed, copied to the host.
        number: which run of the program it was.
        error: what it raised, as text; the exception itself would hold the user's variables.
        began: whether any operator may have run; if not, nothing has changed.
        before: what the variables of the scope were that the plan writes; None when no copy was kept.
    """

    program: weakref.ref[Program]
    scope: weakref.ref[Scope]
    fetches: tuple[str, ...]
    place: Any
    version: int
    check_nan: bool
    values: Mapping[str, Fed]
    number: int
    error: str
    began: bool
    before: Checkpoint | None


_last: list[FailedRun] = []


def note(
    program: Program, scope: Scope, plan: LoweredProgram, values: Mapping[str, Fed], number: int, error: BaseException,
    began: bool, before: Checkpoint | None = None,
) -> None:  # fmt: skip
    """Remember a failed run in place of the one before it; one that the user, or the end of a pass, ended is none.

    Args:
        program: the program.
        scope: the user's scope.
        plan: the plan.
        values: what was fed.
        number: which run it was.
        error: what it raised, as text; the exception itself would hold the user's variables.
        began: whether any operator may have run.
        before: copies of what the run changes, if there are any.
    """
    if isinstance(error, Exception) and not isinstance(error, EOFException):
        _last.clear()
        try:
            copies = {name: (np.array(on_host(array), order="K"), lod) for name, (array, lod) in values.items()}
        except Exception:  # a device that gives nothing any more; what the run raised says more
            return
        _last[:] = [
            FailedRun(
                weakref.ref(program), weakref.ref(scope), plan.fetches, plan.place, plan.version, plan.check_nan,
                copies, number, str(error), began, before,
            )
        ]  # fmt: skip


def last_failed() -> FailedRun | None:
    """The run that failed last, if its program and its scope are still there, and the program as it was.

    Example:
        >>> last_failed() is None or isinstance(last_failed().error, str)
        True
    """
    run = _last[0] if _last else None
    program = None if run is None else run.program()
    if run is None or program is None or program.desc.version != run.version or run.scope() is None:
        return None
    return run
