"""``fluidnb show``: the program of a saved model, or those that a script builds, as a listing or a picture."""

from __future__ import annotations

import shutil
import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from fluidnb.cli import programs
from fluidnb.cli.command import Command, number_from
from fluidnb.cli.picture_files import HELP, chosen_files
from fluidnb.errors import FluidError, NotFound

if TYPE_CHECKING:
    from fluidnb.viz import ProgramPicture
    from fluidnb.viz.base.styled_text import Line


def arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    programs.add_arguments(parser)
    parser.add_argument("--block", metavar="N", type=number_from(0), help="only this block, with those inside it")
    parser.add_argument("--ops", action="store_true", help="count operators by type instead of listing them")
    parser.add_argument("--limit", metavar="N", type=number_from(0), default=400, help="operators shown at most (400)")
    parser.add_argument("--html", metavar="FILE", type=Path, help="write an HTML file that folds and searches instead")
    for kind, text in HELP.items():
        parser.add_argument(f"--{kind}", metavar="FILE", help=text)


def run(options: Namespace) -> int:
    """Show programs."""
    from fluidnb.code_generator.listing import is_generated
    from fluidnb.viz import program_lines
    from fluidnb.viz.program.exports import export
    from fluidnb.viz.saved_page.page import save_html

    if is_generated(options.what):
        return _show_source(options)
    pictures = [_narrowed(picture, options.block) for picture in programs.open_programs(options)]
    files = chosen_files(options)
    if (files or options.html) and len(pictures) > 1:
        raise FluidError("A file takes one picture, and there are several programs.",
                         hint=f"--program {' or '.join(p.title for p in pictures)}")  # fmt: skip
    for kind, file in files.items():
        print(export(pictures[0], kind, file, options.limit))
    if options.html:
        save_html(pictures[0], options.html)
    if files or options.html:
        return 0
    for i, picture in enumerate(pictures):
        lines = _counts(picture) if options.ops else program_lines(picture, terminal_width(), options.limit)
        print_lines([[("", "")]] * (i > 0) + lines)
    programs.print_processing(options)
    return 0


def _show_source(options: Namespace) -> int:
    """Show the operators of generated source beside their functions."""
    from fluidnb.code_generator.listing import read_folder
    from fluidnb.viz.program.source_code import source_lines

    if chosen_files(options) or options.html:
        raise FluidError(f"{options.what} has generated source, which is no picture.", hint="show the model itself.")
    title, rows, functions = read_folder(options.what)
    counts = f"  {len(rows)} operators, {len({row.function for row in rows})} functions"
    rows = [row for row in rows if options.block is None or row.block == options.block][: options.limit]
    print_lines([[(title, "bold"), (counts, "dim")], [], *source_lines(rows, functions, terminal_width())])
    return 0


def _counts(picture: ProgramPicture) -> list[Line]:
    """Counts of each operator, the most frequent first."""
    from fluidnb.viz.base.styled_text import columns

    counts = Counter((op.type, op.role) for block in (picture.root, *picture.loose) for _, op in block.walk())
    often = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    rows: list[list[Line]] = [[[(f"  {n}", "dim")], [(kind, role)], [(role, "dim")]] for (kind, role), n in often]
    return [[(picture.title, "bold"), ("  " + picture.counts, "dim")], *columns(rows)]


def _narrowed(picture: ProgramPicture, index: int | None) -> ProgramPicture:
    """A picture of one block of a program."""
    if index is None:
        return picture
    from fluidnb.viz import ProgramPicture

    waiting, known = [picture.root, *picture.loose], []
    for block in waiting:
        if block.index == index:
            return ProgramPicture(block, title=f"{picture.title}, block {index}")
        known.append(block.index)
        waiting += [inner for op in block.ops for inner in op.blocks]
    raise NotFound(f"{picture.title} has no block {index}.", expected=f"one of {', '.join(map(str, sorted(known)))}")


def print_lines(lines: list[Line]) -> None:
    """Print styled lines, with colours on a terminal."""
    from fluidnb.viz import ansi, plain

    print(ansi(lines, terminal_width()) if terminal_width() else plain(lines))


def terminal_width() -> int:
    """Columns of the terminal; 0 where stdout is no terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


COMMAND = Command(
    "Show a saved model, or what a script builds.", arguments, run,
    example="examples:\n  fluidnb show saved/               the program of an inference model\n"
    "  fluidnb show train.py --block 1   a nested block of a script's program\n"
    "  fluidnb show train.py --svg a.svg\n"
    "  fluidnb show saved/ --html a.html  a page that folds and searches\n"
    "  fluidnb show code/                generated source by operator",
)  # fmt: skip
