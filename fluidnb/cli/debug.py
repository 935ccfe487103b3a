"""``fluidnb debug``: steps through the programs of a script or model, both ways, in an editor or in the terminal."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from fluidnb.cli import model
from fluidnb.cli.command import Command, script_arguments
from fluidnb.utils.main_signal import signal_main

if TYPE_CHECKING:
    from fluidnb.dap.host import Host
    from fluidnb.debug import Session

#: What a shell reports of a program that Ctrl-C has ended.
_INTERRUPTED = 130


def arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--prompt", action="store_true", help="a prompt in this terminal instead of an editor")
    parser.add_argument("--port", type=int, metavar="N", default=0, help="where editors find it (any free port)")
    parser.add_argument("--stdio", action="store_true", help="speak DAP on stdin and stdout, for an editor")
    parser.add_argument("--no-wait", action="store_true", help="run at once; an editor may come later")
    parser.add_argument("--startup", action="store_true", help="also debug programs that only initialize variables")
    script_arguments(parser)


def run(options: Namespace) -> int:
    """Run a script or a model under the debugger.

    Returns:
        0, what it gives to ``sys.exit``, 1 after an error of its own, or 130 when a client or ``quit`` has ended it.
    """
    from fluidnb.cli import script
    from fluidnb.dap.host import Host
    from fluidnb.dap.server import Server, new_token
    from fluidnb.debug import Session
    from fluidnb.errors import FluidError
    from fluidnb.program import Program
    from fluidnb.terminal.prompt import available_prompt

    options.act = None
    if model.is_model(options.script):
        given = model.parsed("debug", options.arguments, prompt=options.prompt)
        options.prompt, options.act = given.prompt, model.opened(options.script, given)
    else:
        script.check(options.script)
    prompt = available_prompt()
    if options.prompt and prompt is None:
        raise FluidError("--prompt needs a terminal.", hint="without it, an editor steps through the script.")
    session = Session(Program())
    token = "" if options.stdio else new_token()
    host = Host(lambda: session, token, stays=not options.stdio, interrupt=lambda: signal_main(signal.SIGINT))
    try:
        if options.stdio:
            return _by_pipes(host, lambda: _debugged(options, session, host, prompt))
        if options.prompt:
            return _debugged(options, session, host, prompt)
        with Server(host, token, options.port) as server:
            print(server.text(f"Fluid: {options.script.name}"), file=sys.stderr, flush=True)
            return _debugged(options, session, host, prompt)
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


def _debugged(options: Namespace, session: Session, host: Host, prompt: Callable[[Session], None] | None) -> int:
    from fluidnb.cli import script
    from fluidnb.dap.script import attach_all, tee_output

    status = 1
    try:
        named = options.script, options.arguments, options.force, options.seed
        program = script.as_program(*named) if options.act is None else contextlib.nullcontext()
        with program, attach_all(session, options.startup):
            can_press = prompt is not None and os.name == "posix"  # Windows waits for no key with `select`
            if options.prompt or (not options.no_wait and _wants_prompt(options, host, can_press)):
                session.on_stop, session.stop_at_entry = prompt, True
            with tee_output(host.output, silent=options.stdio):
                status = _ran(options.script, options.act)
    except KeyboardInterrupt:
        status = _INTERRUPTED
    host.end(status)
    return status


def _wants_prompt(options: Namespace, host: Host, terminal: bool) -> bool:
    """Wait for an editor; whether the user has pressed Enter in the terminal instead."""
    if options.stdio:
        host.wait_for_client()
        return False
    choice = "; Enter begins a prompt here" if terminal else ""
    print(f"waiting for an editor{choice}; Ctrl-C ends it", file=sys.stderr, flush=True)
    pressed, over = threading.Event(), threading.Event()

    def listen() -> None:
        while not over.is_set():
            if select.select([sys.stdin], [], [], 0.2)[0]:
                sys.stdin.readline()
                pressed.set()
                host.client_ready()
                return

    listener = threading.Thread(target=listen, name="fluid-debug-enter", daemon=True)
    if terminal:
        listener.start()
    try:
        host.wait_for_client(pressed.is_set)
    finally:
        over.set()
        if terminal:
            listener.join()
    return pressed.is_set()


def _ran(path: Path, act: Callable[[], int] | None) -> int:
    """Run a script, or a model by a function."""
    from fluidnb.cli import script
    from fluidnb.cli.run import status_of
    from fluidnb.debug.session import Stopped

    try:
        if act is not None:
            return act()
        script.run(path)
    except SystemExit as ended:
        return status_of(ended.code)
    except KeyboardInterrupt:
        raise
    except Stopped as left:
        print(f"{left.summary} {left.received}", file=sys.stderr)
        return _INTERRUPTED
    except BaseException as error:  # noqa: BLE001  whatever a script may raise
        script.print_error(error, path)
        return 1
    return 0


COMMAND = Command(
    "Run a script or a saved model; step through its programs, also backwards.", arguments, run,
    example="examples:\n  fluidnb debug --prompt train.py --epochs 3\n"
    "  fluidnb debug --prompt saved/ --feed x.npz\n\n"
    "The prompt stops at the first operator and knows the short words of gdb and pdb.\n"
    "Without --prompt it prints a port, the path of a token and a launch.json, and\n"
    "waits for an editor that speaks the Debug Adapter Protocol. In a terminal, Enter\n"
    "begins a prompt instead.",
)  # fmt: skip
