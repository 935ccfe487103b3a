"""``fluidnb convert``: a saved model of Fluid, Paddle 2 or 3 in another format."""

from argparse import ArgumentParser, Namespace

from fluidnb.cli.command import Command


def arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("model", metavar="MODEL", help="its folder, prefix or file")
    parser.add_argument("-o", "--out", metavar="DIR", required=True, help="where the files go; created if missing")
    parser.add_argument("--to", default="pdmodel", metavar="FORMAT", help="%(default)s, programdesc or safetensors")
    parser.add_argument("--name", default="inference", help="what the files are called (%(default)s)")


def run(options: Namespace) -> int:
    """Open a model and save it."""
    from fluidnb.runtime.opened_model import open_model

    model = open_model(options.model)
    files = model.save(options.out, options.to, options.name)
    print(model)
    for file in files:
        print(f"written   {file}")
    return 0


COMMAND = Command(
    "Convert a saved model of Paddle 3 for Paddle 2, Fluid or safetensors.", arguments, run,
    example="examples:\n  fluidnb convert saved/inference.json -o old/          for Paddle 2 and 3\n"
    "  fluidnb convert saved/ -o fluid/ --to programdesc     for Fluid",
)  # fmt: skip
