"""``%fluid block``: lists, draws, opens and closes blocks."""

import dis
import re
from typing import Any

from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.program import Block
from fluidnb.utils.source_location import cell_names
from fluidnb.viz import ProgramPicture, program_html, program_lines, read_block
from fluidnb.viz.program.block_tree import tree_lines
from fluidnb_magics.arguments import evaluate
from fluidnb_magics.commands._command import Namespace, Section, UsageError, argument, command, program_option
from fluidnb_magics.commands._offers import blocks
from fluidnb_magics.commands.tree import named_tree
from fluidnb_magics.display import show, width
from fluidnb_magics.session.cell_groups import Placed
from fluidnb_magics.session.cells import Cell
from fluidnb_magics.session.change_report import report_lines
from fluidnb_magics.session.workbench import Workbench

#: Operations that enter a ``with``: of Python 3.11 to 3.13, of 3.14.
_WITH = ("BEFORE_WITH", "LOAD_SPECIAL")


@command(Section.BUILD, "block open turns", lambda bench, words: ["open", "close", *blocks(bench, words)])
@argument("what", nargs="*", help="a block to draw; open NAME[=EXPR], close [NAME]; lists all blocks if left out")
@program_option()
@argument("--in", dest="block", metavar="BLOCK", help="open: the block around the new one, the global one if left out")
def block(bench: Workbench, args: Namespace) -> None:
    """List the blocks of a program, draw one, open one or close one.

    A block is named by its index, by the Python name of the object that opened it (turns, ie.true_block), or by its
    cell. ``%fluid block open turns`` opens the block of turns = layers.While(cond), ``%fluid block open
    yes=ie.true_block()`` that of an expression. ``%%fluid --in turns`` cells fill it; ``%fluid block close turns``
    appends its operator.
    """
    if args.what[:1] == ["open"]:
        _open(bench, " ".join(args.what[1:]), args.program, args.block)
    elif args.what[:1] == ["close"]:
        _close(bench, " ".join(args.what[1:]))
    elif args.block:
        raise UsageError("--in belongs to %fluid block open NAME.")
    elif args.what:
        _draw(bench, " ".join(args.what), args.program)
    else:
        main, _ = bench.existing(args.program)
        show(bench.shell, tree_lines(named_tree(bench, main), width(bench.shell)))


def _draw(bench: Workbench, wanted: str, program: str | None) -> None:
    main, _ = bench.existing(program)
    block = main.block(int(wanted)) if wanted.isdecimal() else Block.over(main, bench.named_block(wanted, main))
    picture = ProgramPicture(read_block(block), title=f"block {block.idx}")
    show(bench.shell, program_lines(picture, width(bench.shell)), lambda: program_html(picture))


def _open(bench: Workbench, text: str, program: str | None, around: str | None) -> None:
    match = re.fullmatch(r"\s*(\w+)\s*(?:=(?!=)\s*(.+))?", text)
    if match is None:
        raise UsageError("%fluid block open takes NAME or NAME=EXPR, for example yes=ie.true_block().")
    name, expression = match.groups()
    if name.isdecimal():
        raise OpValueError(
            "a block that is there already needs no opening.", expected="a NAME for a new block", received=name,
            hint=f"%%fluid --in {name} appends to it.",
        )  # fmt: skip
    old = next((p for p in bench.cells if p.cell.name == name), None)
    if old is not None and not old.group.state:
        raise OpValueError(
            f"{name} is a cell.", expected="another name", received=f"%fluid block open {name}",
            hint=f"%%fluid --in {name} appends to the block that the cell opened.",
        )  # fmt: skip
    if expression is None:
        expression = _guard(bench, name, program, old)
    source, number = f"with {expression}:\n    pass\n", bench.shell.execution_count
    cell = Cell(("block", name), name, source, "", program, around, number, 0, title=name)
    try:
        report = bench.open_block(cell)
    except TypeError as error:
        if not _is_of_with(error, name):
            raise
        raise OpTypeError(
            f"{expression} opens no block.", expected="what a `with` takes", received=str(error),
            hint="say which `with` fills it: %fluid block open yes=ie.true_block()",
        ) from None  # fmt: skip
    _report(bench, report, cell)


def _is_of_with(error: TypeError, cell: str) -> bool:
    """Whether the ``with`` of a cell raised an error itself: not what its expression calls, and not the expression."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return False
    code = trace.tb_frame.f_code
    # The value is known inside the `with` only: its expression may append operators, so that it is not evaluated twice.
    return cell_names.get(code.co_filename) == cell and dis.opname[code.co_code[trace.tb_lasti]] in _WITH


def _guard(bench: Workbench, name: str, program: str | None, old: Placed | None) -> str:
    """The expression for the block of a Python name's object."""
    main, _ = bench.existing(program)
    if old is None and name in bench.blocks.names(main):
        raise OpValueError(
            f"{name} has its block already.", expected="an object whose block is not filled yet", received=name,
            hint=f"%%fluid --in {name} appends to it.",
        )  # fmt: skip
    thing = evaluate(name, bench.shell.user_ns)
    for method in ("block", "step"):
        if callable(getattr(thing, method, None)):
            return f"{name}.{method}()"
    raise OpValueError(
        f"{name} has no block to open.", expected="a While, a ConditionalBlock or an RNN",
        received=f"{name} ({type(thing).__name__})",
        hint="say which `with` fills it: %fluid block open yes=ie.true_block()",
    )  # fmt: skip


def _close(bench: Workbench, name: str) -> None:
    report = bench.close_block(name)
    _report(bench, report, bench.find(report.executed[0]).cell)


def _report(bench: Workbench, report: Any, cell: Cell) -> None:
    placed = bench.placed(cell.key)
    assert placed is not None
    show(bench.shell, report_lines(bench, report, placed))
