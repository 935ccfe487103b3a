"""``%fluid serve``: editors step through the programs of this shell."""

from __future__ import annotations

from IPython.core.error import UsageError
from IPython.core.magic_arguments import argument, magic_arguments

from fluidnb.dap.host import Host
from fluidnb.dap.server import Server, new_token
from fluidnb.debug.session import Session, current
from fluidnb_magics.arguments import parse_argstring
from fluidnb_magics.display import show, width
from fluidnb_magics.session.workbench import Workbench


@magic_arguments("fluid serve")
@argument("--port", type=int, default=0, metavar="N", help="where editors find it; any free port if not given")
@argument("--stop", action="store_true", help="send all editors away and give the port back")
@argument("--program", help="a program of this session, where no debug session has begun")
def serve(bench: Workbench, line: str) -> None:
    """Let an editor join the debug session, by the Debug Adapter Protocol on a port of this machine.

    It prints the port, the path of a file with a token, and a launch.json. Without a debug session one begins that
    waits for runs, as ``%fluid debug on`` does. The editor, ``%fluid step`` and the panel move each other. While it is
    connected, a run that stops waits for it.
    """
    args = parse_argstring(serve, line)
    if args.stop:
        if bench.server is None:
            raise UsageError("Nothing is served; %fluid serve begins it.")
        bench.server.close()
        bench.server = None
        show(bench.shell, [[("no editor can join any more", "dim")]])
        return
    if bench.server is None:
        token = new_token()
        bench.server = Server(Host(current, token), token, args.port)
    elif args.port not in (0, bench.server.port):
        raise UsageError(f"It is served on port {bench.server.port} already; %fluid serve --stop ends that.")
    if current() is None:
        bench.session = Session(bench.existing(args.program)[0]).__enter__()
        bench.session.around = bench.shell.user_ns
    show(bench.shell, [[(row, "")] for row in bench.server.text("Fluid: " + _where(bench)).splitlines()])


def _where(bench: Workbench) -> str:
    return "terminal" if width(bench.shell) else "notebook"
