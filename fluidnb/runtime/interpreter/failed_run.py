"""The run that failed last, recorded so that a debugger can repeat it up to the operator that failed."""

import weakref
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from fluidnb.program import Program
from fluidnb.runtime.compile.lowering import LoweredProgram
from fluidnb.runtime.feed_fetch import Fed
from fluidnb.runtime.interpreter.checkpoint import Checkpoint
from fluidnb.runtime.scope import Scope
from fluidnb.values.copies import on_host
from fluidnb.values.reader import EOFException


class FailedRun(NamedTuple):
    """A failed run, recorded for post-mortem debugging."""

    program: weakref.ref[Program]
    scope: weakref.ref[Scope]  # the user's
    fetches: tuple[str, ...]
    place: Any
    version: int  # of the program; a changed one cannot be repeated
    check_nan: bool
    values: Mapping[str, Fed]  # the feeds, copied to the host
    number: int  # index of the run
    error: str  # the text alone: the exception refers to the user's variables
    began: bool  # whether any operator may have run; if not, nothing has changed
    before: Checkpoint | None  # the scope before the run; None where no copy was made


_last: list[FailedRun] = []


def note(
    program: Program, scope: Scope, lowered: LoweredProgram, values: Mapping[str, Fed], number: int,
    error: BaseException, began: bool, before: Checkpoint | None = None,
) -> None:  # fmt: skip
    """Record a failed run in place of the one before it; an interrupt or the end of a pass is no failure."""
    if isinstance(error, Exception) and not isinstance(error, EOFException):
        _last.clear()
        try:
            copies = {name: (np.array(on_host(array), order="K"), lod) for name, (array, lod) in values.items()}
        except Exception:  # a device that failed; the error of the run says more
            return
        run = FailedRun(
            weakref.ref(program), weakref.ref(scope), lowered.fetches, lowered.place, lowered.version,
            lowered.check_nan, copies, number, str(error), began, before,
        )  # fmt: skip
        _last.append(run)


def last_failed() -> FailedRun | None:
    """The run that failed last; None when its program or its scope is gone, or the program has changed."""
    run = _last[0] if _last else None
    program = None if run is None else run.program()
    if run is None or program is None or program.desc.version != run.version or run.scope() is None:
        return None
    return run
