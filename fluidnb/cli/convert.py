"""``fluidnb convert``: a saved model of Fluid, Paddle 2 or 3, or ONNX in another format."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from fluidnb.cli import show
from fluidnb.cli.command import Command
from fluidnb.errors import FluidError


def arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("model", metavar="MODEL", help="its folder, prefix or file")
    parser.add_argument("-o", "--out", metavar="PATH", required=True,
                        help="the folder of the files, created if missing; or a file that ends with .onnx")  # fmt: skip
    parser.add_argument("--to", metavar="FORMAT", help="pdmodel (the default), programdesc, safetensors or onnx")
    parser.add_argument("--opset", type=int, default=17, metavar="N", help="ONNX's set of operators (%(default)s)")
    parser.add_argument("--pass", dest="passes", metavar="NAME", action="append", default=[],
                        help="rewrite it before: fold_constants, fold_batch_norm; repeat it")  # fmt: skip
    parser.add_argument("--fetch", metavar="NAME", action="append", help="keep what computes this variable; repeat it")
    parser.add_argument("--input", metavar="NAME", action="append", help="a variable that is fed instead; repeat it")
    parser.add_argument("--rename", metavar="OLD=NEW", action="append", default=[], help="rename a variable; repeat it")
    parser.add_argument("--diff", action="store_true", help="show what these change")
    parser.add_argument("--name", default="inference", help="what the files are called (%(default)s)")


def run(options: Namespace) -> int:
    """Open a model, apply the edits, and save it."""
    from fluidnb.runtime.opened_model import open_model
    from fluidnb.viz.program.diff import diff_lines, read_diff

    model = before = open_model(options.model)
    if options.fetch or options.input:
        model = model.extract(options.fetch or [v.name for v in model.fetches], options.input)
    model = model.apply(*options.passes)
    if options.rename:
        model = model.rename(dict(map(_names, options.rename)))
    if options.diff:
        picture = read_diff(before.program, model.program, (options.model, "written"))
        show.print_lines(diff_lines(picture, show.terminal_width()))
    out, to, name = Path(options.out), options.to or "pdmodel", options.name
    if out.suffix == ".onnx" and options.to in (None, "onnx"):
        out, to, name = out.parent, "onnx", out.stem
    files = model.save(str(out), to, name, options.opset)
    print(model)
    for file in files:
        print(f"written   {file}")
    return 0


def _names(text: str) -> tuple[str, str]:
    """The two names of OLD=NEW."""
    old, found, new = text.partition("=")
    if not found:
        raise FluidError(f"--rename {text} has no new name.", expected="OLD=NEW", hint=f"--rename {text}=NEW")
    return old, new


COMMAND = Command(
    "Convert a saved model of Paddle or ONNX for Paddle, Fluid, ONNX or safetensors.", arguments, run,
    example="examples:\n  fluidnb convert saved/inference.json -o old/          for Paddle 2 and 3\n"
    "  fluidnb convert saved/ -o fluid/ --to programdesc     for Fluid\n"
    "  fluidnb convert saved/ -o model.onnx                  for ONNX runtimes\n"
    "  fluidnb convert model.onnx -o paddle/                 an ONNX model for Paddle\n"
    "  fluidnb convert saved/ -o less/ --pass fold_batch_norm --diff\n"
    "  fluidnb convert saved/ -o part/ --fetch relu_0.tmp_0  a part of the model",
)  # fmt: skip
