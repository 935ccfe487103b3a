"""``%fluid show``, ``scope``, ``programs``: looking at programs and values."""

from __future__ import annotations

from typing import Any

from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from fluidnb.errors import NotFound, near
from fluidnb.program import Block, Operator, Program, Variable
from fluidnb.program.origin import fragment_key
from fluidnb.runtime import global_scope
from fluidnb.viz import (
    BlockRow,
    ProgramPicture,
    dot_svg,
    lines_html,
    program_html,
    program_lines,
    read_block,
    read_program,
    read_scope,
    read_tensor,
    repr_html,
    scope_lines,
    tensor_lines,
)
from fluidnb.viz.model import plural
from fluidnb_magics.expressions import evaluate, positive, unquoted
from fluidnb_magics.showing import show as display
from fluidnb_magics.showing import width
from fluidnb_magics.workbench import Workbench


@magic_arguments("fluid show")
@argument("what", nargs="*", help="a cell, a program of the session, or an expression (default: the program)")
@argument("--startup", action="store_true", help="the startup program instead of the main one")
@argument("--graph", action="store_true", help="laid out as a graph by Graphviz, if there is one")
@argument("--text", action="store_true", help="as text, also in a notebook")
@argument("--limit", type=positive, default=400, help="operators shown at most (400)")
def show(bench: Workbench, line: str) -> None:
    """Draw a program: nested blocks, roles by colour, the cell and line of every operator."""
    args = parse_argstring(show, line)
    picture = _picture(bench, unquoted(" ".join(args.what)), args.startup)
    if picture is None:
        return
    lines = program_lines(picture, width(bench.shell), args.limit)
    if args.text:
        display(bench.shell, lines, lambda: lines_html(lines))
    else:
        graph = dot_svg(picture) if args.graph else None
        display(bench.shell, lines, lambda: graph or program_html(picture, limit=args.limit))


@magic_arguments("fluid scope")
@argument("name", nargs="?", help="a variable; all of them if left out")
def scope(bench: Workbench, line: str) -> None:
    """Show the values that the global scope holds, and the scopes that a run with --keep left inside."""
    args = parse_argstring(scope, line)
    top = global_scope()
    if args.name is None:
        display(bench.shell, scope_lines(read_scope(top, "global scope"), width(bench.shell)))
        return
    found = _held(top, args.name)
    if found is None:
        hint = near(args.name, top.local_var_names()) or "%fluid scope lists what it holds."
        raise NotFound(f"the scope has no variable {args.name}.", received=args.name, hint=hint)
    value = found.value
    if not hasattr(value, "lod_"):
        display(bench.shell, [[(args.name, "name"), (f"  {value!r}", "")]])
        return
    rows = [] if value.array is None else str(value.array).splitlines()
    display(bench.shell, [*tensor_lines(read_tensor(value, args.name)), *([("  " + row, "")] for row in rows)])


@magic_arguments("fluid programs")
def programs(bench: Workbench, line: str) -> None:
    """List the programs of this session; ``%%fluid --program NAME`` makes one."""
    parse_argstring(programs, line)
    rows = []
    for name, (main, startup) in bench.programs.items():
        counts = f"  {read_program(main).counts}   startup: {plural(len(startup.desc.blocks[0].ops), 'op')}"
        rows.append([(name, "name"), (counts, "")])
    display(bench.shell, rows)


def _picture(bench: Workbench, what: str, startup: bool) -> ProgramPicture | None:
    """The picture of what the user names; None when it showed itself."""
    if not what or what in bench.programs:
        program = bench.program(what or None)[startup]
        return read_program(program, ("startup program" if startup else "program") + (f" {what}" if what else ""))
    names = {name for placed in bench.cells for name in (placed.cell.name, placed.title)}
    if what in names:
        return _cell_picture(bench, what, startup)
    thing = evaluate(what, bench.shell.user_ns)
    if isinstance(thing, Program):
        return read_program(thing, what)
    if isinstance(thing, Block):
        return ProgramPicture(read_block(thing), title=what)
    html = repr_html(thing) if isinstance(thing, Variable | Operator) or hasattr(thing, "lod_") else None
    display(bench.shell, [[(repr(thing), "")]], None if html is None else lambda: html)
    return None


def _cell_picture(bench: Workbench, name: str, startup: bool) -> ProgramPicture:
    """Only the operators that a cell made, in its own block, with the blocks inside them."""
    cell = bench.find(name)
    program = bench.program(cell.program)[startup]
    inner = None if startup else bench.block_of(cell)
    block = program.block(0 if inner is None else inner.idx)
    made = [op for d in cell.fragment.deltas if d.program is program for op in d.ops()]
    mine = {op for op in made if op.view is None or fragment_key(op.view.origin) in (cell.key, None)}
    shown = [row for row, op in zip(read_block(block).ops, block.desc.ops, strict=True) if op in mine]
    return ProgramPicture(BlockRow(block.idx, block.parent_idx, tuple(shown)), title=f"cell {cell.title}")


def _held(top: Any, name: str) -> Any:
    """The runtime variable of a name, in a scope or in those inside it."""
    found = top.find_var(name)
    for kid in top.kids:
        found = found or _held(kid, name)
    return found
