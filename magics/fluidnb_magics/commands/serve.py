"""``%fluid serve``: a debug adapter server for editors."""

from fluidnb.dap.host import Host
from fluidnb.dap.server import Server, new_token
from fluidnb.debug.session import Session, current
from fluidnb_magics.commands._command import Namespace, Section, UsageError, argument, command, program_option
from fluidnb_magics.display import show, width
from fluidnb_magics.session.workbench import Workbench


@command(Section.DEBUG, "serve --port 5678")
@argument("--port", type=int, default=0, metavar="N", help="the port; any free one if left out")
@argument("--stop", action="store_true", help="detach all editors and close the port")
@program_option("a program of this session, if there is no debug session")
def serve(bench: Workbench, args: Namespace) -> None:
    """Let an editor attach to the debug session (Debug Adapter Protocol, local port).

    It prints the port, the path of a file with a token, and a launch.json. If there is no debug session, one is started
    that waits for runs, as with ``%fluid debug on``. The editor, ``%fluid step`` and the panel control the same
    session. While an editor is attached, a run that stops waits for it.
    """
    if args.stop:
        if bench.server is None:
            raise UsageError("No server is running; %fluid serve starts one.")
        bench.server.close()
        bench.server = None
        show(bench.shell, [[("the server is stopped", "dim")]])
        return
    if bench.server is None:
        token = new_token()
        bench.server = Server(Host(current, token), token, args.port)
    elif args.port not in (0, bench.server.port):
        raise UsageError(f"The server already runs on port {bench.server.port}; %fluid serve --stop stops it.")
    if current() is None:
        bench.session = Session(bench.existing(args.program)[0]).__enter__()
        bench.session.around = bench.shell.user_ns
    name = "Fluid: " + ("terminal" if width(bench.shell) else "notebook")
    show(bench.shell, [[(row, "")] for row in bench.server.text(name).splitlines()])
