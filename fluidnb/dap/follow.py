"""What a debugged script runs and prints: its programs are walked, its text goes to the clients too."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from fluidnb.debug.session import Session
from fluidnb.program import Program, hooks
from fluidnb.runtime.program_state import program_state


@contextlib.contextmanager
def following(session: Session, startup: bool = False) -> Iterator[None]:
    """Inside, the session walks every program that ``exe.run`` is given.

    Args:
        session: the session.
        startup: programs that only give variables their first values too.

    Yields:
        Nothing.

    Example:
        >>> y = fluid.layers.relu(fluid.layers.fill_constant([1], "float32", 2.0))
        >>> session = fluid.debug(fluid.Program())
        >>> with following(session):
        ...     fluid.Executor().run(fetch_list=[y])
        [array([2.], dtype=float32)]
        >>> session.snapshot.state, session.snapshot.at
        ('done', 2)
        >>> session.close()
    """
    before = hooks.before_run

    def join(program: Program, scope: Any) -> None:
        if before is not None:
            before(program, scope)
        if program_state(program.desc).attached is None and (startup or not only_initialises(program)):
            session.join(program)

    hooks.before_run = join
    try:
        yield
    finally:
        hooks.before_run = before


def only_initialises(program: Program) -> bool:
    """Whether a program does nothing but give variables that last their first values.

    Args:
        program: the program.

    Example:
        >>> y = fluid.layers.fc(fluid.layers.data("x", shape=[2]), 1)
        >>> only_initialises(fluid.default_startup_program()), only_initialises(fluid.default_main_program())
        (True, False)
    """
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


class Told(io.TextIOBase):
    """A stream that tells somebody, line by line, what is written to another one.

    Args:
        stream: where text goes; None where nobody but those who are told sees it.
        tell: called with what is written.
    """

    def __init__(self, stream: TextIO | None, tell: Callable[[str], None]) -> None:
        self._stream, self._tell, self._held = stream, tell, ""

    def write(self, text: str, /) -> int:
        """Write text, and tell it."""
        if self._stream is not None:
            self._stream.write(text)
        whole, end, rest = (self._held + text).rpartition("\n")
        if end:
            self._tell(whole + end)
        self._held = rest
        return len(text)

    def flush(self) -> None:
        """Let the stream write what it holds; tell a line that is not finished."""
        held, self._held = self._held, ""
        if held:
            self._tell(held)
        if self._stream is not None:
            self._stream.flush()

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""
        return self._stream is not None and self._stream.isatty()

    def fileno(self) -> int:
        """The stream's file."""
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
def telling(tell: Callable[[str, str], None], silent: bool = False) -> Iterator[None]:
    """Inside, what is printed is told too.

    Args:
        tell: called with the text and ``stdout`` or ``stderr``.
        silent: whether it is only told.

    Yields:
        Nothing.

    Example:
        >>> heard = []
        >>> with telling(lambda text, where: heard.append((text, where)), silent=True):
        ...     print("hello")
        >>> heard
        [('hello\\n', 'stdout')]
    """
    out, err = sys.stdout, sys.stderr
    sys.stdout = Told(None if silent else out, lambda text: tell(text, "stdout"))
    sys.stderr = Told(None if silent else err, lambda text: tell(text, "stderr"))
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        sys.stdout, sys.stderr = out, err
