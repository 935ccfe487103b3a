"""``%fluid cost``: multiply-adds and bytes of a program."""

from fluidnb.errors import OpTypeError
from fluidnb.program import Program
from fluidnb.program.cost import GROUPS, batch_shapes, program_cost
from fluidnb.viz.program.cost import cost_lines
from fluidnb_magics.arguments import evaluate, positive, unquoted
from fluidnb_magics.commands._command import Namespace, Section, argument, command, feed_option, program_option
from fluidnb_magics.commands._feeds import read_feed
from fluidnb_magics.commands._offers import programs
from fluidnb_magics.display import show
from fluidnb_magics.session.workbench import Workbench


@command(Section.INSPECT, "cost --by layer", programs)
@argument("what", nargs="?", help="a program of this session, or an expression; the program if empty")
@argument("--by", choices=GROUPS, default="op", help="what is summed up: op, layer, cell or role (op)")
@argument("--batch", type=positive, metavar="N", default=1, help="rows of every data variable (1)")
@feed_option("shapes of feeds, or values that have them: x=(32, 4)")
@program_option()
def cost(bench: Workbench, args: Namespace) -> None:
    """Show multiply-adds, bytes read and written, and arithmetic intensity of a program.

    An operation on one element counts as one multiply-add; op/byte is twice the multiply-adds over the bytes. ``at
    least`` marks sizes or repetitions that depend on values.
    """
    title = unquoted(args.what or args.program or "program")
    if title in bench.programs or not args.what:
        program = bench.existing(title if args.what else args.program)[0]
    else:
        program = evaluate(title, bench.shell.user_ns)
    if not isinstance(program, Program):
        raise OpTypeError(f"{title} is not a program.", expected="a Program", received=type(program).__name__)
    feeds = batch_shapes(program, args.batch)
    feeds |= {name: getattr(value, "shape", value) for name, value in read_feed(bench, args).items()}
    lines = cost_lines(program_cost(program, feeds), args.by, title)
    show(bench.shell, lines)
