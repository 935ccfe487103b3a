"""``fluidnb compile``: a saved model as C source code that needs neither Python nor fluidnb."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace

from fluidnb.cli.command import Command, number_from


def arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("model", metavar="MODEL", help="its folder, prefix or file")
    parser.add_argument("-o", "--out", metavar="PATH", required=True, help="a new or empty folder for the source")
    parser.add_argument("--target", default="c", metavar="TARGET", help="c (the default) or cuda")
    parser.add_argument("--batch", default=1, metavar="N", type=number_from(1), help="the size of a batch (1)")
    parser.add_argument(
        "--size", action="append", default=[], metavar="FEED=N,N,...", type=_size,
        help="all sizes of a feed, where the model leaves them open; may be given for several feeds",
    )  # fmt: skip
    parser.add_argument(
        "--max-steps", default=0, metavar="N", type=number_from(1),
        help="elements of an array of tensors and kept iterations of a loop at most, for models that have such",
    )  # fmt: skip
    parser.add_argument("--embed-weights", action="store_true", help="write the parameters into the source")
    parser.add_argument("--build", action="store_true", help="compile the source too, with $CC, gcc, clang or ziglang")


def _size(text: str) -> tuple[str, tuple[int, ...]]:
    """A feed and its sizes."""
    name, sign, sizes = text.rpartition("=")
    parts = sizes.split(",")
    if not sign or not all(part.strip().isdecimal() for part in parts):
        raise ArgumentTypeError(f"{text!r} is no feed with sizes, as in x=1,3,224,224")
    return name, tuple(map(int, parts))


def run(options: Namespace) -> int:
    """Open a model, and save its source."""
    from fluidnb.code_generator import CodeGenerator
    from fluidnb.code_generator.project import FAST
    from fluidnb.runtime.opened_model import open_model

    model = open_model(options.model)
    sizes = dict(options.size)
    feeds = {v.name: sizes.get(v.name, tuple(options.batch if n < 0 else n for n in v.shape)) for v in model.feeds}
    generator = CodeGenerator(target=options.target, embed_weights=options.embed_weights, max_steps=options.max_steps)
    generator.transpile(model.program, feeds | sizes, model.fetches, model.scope)
    for file in generator.save(options.out):
        print(f"written   {file}")
    if options.build:
        print(f"built     {generator.build(flags=FAST)}")
    return 0


COMMAND = Command(
    "Write a saved model as C source code.", arguments, run,
    example="examples:\n  fluidnb compile saved/ -o code/                            then make in code/\n"
    "  fluidnb compile inference.json -o code/ --size x=1,3,224,224 --build",
)  # fmt: skip
