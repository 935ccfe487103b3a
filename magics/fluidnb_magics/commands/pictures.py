"""``%fluid show``, ``scope``, ``programs``: looking at programs and values."""

from __future__ import annotations

import re
from typing import Any

from IPython.core.magic_arguments import argument, magic_arguments

from fluidnb.errors import NotFound, near
from fluidnb.runtime import global_scope
from fluidnb.values.device_array import printed
from fluidnb.values.tensor import array_of
from fluidnb.viz import (
    card_lines,
    lines_html,
    program_html,
    program_lines,
    read_preview,
    read_program,
    read_scope,
    read_tensor,
    scope_html,
    scope_lines,
    select,
    tensor_html,
    tensor_lines,
)
from fluidnb.viz.base.styled_text import Line, plural
from fluidnb_magics.arguments import parse_argstring, positive, unquoted
from fluidnb_magics.display import show as display
from fluidnb_magics.display import width
from fluidnb_magics.session.program_parts import picture_of
from fluidnb_magics.session.workbench import Workbench


@magic_arguments("fluid show")
@argument("what", nargs="*", help="a cell, program, block, operator 0:12, or an expression; the program if empty")
@argument("--startup", action="store_true", help="the startup program instead of the main one")
@argument("--program", help="a program of this session")
@argument("--search", action="append", default=[], metavar="WORDS", help="operators that fit; see above")
@argument("--role", action="append", default=[], help="forward, backward, optimizer; several with commas")
@argument("--fold", action="append", default=[], help="blocks, cells, layers: a row for each; several with commas")
@argument("--text", action="store_true", help="as text, also in a notebook")
@argument("--limit", type=positive, default=400, help="operators shown at most (400)")
def show(bench: Workbench, line: str) -> None:
    """Draw a program: nested blocks, roles by colour, the cell and line of every operator.

    A word of --search is a part of an operator's type, of a variable, of attribute=value, or of a cell; with * and ? it
    is all of it, and op: var: attr: cell: in front say where to look ("var:fc_0.* cell:net" fits both). An operator is
    shown alone, with what its kind computes and its kernels, by its place: %fluid show 0:12.
    """
    args = parse_argstring(show, line)
    search = " ".join(unquoted(text) for text in args.search)
    chosen = bool(search or args.role or args.fold)
    limit = 0 if chosen else args.limit
    picture = picture_of(bench, unquoted(" ".join(args.what)), args.program, args.startup, limit)
    if picture is None:
        return
    if re.fullmatch(r"\d+:\d+", "".join(args.what)):
        lines = card_lines(picture.root.ops[0], width(bench.shell))
        display(bench.shell, lines, lambda: lines_html(lines))
        return
    part = select(picture, search, args.role, args.fold)
    if chosen and not part.size:
        words = {w for op in picture.each() for w in (op.type, *(v.name for v in (*op.reads, *op.writes)))}
        asked = " ".join([search, *args.role]).strip()
        raise NotFound("no operator fits.", received=asked, hint=near(search, words) or "%fluid show --help")
    lines = program_lines(part, width(bench.shell), args.limit)
    html = lines_html(lines) if args.text else None
    display(bench.shell, lines, lambda: html or program_html(part, limit=args.limit))


@magic_arguments("fluid scope")
@argument("name", nargs="?", help="a variable; all of them if left out")
@argument("--live", action="store_true", help="a widget that follows what runs")
def scope(bench: Workbench, line: str) -> None:
    """Show the values that the global scope holds, and the scopes that a run with --keep left inside.

    With --live they are searched, opened and paged through, while programs run and are debugged.
    """
    args = parse_argstring(scope, line)
    top = global_scope()
    if args.live:
        from fluidnb_magics.widgets.live_widget import show_live
        from fluidnb_magics.widgets.scope_explorer import ScopeExplorer

        show_live(bench, ScopeExplorer(bench, top, args.name))
        return
    if args.name is None:
        row = read_scope(top, "global scope", previews=True)
        display(bench.shell, scope_lines(row, width(bench.shell)), lambda: scope_html(row))
        return
    found = _held(top, args.name)
    if found is None:
        hint = near(args.name, top.local_var_names()) or "%fluid scope lists what it holds."
        raise NotFound(f"the scope has no variable {args.name}.", received=args.name, hint=hint)
    value = found.value
    if not hasattr(value, "lod_"):
        display(bench.shell, [[(args.name, "name"), (f"  {value!r}", "")]])
        return
    summary = read_tensor(value, args.name)
    array = array_of(value)
    rows: list[Line] = [[("  " + row, "")] for row in ([] if array is None else str(printed(array)).splitlines())]
    html = tensor_html(summary, read_preview(array)) + lines_html(rows)
    display(bench.shell, [*tensor_lines(summary), *rows], lambda: html)


@magic_arguments("fluid programs")
def programs(bench: Workbench, line: str) -> None:
    """List the programs of this session; ``%%fluid --program NAME`` makes one."""
    parse_argstring(programs, line)
    rows = []
    for name, (main, startup) in bench.programs.items():
        counts = f"  {read_program(main).counts}   startup: {plural(len(startup.desc.blocks[0].ops), 'op')}"
        rows.append([(name, "name"), (counts, "")])
    display(bench.shell, rows)


def _held(top: Any, name: str) -> Any:
    """The runtime variable of a name, in a scope or in those inside it."""
    found = top.find_var(name)
    for kid in top.kids:
        found = found or _held(kid, name)
    return found
