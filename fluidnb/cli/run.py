"""``fluidnb run``: a script of Fluid's time, unchanged; or a saved model, on arrays."""

import sys
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

from fluidnb.cli import model
from fluidnb.cli.command import Command, script_arguments


def arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--on-error-html", metavar="FILE", type=Path,
                        help="if the script fails, write the program and what failed as HTML")  # fmt: skip
    script_arguments(parser)


def run(options: Namespace) -> int:
    """Run a script or a model; 0, what a script gives to ``sys.exit``, or 1 after an error, printed on stderr."""
    from fluidnb.cli import script

    if model.is_model(options.script):
        return model.opened(options.script, model.parsed("run", options.arguments))()
    with script.as_program(options.script, options.arguments, options.force, options.seed):
        began = time.perf_counter()
        try:
            script.run(options.script)
        except SystemExit as ended:
            return status_of(ended.code)
        except KeyboardInterrupt as stopped:
            _print_line(stopped, options.script)
            raise
        except BaseException as error:  # noqa: BLE001  whatever a script may raise
            script.print_error(error, options.script)
            if options.on_error_html is not None:
                from fluidnb.cli.error_page import save_error_page

                save_error_page(error, options.script, options.on_error_html)
            return 1
    if sys.stderr.isatty():
        print(f"{options.script.name} ended after {time.perf_counter() - began:.1f} s", file=sys.stderr)
    return 0


def status_of(code: object) -> int:
    """The exit status of an argument of ``sys.exit``, as in Python: text is printed to stderr.

    Example:
        >>> status_of(None), status_of(3)
        (0, 3)
    """
    if code is None or isinstance(code, int):
        return code or 0
    print(code, file=sys.stderr)
    return 1


def _print_line(stopped: KeyboardInterrupt, path: Path) -> None:
    from fluidnb.cli.script import user_frames

    place = user_frames(stopped.__traceback__, str(path))
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = "" if place is None else f" at {Path(place.tb_frame.f_code.co_filename).name}:{place.tb_lineno}"
    print(f"\ninterrupted{where}", file=sys.stderr)


COMMAND = Command(
    "Run a script for Paddle Fluid 0.11 to 1.4 unchanged, or a saved model.", arguments, run,
    example="examples:\n  fluidnb run train.py --epochs 3\n"
    "  fluidnb run saved/ --feed x.npz --times --out results.npz\n"
    "  fluidnb run saved/ --image photo.png\n"
    "  fluidnb run --on-error-html failed.html train.py\n\n"
    f"Inside a script, `import paddle.fluid as fluid` means fluidnb.\n\n{model.HELP}",
)  # fmt: skip
