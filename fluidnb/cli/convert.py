"""``fluidnb convert``: a saved model of Fluid, Paddle 2 or 3 in another format."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from fluidnb.cli.command import Command


def arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("model", metavar="MODEL", help="its folder, prefix or file")
    parser.add_argument("-o", "--out", metavar="PATH", required=True,
                        help="the folder of the files, created if missing; or a file that ends with .onnx")  # fmt: skip
    parser.add_argument("--to", metavar="FORMAT", help="pdmodel (the default), programdesc, safetensors or onnx")
    parser.add_argument("--opset", type=int, default=17, metavar="N", help="ONNX's set of operators (%(default)s)")
    parser.add_argument("--name", default="inference", help="what the files are called (%(default)s)")


def run(options: Namespace) -> int:
    """Open a model and save it."""
    from fluidnb.runtime.opened_model import open_model

    model = open_model(options.model)
    out, to, name = Path(options.out), options.to or "pdmodel", options.name
    if out.suffix == ".onnx" and options.to in (None, "onnx"):
        out, to, name = out.parent, "onnx", out.stem
    files = model.save(str(out), to, name, options.opset)
    print(model)
    for file in files:
        print(f"written   {file}")
    return 0


COMMAND = Command(
    "Convert a saved model of Paddle or ONNX for Paddle, Fluid, ONNX or safetensors.", arguments, run,
    example="examples:\n  fluidnb convert saved/inference.json -o old/          for Paddle 2 and 3\n"
    "  fluidnb convert saved/ -o fluid/ --to programdesc     for Fluid\n"
    "  fluidnb convert saved/ -o model.onnx                  for ONNX runtimes\n"
    "  fluidnb convert model.onnx -o paddle/                 an ONNX model for Paddle",
)  # fmt: skip
