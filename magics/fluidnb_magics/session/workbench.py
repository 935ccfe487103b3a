"""The session behind the magics: cells, the programs that they build, and the values of their parameters.

Nothing here parses a magic's line or prints; the magics do.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fluidnb.cells.cell_log import CellLog, Report, Task
from fluidnb.debug.session import Session
from fluidnb.errors import NotFound, OpValueError, near
from fluidnb.program import Program, default_main_program, default_startup_program, program_guard
from fluidnb.proto.desc import BlockDesc
from fluidnb.runtime import Executor, Scope
from fluidnb.values import CPUPlace, Place, invalidation
from fluidnb_magics.jupyter.notebook_order import NotebookOrder
from fluidnb_magics.session.cell_groups import CLOSED, OPEN, Group, Placed, Spot, placed
from fluidnb_magics.session.cell_names import names_bound, names_read
from fluidnb_magics.session.cell_run import Building
from fluidnb_magics.session.cells import Cell, Compiled, compile_cell
from fluidnb_magics.session.change_notifier import ChangeNotifier
from fluidnb_magics.session.initial_values import InitialValues
from fluidnb_magics.session.opened_blocks import OpenedBlocks
from fluidnb_magics.session.selection import Selection

if TYPE_CHECKING:
    from fluidnb.dap.server import Server
    from fluidnb_magics.session.training import Run

#: The name of the default programs.
DEFAULT = "default"


class Workbench:
    """Cells, programs and parameters of one shell.

    Args:
        shell: the IPython shell.

    Attributes:
        named: name -> main and startup program of the programs that cells created.
        values: the initial values of parameters.
        place: the device on which programs run.
        runs: the training runs that are kept.
        log: the fragments that cells appended.
        blocks: the blocks that cells opened.
        session: the debug session that ``%fluid debug`` began last.
        server: where editors join the debug session, while ``%fluid serve`` is on.
        selection: what is selected in the widgets.
        faces: widgets that follow the session; they end with it.
        changes: tells widgets that a cell has run.
        notebook: the order of the notebook's cells, where the front end reports it.
    """

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.named: dict[str, tuple[Program, Program]] = {}
        self.values = InitialValues()
        self.place: Place = CPUPlace()
        self.runs: list[Run] = []
        self._executor: Executor | None = None
        self._filling = False
        self._pairs: list[tuple[Program, Program]] = []
        self._checked: weakref.WeakKeyDictionary[Program, Any] = weakref.WeakKeyDictionary()
        self.blocks = OpenedBlocks()
        self.session: Session | None = None
        self.server: Server | None = None
        self.selection = Selection()
        self.faces: weakref.WeakSet[Any] = weakref.WeakSet()
        self.changes = ChangeNotifier(shell)
        self.notebook = NotebookOrder(shell)
        self.log = CellLog(
            self._execute, shell.user_ns, self._reads, self._binds, split=self._take_out, kept=self.blocks.rename
        )
        self._compiled: dict[Cell, Compiled] = {}
        self._heard: Hashable | None = None
        self._failed: Group | None = None
        self._tried: dict[Hashable, Any] = {}
        self._first_runs: dict[Hashable, int] = {}

    # Programs.

    def program(self, name: str | None = None) -> tuple[Program, Program]:
        """A pair of programs.

        Args:
            name: the pair's name, made if need be; the default programs when left out.

        Returns:
            The main and the startup program.
        """
        if name in (None, DEFAULT):
            pair = default_main_program(), default_startup_program()
        else:
            pair = self.named.setdefault(str(name), (Program(), Program()))
        if pair not in self._pairs:
            self._pairs.append(pair)
        return pair

    def existing(self, name: str | None = None) -> tuple[Program, Program]:
        """A pair of programs that a cell has made.

        Args:
            name: the pair's name; the default programs when left out.

        Returns:
            The main and the startup program.

        Raises:
            NotFound: there is no such pair.
        """
        if name is not None and name not in self.programs:
            raise NotFound(
                f"there is no program {name}.", expected=", ".join(self.programs), received=name,
                hint=near(name, self.programs) or f"%%fluid --program {name} makes one.",
            )  # fmt: skip
        return self.program(name)

    @property
    def programs(self) -> dict[str, tuple[Program, Program]]:
        """name -> main and startup program; the default ones, which may change, are called ``default``."""
        return {DEFAULT: self.program(), **self.named}

    # Running.

    @property
    def executor(self) -> Executor:
        """The executor of the magics."""
        if self._executor is None:
            self._executor = Executor(self.place)
        return self._executor

    def use(self, place: Place) -> None:
        """Run programs on another place from now on; parameters go there at the next run.

        Args:
            place: the place.

        Raises:
            EnforceNotMet: it cannot be used here.
        """
        self._executor = Executor(place)
        self.place = place

    @contextmanager
    def switching(self, place: Place) -> Iterator[None]:
        """Run programs on another place from now on, unless what is done inside fails.

        Args:
            place: the place.

        Raises:
            EnforceNotMet: it cannot be used here.
        """
        before = self._executor, self.place
        self.use(place)
        try:
            yield
        except BaseException:
            self._executor, self.place = before
            raise

    def before_run(self, program: Program, scope: Scope) -> None:
        """Executor hook: initializes the parameters without a value.

        Args:
            program: the program that is about to run.
            scope: where its persistable variables live.
        """
        startups = [startup for _, startup in self._pairs]
        if self._filling or program in startups or self._checked.get(program) == _state(program, startups, scope):
            return
        wanted = {n for n, v in program.desc.blocks[0].vars.items() if v.persistable()}
        self._filling = True  # first values come from a run, too
        try:
            for main, startup in self._pairs:
                self.values.fill(main, startup, scope, wanted)
        finally:
            self._filling = False
        self._checked[program] = _state(program, startups, scope)

    def forget_values(self, scope: Scope) -> list[str]:
        """Drop the values of parameters and of all else that startup programs initialise; the next run starts over.

        Args:
            scope: where they live.

        Returns:
            The names of the variables that had a value.
        """
        self._checked.clear()
        return [name for _, startup in self._pairs for name in self.values.forget(startup, scope)]

    # Cells.

    def run_cell(self, cell: Cell, replaced: Sequence[Placed] = ()) -> Report:
        """Run a cell: in its place in the notebook, as far as that is known; at the end when it is new.

        A cell that appends to a block runs inside the cell that opened it, which runs again. A later cell that cannot
        be built any more becomes stale.

        Args:
            cell: the cell, as `identified` gives it.
            replaced: other cells that go because it has their name.

        Returns:
            What happened, to it and to later cells.

        Raises:
            BaseException: what the cell raises; all is as before then.
        """
        self.program(cell.program)
        self._compiled[cell] = compile_cell(self.shell, cell)
        try:
            return self._run(*self._grouped(cell), replaced)
        finally:
            alive = {p.cell for p in self.cells}
            self._compiled = {c: code for c, code in self._compiled.items() if c in alive}

    @property
    def cells(self) -> list[Placed]:
        """The cells in program order, those that append to a block after its opener; stale ones too."""
        return [p for f in self.log.fragments if not f.loose for p in placed(f)]

    def placed(self, key: Hashable) -> Placed | None:
        """A cell with its position, or None."""
        return next((p for f in self.log.fragments if not f.loose for p in placed(f) if p.key == key), None)

    def identified(self, cell: Cell) -> tuple[Cell, list[Placed]]:
        """A cell that is about to run with its key: by its name, else by the front end's id.

        A name that an earlier cell has means that cell, as a function that is defined again replaces the first one. A
        cell that changes its name stays the same cell; a later cell that has the name is replaced.

        Args:
            cell: the cell; its key counts only where it has neither a name nor an id.

        Returns:
            The cell with the key of the one that it replaces, or a new one; others that it replaces, too.
        """
        there = self.cells
        by_id = [p for p in there if cell.cell_id is not None and p.cell.cell_id == cell.cell_id]
        by_name = [p for p in there if cell.is_named and p.cell.name == cell.name]
        mine = [p for p in there if p in by_id or p in by_name]
        if cell.cell_id is not None and not mine:
            taken = {p.key for p in there}
            key: Hashable = cell.cell_id if cell.cell_id not in taken else (cell.cell_id, cell.name)
            return replace(cell, key=key, ids=(cell.cell_id,)), []
        if not mine:
            return replace(cell, key=cell.name), []
        first, *others = mine
        ids = tuple(i for p in mine if p in by_name for i in p.cell.ids)
        own = () if cell.cell_id is None else (cell.cell_id,)
        return replace(cell, key=first.key, ids=tuple(dict.fromkeys((*ids, *own)))), others

    def find(self, name: str) -> Placed:
        """A cell.

        Args:
            name: what ``%fluid cells`` calls it, or its number ``3`` for ``In[3]``.

        Returns:
            The cell where it stands.

        Raises:
            OpValueError: there is none.
        """
        for each in self.cells:
            if name in (each.cell.name, each.title, str(each.cell.number)):
                return each
        names = [p.title for p in self.cells]
        raise OpValueError(
            f"there is no cell {name}.", expected=", ".join(names) or "no cells yet", received=name,
            hint=near(name, names) or "%fluid cells lists them.",
        )  # fmt: skip

    def drop(self, names: list[str]) -> Report:
        """Removes cells, and with each those that append to its blocks.

        Args:
            names: what `find` takes.

        Returns:
            What happened to the later cells.
        """
        return self._drop([self.find(name) for name in names])

    def drop_deleted(self, ids: list[str]) -> Report:
        """Remove the cells that the front end deleted; a later cell that fails without them becomes stale.

        Args:
            ids: their ids; those that are no cells of ours are passed over.

        Returns:
            What happened to the later cells.
        """
        return self._drop([p for p in self.cells if p.cell.cell_id in ids])

    def follow(self, cell_id: str | None, deleted: Iterable[str]) -> Report:
        """Follow the notebook: cells that were deleted go, cells that were moved move.

        Args:
            cell_id: the front end's id of the cell that is about to run.
            deleted: the ids of cells that the front end deleted.

        Returns:
            What happened to the others.
        """
        gone = {*deleted, *self.notebook.look(cell_id)}
        return self._drop([p for p in self.cells if p.cell.cell_id in gone])

    def reset(self) -> Report:
        """Remove all cells."""
        return self._drop(self.cells)

    def undo(self) -> Report:
        """Undoes the last change.

        Returns:
            The titles of the cells that are what they were again, as executed, and of those that went.

        Raises:
            OpValueError: there is nothing to undo.
        """
        before, loose = {p.key: p for p in self.cells}, [f for f in self.log.fragments if f.loose]
        self.log.undo()
        self.notebook.keep(p.cell.cell_id for p in self.cells)
        after, left = {p.key: p for p in self.cells}, [f for f in self.log.fragments if f.loose]
        back = [p.title for p in after.values() if p.key not in before or p.differs(before[p.key])]
        gone = [p.title for p in before.values() if p.key not in after]
        return Report(
            executed=back + [f.title for f in left if f not in loose],
            removed=gone + [f.title for f in loose if f not in left],
        )

    def free_name(self, name: str) -> str:
        """The first of ``name``, ``name_1``, … that no cell has."""
        taken = {p.cell.name for p in self.cells}
        number, free = 0, name
        while free in taken:
            number += 1
            free = f"{name}_{number}"
        return free

    # Blocks.

    def open_block(self, cell: Cell) -> Report:
        """Open a block that stays open, or open it again.

        Args:
            cell: the cell to run: a ``with`` that does nothing.

        Returns:
            What happened.
        """
        group, owner = self._grouped(cell)
        return self._run(replace(group, state=OPEN), owner)

    def close_block(self, name: str = "") -> Report:
        """Append the operator that runs a block which is open.

        Args:
            name: how it was called when it was opened; may be left out while only one is open.

        Returns:
            What happened.

        Raises:
            OpValueError: no such block is open, or several are.
        """
        opened = [p for p in self.cells if p.group.state == OPEN]
        meant = [p for p in opened if not name or p.cell.name == name]
        if len(meant) != 1:
            names = [p.cell.name for p in opened]
            summary = "several blocks are open." if meant else f"no block {name} is open.".replace("  ", " ")
            raise OpValueError(
                summary, expected=" or ".join(names) or "an open block", received=f"%fluid block close {name}".strip(),
                hint=near(name, names) or "%fluid block lists the blocks; a `with` closes its block itself.",
            )  # fmt: skip
        [found] = meant
        return self._run(replace(found.group, state=CLOSED), None if found.owner is None else found.owner.key)

    def block_of(self, cell: Placed) -> BlockDesc | None:
        """The block to which a cell appends; None for other cells, and while the block does not exist.

        Args:
            cell: the cell.
        """
        if cell.owner is None or cell.group.spot is None:
            return None
        program, _ = self.program(cell.program)
        return self.blocks.block_at(program, cell.owner.key, cell.group.spot)

    def drifted(self) -> list[tuple[Placed, int]]:
        """The cells that append to a block whose index has changed, with the new index."""
        found = ((p, self.block_of(p)) for p in self.cells if p.owner and (p.cell.block or "").isdecimal())
        return [(p, b.idx) for p, b in found if b is not None and str(b.idx) != p.cell.block]

    # How a change is made.

    def _grouped(self, cell: Cell) -> tuple[Group, Hashable | None]:
        """A cell with those that append to its blocks, and the cell to whose block it appends."""
        old = self.placed(cell.key)
        parts = () if old is None else old.group.parts
        if old is not None and old.fragment.apart:
            old = None
        if cell.block in (None, "0"):
            return Group(cell, parts), None
        if old is not None and old.owner is not None and old.cell.block == cell.block:
            return Group(cell, parts, old.group.spot), old.owner.key
        owner, spot = self._look_for(cell, () if old is None else [g.key for g in old.group.walk()])
        return Group(cell, parts, spot), owner

    def _look_for(self, cell: Cell, apart: Iterable[Hashable]) -> tuple[Hashable, Spot]:
        """The block that a cell's ``--in`` means: of its program, else of the default one, else of any."""
        refused: OpValueError | None = None
        apart = list(apart)
        for name in [cell.program] if cell.program else self.programs:
            try:
                return self.blocks.find(cell.block or "", self.program(name)[0], self.cells, apart)
            except OpValueError as error:
                refused = refused or error
        assert refused is not None
        raise refused

    def _run(self, group: Group, owner: Hashable | None, replaced: Sequence[Placed] = ()) -> Report:
        """Runs a cell separately, or inside the cell to whose block it appends."""
        cell, old, home = group.cell, self.placed(group.key), None if owner is None else self.placed(owner)
        root = group if home is None else home.fragment.task.source.with_part(owner, group)
        self._note_first_run(cell.key)
        root = root.arranged(self._part_place)
        others: dict[Hashable, Group | None] = {}
        if old is not None and old.fragment.key != root.key:  # it moves
            whole = old.fragment.task.source
            others[whole.key] = None if whole.key == group.key else whole.without(group.key)
        for each in replaced:
            whole = root if each.fragment.key == root.key else others.get(each.fragment.key, each.fragment.task.source)
            if whole is None:
                continue
            if whole.key == each.key:
                others[each.key] = None
            elif whole is root:
                root = root.without(each.key)
            else:
                others[whole.key] = whole.without(each.key)
        if home is not None and home.fragment.ran:
            raise OpValueError(
                f'cell "{home.title}" ran a program while building, so that it cannot run again by itself.',
                expected="a cell that only builds", received="an Executor in it",
                hint="run programs in a separate cell, then others can append to its blocks.",
            )  # fmt: skip
        # What is open is whole at its close only: what was built before that may be used in it.
        grows = old is None or bool(others) or group.state == CLOSED
        moves = grows and (root.state == OPEN or (root is group and group.state == CLOSED))
        with self.log.one_change(cell.title):
            self._heard = group.key
            try:
                report = self.log.run(
                    root.key, root, root.cell.title, cell.title, others, order=self._order(root),
                    last=moves and not self._is_read(root.key),
                )  # fmt: skip
            except NameError as error:
                self._point_out(error, root)
                raise
            finally:
                self._heard = None
            self._settle_drift(report, refuse=home is not None)
            self._join(report)
        report.executed[0] = cell.title
        report.removed = [p.title for p in replaced if self.placed(p.key) is None]
        return report

    def _order(self, root: Group | None = None) -> dict[Hashable, int]:
        """The places in the notebook of the cells that have one."""
        roots = {f.key: f.task.source for f in self.log.fragments if not f.loose}
        if root is not None:
            roots[root.key] = root
        places = {key: self._place(group.cell) for key, group in roots.items()} if self.notebook.places else {}
        return {key: place for key, place in places.items() if place is not None}

    def _place(self, cell: Cell) -> int | None:
        """A cell's place in the notebook: the first of the cells that have been this one and are no other now."""
        places = self.notebook.places
        if not places:
            return None
        known = [i for i in cell.ids if i in places]
        if len(known) > 1:  # another cell may have one of them by now
            known = [i for i in known if not any(p.cell.cell_id == i and p.key != cell.key for p in self.cells)]
        return min((places[i] for i in known), default=None)

    def _note_first_run(self, key: Hashable) -> None:
        """Remember the order of first runs: a part that failed goes back to its place among the others."""
        there = {p.key for p in self.cells}
        self._first_runs = {k: n for k, n in self._first_runs.items() if k in there}
        self._first_runs.setdefault(key, max(self._first_runs.values(), default=0) + 1)

    def _part_place(self, cell: Cell) -> int | None:
        """A cell's place among the parts of another: in the notebook, else by its first run."""
        return self._place(cell) if self.notebook.places else self._first_runs.get(cell.key)

    def _settle_drift(self, report: Report, refuse: bool) -> None:
        """Detaches cells with ``--in 2`` whose block got another index: a fresh run of the cells would
        append to another block.

        Args:
            report: what happened.
            refuse: whether to refuse the change, since the cells that it concerns may come before the one that runs.

        Raises:
            OpValueError: the change is refused.
        """
        for cell, index in self.drifted():
            why = f"appends to block {cell.cell.block}, which would be block {index}"
            if refuse:
                raise OpValueError(
                    f'cell "{cell.title}" {why}.',
                    expected="a cell that gives its block a name", received=f"--in {cell.cell.block}",
                    hint="run it with --in and one of the names that %fluid block lists, then make this change.",
                )  # fmt: skip
            whole = cell.fragment.task.source
            part = Task(cell.key, cell.title, cell.group)
            its = self.log.drop(others={whole.key: whole.without(cell.key)}, apart=[(part, why)], cause=cell.title)
            report.stale |= its.stale

    def _join(self, report: Report) -> None:
        """Put parts that failed before into their cells again, where what they read has changed since."""
        for cell in [p for p in self.cells if p.fragment.apart]:
            try:
                owner, spot = self._look_for(cell.cell, [g.key for g in cell.group.walk()])
            except OpValueError:
                continue
            home = self.placed(owner)
            reads = names_read(self._code(cell.cell).code, self.shell.user_ns)
            state = [spot, *(self.shell.user_ns.get(name) for name in sorted(reads))]
            if home is None or home.fragment.stale or home.fragment.ran or cell.title in report.stale:
                continue
            state += [home.fragment.origin]
            tried = self._tried.get(cell.key, [])
            if len(tried) == len(state) and all(a is b or a == b for a, b in zip(state[:1], tried[:1], strict=True)):
                if all(a is b for a, b in zip(state[1:], tried[1:], strict=True)):
                    continue
            self._tried[cell.key] = state
            root = home.fragment.task.source.with_part(owner, replace(cell.group, spot=spot))
            root = root.arranged(self._part_place)
            its = self.log.run(root.key, root, root.cell.title, cell.title, {cell.key: None}, order=self._order(root))
            now = self.placed(cell.key)
            if now is not None and not now.stale:
                report.executed += [cell.title, *its.executed[1:]]
                self._tried.pop(cell.key, None)

    def _is_read(self, key: Hashable) -> bool:
        """Whether a later cell reads names that a cell binds, so that it cannot move behind them."""
        fragments = list(self.log.fragments)
        place = next((i for i, f in enumerate(fragments) if f.key == key), len(fragments))
        return any(f.reads.uses.keys() & fragments[place].bound.keys() for f in fragments[place + 1 :])

    def _point_out(self, error: NameError, root: Group) -> None:
        """Say where a name comes from that a cell does not see because it runs inside an earlier one."""
        order = [p for p in self.cells if p.depth == 0]
        place = next((i for i, p in enumerate(order) if p.key == root.key), len(order))
        later = next((p for p in order[place + 1 :] if error.name in p.fragment.bound), None)
        if later is not None:
            error.add_note(
                f'Cell "{later.title}" binds {error.name}, and comes after cell "{root.cell.title}", inside which this '
                f"cell runs: build {error.name} before that one."
            )

    def _drop(self, cells: list[Placed]) -> Report:
        gone, before = {p.key for p in cells}, self.cells
        roots: list[Hashable] = []
        others: dict[Hashable, Group] = {}
        for whole in (p.group for p in before if p.depth == 0):
            if whole.key in gone:
                roots.append(whole.key)
                continue
            rest = whole.arranged(self._part_place)
            for key in gone:
                rest = rest.without(key)
            if rest != whole:
                others[whole.key] = rest
        titles = ", ".join(p.title for p in cells)
        order = self._order()
        if not roots and not others and not self.log.would_move(order):
            return Report()
        with self.log.one_change(titles) if cells else nullcontext():
            report = self.log.drop(*roots, cause=titles, others=others, order=order)
            self._settle_drift(report, refuse=False)
            self._join(report)
        report.removed = [p.title for p in before if self.placed(p.key) is None]
        return report

    # How a cell runs; the fragments call these.

    def _execute(self, task: Task) -> None:
        group: Group = task.source
        main, startup = self.program(group.cell.program)
        heard = None if task.again else self._heard
        # A cell that builds into the default programs may put others in their place.
        with nullcontext() if group.cell.program in (None, DEFAULT) else program_guard(main, startup):
            building = Building(self.shell, group, self._code, self.blocks, heard)
            try:
                building.run()
            finally:
                self._failed = building.failed

    def _take_out(self, task: Task, error: BaseException) -> tuple[Task, Task] | None:
        """What failed out of a task: a part that the user did not run."""
        group, failed = task.source, self._failed
        if failed is None or failed.key == group.key:
            return None
        if not task.again and any(each.key == self._heard for each in failed.walk()):
            return None
        whole = replace(task, source=group.without(failed.key))
        return whole, Task(failed.key, failed.cell.title, failed)

    def _reads(self, task: Task) -> set[str]:
        codes = [self._code(group.cell).code for group in task.source.walk()]
        return {name for code in codes for name in names_read(code, self.shell.user_ns)}

    def _binds(self, task: Task) -> set[str]:
        return {name for group in task.source.walk() for name in names_bound(self._code(group.cell).code)}

    def _code(self, cell: Cell) -> Compiled:
        if cell not in self._compiled:
            self._compiled[cell] = compile_cell(self.shell, cell)
        return self._compiled[cell]


def _state(program: Program, startups: list[Program], scope: Scope) -> tuple[Any, ...]:
    """The inputs of initialization: while they are equal, no further variable is uninitialized."""
    return (program.version, *(startup.version for startup in startups), id(scope), invalidation.value)
