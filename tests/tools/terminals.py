"""The end of a program in a terminal of pexpect."""

from __future__ import annotations

import contextlib
import signal
from typing import Any


def end(child: Any) -> None:
    """End a program and close its terminal.

    `close(force=True)` gives it a tenth of a second after SIGKILL, and fails on a busy machine.
    """
    import pexpect

    if child.isalive():
        child.kill(signal.SIGKILL)
        with contextlib.suppress(pexpect.ExceptionPexpect):  # it has ended in between
            child.wait()
    child.close()
