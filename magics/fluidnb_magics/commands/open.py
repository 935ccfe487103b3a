"""``%fluid open``: a saved model of Fluid, Paddle 2 or 3, or ONNX."""

from fluidnb.runtime.opened_model import open_model
from fluidnb_magics.arguments import unquoted
from fluidnb_magics.commands._command import Namespace, Section, UsageError, Workbench, argument, command, show


@command(Section.INSPECT, "open saved/inference.json")
@argument("path", help="its folder, prefix or file")
@argument("--name", default="model", help="the variable that gets it (model)")
def open(bench: Workbench, args: Namespace) -> None:
    """Open a saved model: its program, parameters, feeds and fetches.

    The model is then in the variable ``model``: ``model.run(feed)`` runs it, ``%fluid cost model.program`` and other
    commands show its program.
    """
    if not args.name.isidentifier():
        raise UsageError(f"--name is the name of a variable, and {args.name} is none.")
    model = open_model(unquoted(args.path), place=bench.executor.place)
    bench.shell.user_ns[args.name] = model
    show(bench.shell, [[(f"{title:8}  ", "dim"), (text, "")] for title, text in model.facts()])
