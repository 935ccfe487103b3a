"""``fluidnb debug``: a script whose programs an editor steps through, forwards and backwards."""

from __future__ import annotations

import os
import signal
import sys
import threading
from argparse import REMAINDER, ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from fluidnb.cli.command import Command

if TYPE_CHECKING:
    from fluidnb.dap.host import Host
    from fluidnb.debug import Session

#: What a shell reports of a program that Ctrl-C has ended.
_INTERRUPTED = 130


def arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--port", type=int, default=0, help="where editors find it (default: any free port)")
    parser.add_argument("--stdio", action="store_true", help="speak with one editor, which has started this, by pipes")
    parser.add_argument("--no-wait", action="store_true", help="run at once; an editor may come later")
    parser.add_argument("--startup", action="store_true", help="also walk programs that only initialise")
    parser.add_argument("--force", action="store_true", help="although a real paddle is installed here")
    parser.add_argument("--seed", type=int, help="fix everything random, as fluidnb.seed(SEED) does")
    parser.add_argument("script", metavar="SCRIPT", type=Path)
    rest = parser.add_argument("arguments", metavar="ARGS", nargs=REMAINDER, help="what the script finds in sys.argv")
    rest.required = False  # or a missing script is told as two missing things


def run(options: Namespace) -> int:
    """Run a script under the debugger.

    Args:
        options: ``script``, ``arguments``, ``port``, ``stdio``, ``no_wait``, ``startup``, ``force``, ``seed``.

    Returns:
        0, what it gives to ``sys.exit``, 1 after an error of its own, or 130 when a client has ended it.

    Raises:
        FluidError: there is no such script, the port is taken, or a real paddle is installed.
    """
    from fluidnb.cli import script
    from fluidnb.dap.host import Host
    from fluidnb.dap.server import Server, new_token
    from fluidnb.debug import Session
    from fluidnb.program import Program

    script.check(options.script)
    session = Session(Program())
    token = "" if options.stdio else new_token()
    host = Host(lambda: session, token, stays=not options.stdio, interrupt=_interrupt)
    try:
        if options.stdio:
            return _by_pipes(host, lambda: _debugged(options, session, host))
        with Server(host, token, options.port) as server:
            print(server.text(f"Fluid: {options.script.name}"), file=sys.stderr, flush=True)
            return _debugged(options, session, host)
    finally:
        session.close()


def _by_pipes(host: Host, act: Callable[[], int]) -> int:
    """Speak by stdin and stdout, which the script does not see."""
    reader, writer = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)  # what is not Python's print goes where errors go
    os.close(nothing)
    host.welcome(reader, writer, writer.close)
    try:
        return act()
    finally:
        host.close()


def _debugged(options: Namespace, session: Session, host: Host) -> int:
    from fluidnb.cli import script
    from fluidnb.dap.follow import following, telling

    status = 1
    try:
        with script.as_program(options.script, options.arguments, options.force), following(session, options.startup):
            if options.seed is not None:
                from fluidnb.session import seed

                seed(options.seed)
            if not options.no_wait:
                if not options.stdio:
                    print("waiting for an editor; Ctrl-C ends it", file=sys.stderr, flush=True)
                host.wait_for_client()
            with telling(host.output, silent=options.stdio):
                status = _ran(options.script)
    except KeyboardInterrupt:
        status = _INTERRUPTED
    host.end(status)
    return status


def _ran(path: Path) -> int:
    from fluidnb.cli import script
    from fluidnb.cli.run import status_of

    try:
        script.run(path)
    except SystemExit as ended:
        return status_of(ended.code)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  whatever a script may raise
        script.tell(error, path)
        return 1
    return 0


def _interrupt() -> None:
    main = threading.main_thread().ident
    if main is not None:
        signal.pthread_kill(main, signal.SIGINT)


COMMAND = Command(
    "Run a script; an editor steps through its programs, forwards and backwards.", arguments, run,
    example="example:\n  fluidnb debug train.py --epochs 3\n\n"
    "It prints a port, a token and a launch.json, and waits for an editor\n"
    "that speaks the Debug Adapter Protocol.",
)  # fmt: skip
