"""``%fluid diff``: compares two programs, or the values of two runs."""

from typing import Any

import numpy as np

from fluidnb.compare.difference import Tolerance
from fluidnb.compare.parameters import compare_parameters, read_parameters
from fluidnb.compare.runtimes import compare_sides
from fluidnb.errors import OpTypeError
from fluidnb.extras import is_installed
from fluidnb.program import Program
from fluidnb.runtime.model_files import find_model, is_model, read_program
from fluidnb.viz.compare.html import difference_html
from fluidnb.viz.compare.parameters import parameter_lines
from fluidnb.viz.compare.text import difference_lines
from fluidnb.viz.program.diff import diff_lines, read_diff
from fluidnb_magics.arguments import evaluate, unquoted
from fluidnb_magics.commands._command import (
    Namespace,
    Section,
    UsageError,
    argument,
    command,
    feed_option,
    program_option,
)  # fmt: skip
from fluidnb_magics.commands._feeds import read_feed
from fluidnb_magics.display import show, show_widget, width
from fluidnb_magics.session.workbench import Workbench


@command(Section.INSPECT, "diff before after")
@argument("programs", nargs="*", help="two of: a program of the session, an expression, a file")
@argument("--around", type=int, metavar="N", default=2, help="operators shown before and after one that differs (2)")
@argument("--values", action="store_true",
          help="run both models and name the first operator whose output differs; without --feed compare parameters")
@argument("--rtol", type=float, metavar="X", default=1e-4, help="tolerance of values (1e-4 of the largest number)")
@feed_option("with --values: arrays for both models")
@program_option("the program of this session that others are compared with (main)")
def diff(bench: Workbench, args: Namespace) -> None:
    """Show the differences between two programs, or those of the last change.

    ``%fluid diff before after`` compares two programs. A single one is compared with the session's program, or with the
    one that --program names. Without a program it shows what ``%fluid undo`` would undo.

    ``%fluid diff old/ model.onnx --values --feed x=images`` runs both. ``@RUNTIME`` may follow a model: cpu, cuda,
    compiled, native, onnxruntime or paddle; a side may be a ``.npz`` of recorded values.

    ``%fluid diff a.pdparams b.safetensors --values`` compares the parameters of two files or models.
    """
    if args.values:
        _values(bench, args)
        return
    if len(args.programs) > 2:
        raise UsageError("%fluid diff compares at most two programs.")
    now = bench.existing(args.program)[0]
    if not args.programs:
        titles, pair = ("before the last change", "now"), (bench.log.before_last_change(now), now)
    elif len(args.programs) == 1:
        titles, pair = (args.programs[0], "now"), (_read(bench, args.programs[0]), now)
    else:
        titles, pair = tuple(args.programs), tuple(_read(bench, text) for text in args.programs)
    show(bench.shell, diff_lines(read_diff(*pair, titles), width(bench.shell), args.around))


def _values(bench: Workbench, args: Namespace) -> None:
    """Run two models on the same arrays and show the first operator whose output differs; or compare parameters."""
    if len(args.programs) != 2:
        raise UsageError("%fluid diff --values compares two models: %fluid diff A B --values --feed x=images.")
    feeds = {name: np.asarray(value) for name, value in read_feed(bench, args).items()}
    first, second = (unquoted(text) for text in args.programs)
    if not feeds:
        sides = [read_parameters(path) for path in (first, second)]
        show(bench.shell, parameter_lines(compare_parameters(sides[0], sides[1], Tolerance(rtol=args.rtol))))
        return
    found = compare_sides(first, second, feeds, Tolerance(rtol=args.rtol))
    if is_installed("anywidget") and getattr(bench.shell, "kernel", None) is not None:
        from fluidnb_magics.widgets.difference import DifferenceWidget

        show_widget(bench.shell, DifferenceWidget(found))
        return
    show(bench.shell, difference_lines(found), lambda: difference_html(found))


def _read(bench: Workbench, text: str) -> Any:
    """A program by name, expression or file."""
    if text in bench.programs:
        return bench.program(text)[0]
    if is_model(text):
        return read_program(find_model(text)).program
    thing = evaluate(unquoted(text), bench.shell.user_ns)
    if not isinstance(thing, Program):
        raise OpTypeError(f"{text} is not a program.", expected="a Program", received=type(thing).__name__)
    return thing
