"""``%fluid roles``: trainers and parameter servers, the variables of each and what flows between them."""

from fluidnb.distributed.training import endpoints
from fluidnb.transpiler import DistributeTranspiler
from fluidnb.viz.roles.reader import read_roles
from fluidnb.viz.roles.svg import roles_html
from fluidnb.viz.roles.text import roles_lines
from fluidnb_magics.arguments import positive
from fluidnb_magics.commands._command import (
    Namespace,
    Section,
    Workbench,
    argument,
    command,
    program_option,
    show,
    width,
)


@command(Section.INSPECT, "roles --trainers 4 --pservers 2")
@argument("--trainers", type=positive, metavar="N", help="draw a division among N trainers, without a run")
@argument("--pservers", type=positive, metavar="N", help="and N parameter servers (2)")
@program_option()
def roles(bench: Workbench, args: Namespace) -> None:
    """Draw trainers and parameter servers, the variables of each, and what flows between them in a step.

    Without --trainers these are the roles of the last %fluid train --trainers, with the numbers of its run; before
    one, those of 2 trainers and 2 servers.
    """
    run = bench.distributed
    if run is not None and not (args.trainers or args.pservers or args.program):
        picture = run.training.picture()
    else:
        main, startup = bench.existing(args.program)
        transpiler = DistributeTranspiler()
        transpiler.transpile(
            0, main, pservers=endpoints(args.pservers or 2), trainers=args.trainers or 2,
            startup_program=startup.clone(),
        )  # fmt: skip
        picture = read_roles(transpiler)
    show(bench.shell, roles_lines(picture, width(bench.shell)), lambda: roles_html(picture))
