"""``fluidnb run``: a script of Fluid's time, unchanged."""

from __future__ import annotations

import sys
import time
from argparse import REMAINDER, ArgumentParser, Namespace
from pathlib import Path

from fluidnb.cli.command import Command


def arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--force", action="store_true", help="run even if PaddlePaddle is installed")
    parser.add_argument("--seed", type=int, help="fix everything random, as fluidnb.seed(SEED) does")
    parser.add_argument("script", metavar="SCRIPT", type=Path)
    rest = parser.add_argument("arguments", metavar="ARGS", nargs=REMAINDER, help="what the script finds in sys.argv")
    rest.required = False  # or a missing script is told as two missing things


def run(options: Namespace) -> int:
    """Run a script.

    Args:
        options: ``script``, ``arguments``, ``force``, ``seed``.

    Returns:
        0, what it gives to ``sys.exit``, or 1 after an error of its own, which was told on stderr.

    Raises:
        FluidError: there is no such script, or a real paddle is installed.
        KeyboardInterrupt: Ctrl-C, after the line under way was told.
    """
    from fluidnb.cli import script

    with script.as_program(options.script, options.arguments, options.force):
        if options.seed is not None:
            from fluidnb.session import seed

            seed(options.seed)
        began = time.perf_counter()
        try:
            script.run(options.script)
        except SystemExit as ended:
            return status_of(ended.code)
        except KeyboardInterrupt as stopped:
            _tell_line(stopped, options.script)
            raise
        except BaseException as error:  # noqa: BLE001  whatever a script may raise
            script.tell(error, options.script)
            return 1
    if sys.stderr.isatty():
        print(f"{options.script.name} ended after {time.perf_counter() - began:.1f} s", file=sys.stderr)
    return 0


def status_of(code: object) -> int:
    """The exit status of an argument of ``sys.exit``, as in Python: text is printed to stderr.

    Args:
        code: the argument.

    Returns:
        The exit status.

    Example:
        >>> status_of(None), status_of(3)
        (0, 3)
    """
    if code is None or isinstance(code, int):
        return code or 0
    print(code, file=sys.stderr)
    return 1


def _tell_line(stopped: KeyboardInterrupt, path: Path) -> None:
    from fluidnb.cli.script import user_frames

    place = user_frames(stopped.__traceback__, str(path))
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = "" if place is None else f" at {Path(place.tb_frame.f_code.co_filename).name}:{place.tb_lineno}"
    print(f"\ninterrupted{where}", file=sys.stderr)


COMMAND = Command(
    "Run a script that was written for Paddle Fluid 0.11 to 1.4, unchanged.", arguments, run,
    example="example:\n  fluidnb run train.py --epochs 3\n\nInside, `import paddle.fluid as fluid` means fluidnb.",
)  # fmt: skip
