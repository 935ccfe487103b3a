"""``fluidnb diff``: the differences of two programs, of their parameters, or of their values in a run."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fluidnb.cli import programs, show
from fluidnb.cli.command import Command, number_from
from fluidnb.errors import FluidError
from fluidnb.files.atomic_write import atomic_write

if TYPE_CHECKING:
    from fluidnb.compare.difference import Difference
    from fluidnb.compare.parameters import ParameterDifference
    from fluidnb.viz.base.styled_text import Line


def arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    for word in ("before", "after"):
        parser.add_argument(word, metavar=word.upper(), type=Path,
                            help="a saved model, a file of parameters, or a Python script")  # fmt: skip
    parser.add_argument("--feed", metavar="FILE", type=Path,
                        help="run both on these arrays (a .npz by name, or a .npy) and compare all values")  # fmt: skip
    parser.add_argument("--values", action="store_true",
                        help="compare the parameters of two models; files of parameters need no option")  # fmt: skip
    parser.add_argument("--rtol", metavar="X", type=float, default=1e-4,
                        help="tolerance relative to a tensor's largest number (%(default)g)")  # fmt: skip
    parser.add_argument("--atol", metavar="X", type=float, default=1e-6, help="the same, absolute (%(default)g)")
    parser.add_argument("--json", metavar="FILE", type=Path, help="the finding as JSON; - prints it")
    parser.add_argument("--svg", metavar="FILE", type=Path, help="with --feed: the first program, coloured")
    parser.add_argument("--around", metavar="N", type=number_from(0), default=2,
                        help="operators shown before and after one that differs (2)")  # fmt: skip
    programs.script_options(parser)


def run(options: Namespace) -> int:
    """Show the differences; 1 where values differ."""
    from fluidnb.compare.parameters import has_parameters_alone

    if options.feed is not None:
        return _values(options)
    parameters = options.values or any(has_parameters_alone(str(path)) for path in (options.before, options.after))
    for name in ("svg",) if parameters else ("json", "svg"):
        if getattr(options, name) is not None:
            raise FluidError(f"--{name} is about values.", hint=f"--feed x.npz --{name} {getattr(options, name)}")
    if parameters:
        return _parameters(options)
    from fluidnb.viz.program.diff import diff_lines, read_diff

    first, second = (_program(options, path) for path in (options.before, options.after))
    picture = read_diff(first, second, (str(options.before), str(options.after)))
    show.print_lines(diff_lines(picture, show.terminal_width(), options.around))
    return 0


def _values(options: Namespace) -> int:
    """Run both sides and name the first operator whose output differs."""
    from fluidnb.cli.model import read_arrays
    from fluidnb.compare.difference import Tolerance
    from fluidnb.compare.runtimes import compare_sides
    from fluidnb.viz.compare.text import difference_lines

    found = compare_sides(
        str(options.before), str(options.after), read_arrays(options.feed), Tolerance(options.rtol, options.atol)
    )
    if options.svg is not None:
        from fluidnb.viz.compare.html import difference_svg

        with atomic_write(options.svg, parents=True) as file:
            file.write(difference_svg(found).encode())
    return _report(options, found, lambda: difference_lines(found))


def _parameters(options: Namespace) -> int:
    """Compare the parameters of both sides."""
    from fluidnb.compare.difference import Tolerance
    from fluidnb.compare.parameters import compare_parameters, read_parameters
    from fluidnb.viz.compare.parameters import parameter_lines

    sides = [read_parameters(str(path)) for path in (options.before, options.after)]
    found = compare_parameters(sides[0], sides[1], Tolerance(options.rtol, options.atol))
    return _report(options, found, lambda: parameter_lines(found))


def _report(options: Namespace, found: Difference | ParameterDifference, lines: Callable[[], list[Line]]) -> int:
    """Print a finding as text or JSON; the exit status."""
    text = json.dumps(found.data(), indent=2)
    if options.json == Path("-"):
        print(text)
    else:
        if options.json is not None:
            with atomic_write(options.json, parents=True) as file:
                file.write(f"{text}\n".encode())
        show.print_lines(lines())
    return 0 if found.equal else 1


def _program(options: Namespace, path: Path) -> Any:
    """The program of a model, or the one that a script builds."""
    found = programs.named_programs(Namespace(**vars(options) | {"what": path}))
    if len(found) > 1:
        raise FluidError(f"{path} builds several programs.", hint=f"--program {' or '.join(found)}")
    return next(iter(found.values()))


COMMAND = Command(
    "Show the differences between two models, or between their values.", arguments, run,
    example="examples:\n  fluidnb diff saved/inference.json converted/\n"
    "  fluidnb diff saved/ model.onnx --feed x.npz    the first operator that differs\n"
    "  fluidnb diff model.onnx model.onnx@onnxruntime --feed x.npz\n"
    "  fluidnb diff a.pdparams b.safetensors           the parameters alone\n"
    "  fluidnb diff saved/ model.onnx --values         the parameters of two models\n\n"
    "With --feed, @RUNTIME may follow a model: cpu (where none does), cuda, compiled,\n"
    "native, onnxruntime or paddle; and a side may be a .npz of recorded values.\n"
    "The exit status is 1 where results or parameters differ.",
)  # fmt: skip
