"""``%%fluid``: a cell that builds."""

from argparse import Namespace
from contextlib import nullcontext
from hashlib import sha1
from typing import Any

from IPython.core.magic import Magics, cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments

from fluidnb.program import Variable
from fluidnb.viz.base.device_names import device_name
from fluidnb_magics.arguments import parse_argstring, unquoted
from fluidnb_magics.cell_errors import shorten
from fluidnb_magics.commands import COMMANDS
from fluidnb_magics.commands.place import place_named
from fluidnb_magics.display import show
from fluidnb_magics.jupyter.front_end import FrontEnd
from fluidnb_magics.session import running
from fluidnb_magics.session.cell_groups import Placed
from fluidnb_magics.session.cells import Cell
from fluidnb_magics.session.change_report import report_lines
from fluidnb_magics.session.workbench import Workbench

_SHOWN = 8  # variables that --run shows, at most


@magics_class
class FluidCells(Magics):
    """The cell magic."""

    shell: Any  # the IPython shell

    def __init__(self, shell: Any, bench: Workbench, front_end: FrontEnd) -> None:
        super().__init__(shell)
        self._bench = bench
        self._front_end = front_end

    @magic_arguments("%fluid")  # IPython puts one % in front
    @argument("name", nargs="?", help="the name of the cell; optional in JupyterLab and VS Code")
    @argument("--program", metavar="NAME", help="build into this program of the session instead of the default one")
    @argument("--in", dest="block", metavar="BLOCK", help="append to a block: an index, a name, a cell")
    @argument("--append", action="store_true", help="add to what the cell made before instead of replacing it")
    @argument("--place", metavar="PLACE", help="run programs of this session here from now on: cpu, cuda, cuda:1")
    @argument("--show", action="store_true", help="draw the program afterwards")
    @argument("--run", action="store_true", help="run the program afterwards and show what the cell named")
    @argument("--help", action="store_true", help="show this, as %%%%fluid? does")
    @cell_magic
    def fluid(self, line: str, cell: str) -> None:
        """Build a part of a program; running the cell again replaces that part.

        The cell is plain IPython: what it binds is there for later cells, its last expression is shown. Later %%fluid
        cells that read what it made are built again; one that cannot be built any more is stale, which means that it is
        not part of the program, until what it lacks is there. When the cell itself fails, everything stays as it was.

        With --in BLOCK it appends to the body of a while, a branch or a step of an RNN: it runs at the end of the
        `with` that fills the block, inside the cell of that `with`. ``%fluid block`` lists, opens and closes blocks.
        """
        args = parse_argstring(self.fluid, line)
        if args.help:
            print(self.fluid.__doc__)
            return
        try:
            self.build(args, cell)
        except BaseException as error:
            raise shorten(self.shell, error) from None

    def build(self, args: Namespace, source: str) -> None:
        """Run a cell and show the changes of the program."""
        bench = self._bench
        with nullcontext() if args.place is None else bench.switching(place_named(args.place)):
            ghosts = report_lines(bench, bench.drop_ghosts(self._front_end.cell_id), why="not in the notebook")
            if ghosts:
                show(self.shell, ghosts)
            cell, replaced = self._cell(args, source)
            report = bench.run_cell(cell, replaced)
        placed = bench.placed(cell.key)
        assert placed is not None
        lines = report_lines(bench, report, placed)
        if args.place is not None:
            lines.append([(f"  programs run on {bench.place}, {device_name(bench.place)}".rstrip(", "), "dim")])
        if self._front_end.cell_id is None and args.name is None:
            advice = f"  this cell is {cell.title}; give it a name (%%fluid NAME) and running it again replaces it"
            lines.append([(advice, "dim")])
        show(self.shell, lines)
        if args.show:
            COMMANDS["show"].run(bench, placed.program or "")
        if args.run:
            main, _ = bench.program(placed.program)
            values = (after for _, after in placed.run.bound.values())
            new = [v for v in values if isinstance(v, Variable) and v.block is main.global_block() and not v.is_data]
            fetches = list(dict.fromkeys(new))[-_SHOWN:]
            show(self.shell, running.run_steps(bench.executor, main, {}, fetches).lines())

    def _cell(self, args: Namespace, source: str) -> tuple[Cell, list[Placed]]:
        """The cell that runs, and others that it replaces: by its name, else by its id, else it is new each time."""
        number, cell_id = self._front_end.number, self._front_end.cell_id
        called = unquoted(args.name or "") or None
        name = called or (f"In{number}" if cell_id is None else _short(cell_id))
        new = args.append or (cell_id is None and called is None)
        if new:
            name = self._bench.free_name(name)
        cell = Cell(
            (cell_id, name), name, source, self._front_end.raw, args.program, args.block, number,
            self._front_end.skipped(source), name if called else f"In[{number}]", cell_id,
            () if cell_id is None else (cell_id,),
        )  # fmt: skip
        return (cell, []) if new else self._bench.identified(cell)


def _short(cell_id: str) -> str:
    """A name from a front end's id: the same in every session, so that parameters keep their names."""
    letters = "".join(c for c in cell_id if c.isalnum())
    if len(letters) > 36 or not letters:  # not a notebook file's own id, but an address
        letters = sha1(cell_id.encode()).hexdigest()
    return f"c{letters[:8]}"
