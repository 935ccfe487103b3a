"""``%fluid compile``: the program as C source code."""

from fluidnb.code_generator import CodeGenerator
from fluidnb_magics.arguments import unquoted
from fluidnb_magics.commands._command import Namespace, Section, UsageError, Workbench, argument, command, show


@command(Section.RUN, "compile code/ --feed image --fetch predict")
@argument("path", help="a new or empty folder for the source")
@argument("--feed", default="", help="names of the fed variables, with commas")
@argument("--fetch", required=True, help="names of the variables to compute, with commas")
@argument("--batch", default="1", help="the size of a batch (1)")
@argument("--program", default=None, help="the program; the default one if left out")
@argument("--embed-weights", action="store_true", help="write the parameters into the source")
@argument("--build", action="store_true", help="compile it too")
def compile(bench: Workbench, args: Namespace) -> None:
    """Write a program as C source code that needs neither Python nor fluidnb.

    The folder gets model.c, model.h, main.c, a Makefile, a README and the parameters. Sizes are fixed: a declared -1
    becomes the batch. A program that trains becomes a training step.
    """
    if not args.batch.isdecimal() or int(args.batch) < 1:
        raise UsageError(f"--batch is a number from 1 on, and {args.batch} is none.")
    program, _ = bench.program(args.program)
    generator = CodeGenerator(batch=int(args.batch), embed_weights=args.embed_weights)
    feeds, fetches = ([n.strip() for n in text.split(",") if n.strip()] for text in (args.feed, args.fetch))
    generator.transpile(program, feeds, fetches)
    lines = [f"written   {file}" for file in generator.save(unquoted(args.path))]
    if args.build:
        lines.append(f"built     {generator.build(flags=('-O3', '-march=native'))}")
    show(bench.shell, [[(line, "")] for line in lines])
