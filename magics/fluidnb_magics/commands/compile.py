"""``%fluid compile``: the program as C source code."""

from itertools import chain

from fluidnb.code_generator import CodeGenerator
from fluidnb.code_generator.project import FAST
from fluidnb.program.cost import batch_shapes
from fluidnb.runtime.inference_model import get_inference_program
from fluidnb.runtime.scope import global_scope
from fluidnb_magics.arguments import positive, unquoted, variables
from fluidnb_magics.commands._command import (
    Namespace,
    Section,
    UsageError,
    Workbench,
    argument,
    command,
    feed_option,
    fetch_option,
    program_option,
    show,
)
from fluidnb_magics.commands._feeds import read_feed


@command(Section.RUN, "compile code/ --fetch h --inference")
@argument("path", help="a new or empty folder for the source")
@fetch_option("variables to compute")
@feed_option("sizes of feeds, or values that have them: x=(32, 4)")
@argument("--target", choices=("c", "cuda"), default="c", help="the language: %(choices)s")
@argument("--batch", type=positive, metavar="N", default=1, help="rows of every data variable, or sequences (1)")
@argument("--max-steps", type=positive, metavar="N", default=0, help="most elements of arrays, and iterations of loops")
@argument("--inference", action="store_true", help="without what only training needs")
@argument("--embed-weights", action="store_true", help="write the parameters into the source")
@argument("--build", action="store_true", help="compile the source too, with $CC, gcc, clang or ziglang")
@program_option()
def compile(bench: Workbench, args: Namespace) -> None:
    """Write a program as C or CUDA source code that needs neither Python nor fluidnb.

    The folder gets model.c, model.h, main.c, a Makefile, a README and the parameters. Sizes are fixed: a declared -1
    becomes the batch. A program that trains becomes a training step, unless --inference is given.
    """
    program = whole = bench.existing(args.program)[0]
    targets = variables(chain(*args.fetch), program, bench.shell.user_ns)
    fetches = [v.name for v in targets]
    if not fetches:
        raise UsageError("%fluid compile needs --fetch NAME: the variables to compute.")
    if args.inference:
        program = get_inference_program(targets, program)
    feeds = batch_shapes(program, args.batch)
    feeds |= {name: getattr(value, "shape", value) for name, value in read_feed(bench, args).items()}
    bench.before_run(whole, global_scope())
    generator = CodeGenerator(
        target=args.target, batch=args.batch, embed_weights=args.embed_weights, max_steps=args.max_steps
    )
    generator.transpile(program, feeds, fetches)
    lines = [f"written   {file}" for file in generator.save(unquoted(args.path))]
    if args.build:
        lines.append(f"built     {generator.build(flags=FAST)}")
    show(bench.shell, [[(line, "")] for line in lines])
