"""What users call the parts of a program that they want to see: a cell, a block, some operators, an expression."""

from __future__ import annotations

from fluidnb.program import Block, Operator, Program, Variable
from fluidnb.program.origin import fragment_key
from fluidnb.viz import BlockRow, ProgramPicture, part, read_block, read_program, repr_html
from fluidnb.viz.program.graph_level import SPAN
from fluidnb_magics.arguments import evaluate
from fluidnb_magics.display import show
from fluidnb_magics.session.workbench import Workbench


def picture_of(
    bench: Workbench, what: str, program: str | None = None, startup: bool = False, limit: int = 0
) -> ProgramPicture | None:
    """The picture of what the user names.

    Args:
        bench: the session.
        what: a cell, a program, the index or a name of a block, operators of one as ``0:12`` or ``0:12-40``, or an
            expression; empty for the program.
        program: a program of the session.
        startup: the startup program instead of the main one.
        limit: operators of a whole program that are read at most; 0 for all.

    Returns:
        The picture; None when it showed itself.

    Raises:
        FluidError: there is no such program, block or operator.
    """
    if not what or what in bench.programs:
        found = bench.existing(what or program)[startup]
        name = what or program or ""
        return read_program(found, ("startup program" if startup else "program") + (f" {name}" if name else ""), limit)
    if any(what in (placed.cell.name, placed.title) for placed in bench.cells):
        return _cell_picture(bench, what, startup)
    main = bench.existing(program)[startup]
    if SPAN.fullmatch(what):
        return part(read_program(main, "startup program" if startup else "program"), what)
    if what in bench.blocks.names(main):
        key, spot = bench.blocks.find(what, main, bench.cells)
        desc = bench.blocks.block_at(main, key, spot)
        assert desc is not None, "only blocks that are there are found"
        return ProgramPicture(read_block(desc), title=f"block {desc.idx}")
    thing = evaluate(what, bench.shell.user_ns)
    if isinstance(thing, Program):
        return read_program(thing, what, limit)
    if isinstance(thing, Block):
        return ProgramPicture(read_block(thing), title=what)
    html = repr_html(thing) if isinstance(thing, Variable | Operator) or hasattr(thing, "lod_") else None
    show(bench.shell, [[(repr(thing), "")]], None if html is None else lambda: html)
    return None


def program_of(bench: Workbench, what: str, program: str | None = None, startup: bool = False) -> Program:
    """The program to which what the user names belongs.

    Args:
        bench: the session.
        what: as in `picture_of`.
        program: a program of the session.
        startup: the startup program instead of the main one.

    Returns:
        The program.

    Raises:
        FluidError: there is no such program.
    """
    if what and what not in bench.programs:
        for placed in bench.cells:
            if what in (placed.cell.name, placed.title):
                return bench.program(placed.cell.program)[startup]
        main = bench.existing(program)[startup]
        if SPAN.fullmatch(what) or what in bench.blocks.names(main):
            return main
        thing = evaluate(what, bench.shell.user_ns)
        return thing if isinstance(thing, Program) else getattr(thing, "program", main)
    return bench.existing(what or program)[startup]


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
