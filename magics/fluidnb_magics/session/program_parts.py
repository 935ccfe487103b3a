"""The parts of a program that users name: a cell, a block, some operators, an expression."""

from fluidnb.program import Block, Operator, Program, Variable
from fluidnb.program.origin import cell_key
from fluidnb.viz import BlockRow, ProgramPicture, part, read_block, read_program, repr_html
from fluidnb.viz.program.graph_level import SPAN
from fluidnb_magics.arguments import evaluate
from fluidnb_magics.display import show
from fluidnb_magics.session.workbench import Workbench


def picture_of(
    bench: Workbench, what: str, program: str | None = None, startup: bool = False, limit: int = 0
) -> ProgramPicture | None:
    """The picture of a part that the user names (all of a program if empty); None when it was displayed already."""
    title = "startup program" if startup else "program"
    if not what or what in bench.programs:
        name = what or program or ""
        return read_program(bench.existing(what or program)[startup], f"{title} {name}".rstrip(), limit)
    if any(placed.is_called(what) for placed in bench.cells):
        return _cell_picture(bench, what, startup)
    main = bench.existing(program)[startup]
    if SPAN.fullmatch(what):
        return part(read_program(main, title), what)
    if what in bench.blocks.names(main):
        desc = bench.named_block(what, main)
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
    """The program to which a part belongs that the user names."""
    if not what or what in bench.programs:
        return bench.existing(what or program)[startup]
    cell = next((placed.cell for placed in bench.cells if placed.is_called(what)), None)
    if cell is not None:
        return bench.program(cell.program)[startup]
    main = bench.existing(program)[startup]
    if SPAN.fullmatch(what) or what in bench.blocks.names(main):
        return main
    thing = evaluate(what, bench.shell.user_ns)
    return thing if isinstance(thing, Program) else getattr(thing, "program", main)


def _cell_picture(bench: Workbench, name: str, startup: bool) -> ProgramPicture:
    """Only the operators that a cell appended, in its own block, with the blocks inside them."""
    cell = bench.find(name)
    program = bench.program(cell.program)[startup]
    inner = None if startup else bench.block_of(cell)
    block = program.block(0 if inner is None else inner.idx)
    ops = (op for d in cell.run.deltas if d.program is program for op in d.ops())
    mine = {op for op in ops if op.view is None or cell_key(op.view.origin) in (cell.key, None)}
    shown = [row for row, op in zip(read_block(block).ops, block.desc.ops, strict=True) if op in mine]
    return ProgramPicture(BlockRow(block.idx, block.parent_idx, tuple(shown)), title=f"cell {cell.title}")
