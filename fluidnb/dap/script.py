"""Debugging a whole script: its programs run in the session, its output goes to the clients too."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from fluidnb.debug.session import Session
from fluidnb.distributed.attachment import Attachment
from fluidnb.distributed.local import LocalEngine
from fluidnb.program import Program, hooks
from fluidnb.runtime.program_state import program_state


@contextlib.contextmanager
def attach_all(session: Session, startup: bool = False) -> Iterator[None]:
    """Inside, the session debugs every program that ``exe.run`` is given."""
    before = hooks.before_run

    def attach(program: Program, scope: Any) -> None:
        if before is not None:
            before(program, scope)
        if program_state(program.desc).attached is None and (startup or not only_initializes(program)):
            session.attach(program)

    def begins(engine: LocalEngine) -> None:
        """Go into the first trainer; what handles stops of a script's own runs handles those of roles."""
        front = session.on_stop or (hooks.debug_prompt() if hooks.debug_prompt is not None else None)
        if front is not None and session.snapshot.state in ("idle", "done"):
            session.__exit__()
            Attachment(engine, session, front, stops=session.stop_at_entry or session.on_stop is not None).attach(
                "trainer0"
            )

    hooks.before_run, hooks.training_begins = attach, begins
    try:
        yield
    finally:
        hooks.before_run, hooks.training_begins = before, None


def only_initializes(program: Program) -> bool:
    """Whether a program only gives persistable variables their initial values."""
    block = program.desc.blocks[0]
    if len(program.desc.blocks) > 1:
        return False
    for op in block.ops:
        if any(op.ins.values()):
            return False
        names = [name for row in op.outs.values() for name in row]
        if not all(name in block.vars and block.vars[name].persistable() for name in names):
            return False
    return True


class Tee(io.TextIOBase):
    """A stream that copies what is written to another one, line by line."""

    def __init__(self, stream: TextIO | None, copy: Callable[[str], None]) -> None:
        self._stream, self._copy, self._unfinished = stream, copy, ""

    def write(self, text: str, /) -> int:
        """Write text."""
        if self._stream is not None:
            self._stream.write(text)
        whole, end, rest = (self._unfinished + text).rpartition("\n")
        if end:
            self._copy(whole + end)
        self._unfinished = rest
        return len(text)

    def flush(self) -> None:
        """Flush the stream, and copy an unfinished line."""
        unfinished, self._unfinished = self._unfinished, ""
        if unfinished:
            self._copy(unfinished)
        if self._stream is not None:
            self._stream.flush()

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""
        return self._stream is not None and self._stream.isatty()

    def fileno(self) -> int:
        """The stream's file descriptor."""
        if self._stream is None:
            raise OSError("text goes to the clients of the debugger")
        return self._stream.fileno()

    def writable(self) -> bool:
        """It can be written."""
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The stream's encoding."""
        return "utf-8" if self._stream is None else self._stream.encoding


@contextlib.contextmanager
def tee_output(copy: Callable[[str, str], None], silent: bool = False) -> Iterator[None]:
    """Inside, what is printed is copied too.

    Example:
        >>> copied = []
        >>> with tee_output(lambda text, stream: copied.append((text, stream)), silent=True):
        ...     print("hello")
        >>> copied
        [('hello\\n', 'stdout')]
    """
    out, err = sys.stdout, sys.stderr
    sys.stdout = Tee(None if silent else out, lambda text: copy(text, "stdout"))
    sys.stderr = Tee(None if silent else err, lambda text: copy(text, "stderr"))
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        sys.stdout, sys.stderr = out, err
