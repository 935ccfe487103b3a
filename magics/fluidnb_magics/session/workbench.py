"""The session behind the magics: cells, the programs that they build, and the values of their parameters."""

import weakref
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

from fluidnb.cells.cell_log import CellLog, Report, Task
from fluidnb.cells.dependencies import Attribute, value_of
from fluidnb.errors import NotFound, OpValueError, near
from fluidnb.program import Program, default_main_program, default_startup_program, program_guard
from fluidnb.proto.desc import BlockDesc
from fluidnb.runtime import Executor, Scope
from fluidnb.values import CPUPlace, Place, invalidation
from fluidnb_magics.jupyter.notebook_order import NotebookOrder
from fluidnb_magics.session.cell_groups import CLOSED, OPEN, BlockRef, Group, Placed, placed
from fluidnb_magics.session.cell_names import names_bound, reads_of
from fluidnb_magics.session.cell_run import Building
from fluidnb_magics.session.cells import Cell, Compiled, compile_cell
from fluidnb_magics.session.change_notifier import ChangeNotifier
from fluidnb_magics.session.initial_values import InitialValues
from fluidnb_magics.session.opened_blocks import OpenedBlocks
from fluidnb_magics.session.selection import Selection

if TYPE_CHECKING:
    from fluidnb.dap.server import Server
    from fluidnb.debug.session import Session
    from fluidnb_magics.session.distributed_training import DistributedRun
    from fluidnb_magics.session.training import Run

#: The name of the default programs.
DEFAULT = "default"


class Workbench:
    """Cells, programs and parameters of one shell."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.named: dict[str, tuple[Program, Program]] = {}
        self.values = InitialValues()
        self.place: Place = CPUPlace()
        self.runs: list[Run] = []  # of training
        self.distributed: DistributedRun | None = None  # the training by several roles that was started last
        self.blocks = OpenedBlocks()
        self.session: Session | None = None
        self.server: Server | None = None
        self.selection = Selection()
        self.widgets: weakref.WeakSet[Any] = weakref.WeakSet()
        self.changes = ChangeNotifier(shell)
        self.notebook = NotebookOrder(shell)
        self._executor: Executor | None = None
        self._initializing = False
        self._pairs: list[tuple[Program, Program]] = []
        self._checked: weakref.WeakKeyDictionary[Program, Any] = weakref.WeakKeyDictionary()
        self.log = CellLog(
            self._execute, shell.user_ns, self._reads, self._binds, split=self._split, kept=self.blocks.rename
        )
        self._compiled: dict[Cell, Compiled] = {}
        self._displayed: Hashable | None = None  # key of the cell whose output is shown
        self._failed: Group | None = None
        self._tried: dict[Hashable, Any] = {}
        self._deleted: set[str | None] = set()  # ids of the cells that are to be removed from the program
        self._restored: set[tuple[Hashable, str | None]] = set()  # keys and ids of the cells that `undo` restored

    # Programs.

    def program(self, name: str | None = None) -> tuple[Program, Program]:
        """A pair of programs by name, created if need be; default the default programs."""
        if name in (None, DEFAULT):
            pair = default_main_program(), default_startup_program()
        else:
            pair = self.named.setdefault(str(name), (Program(), Program()))
        if pair not in self._pairs:
            self._pairs.append(pair)
        return pair

    def existing(self, name: str | None = None) -> tuple[Program, Program]:
        """A pair of programs that a cell has created; default the default programs."""
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
        """Run programs on another place from now on; parameters are copied there at the next run."""
        self._executor = Executor(place)
        self.place = place

    @contextmanager
    def switching(self, place: Place) -> Iterator[None]:
        """Run programs on another place from now on, unless the statements inside fail."""
        before = self._executor, self.place
        self.use(place)
        try:
            yield
        except BaseException:
            self._executor, self.place = before
            raise

    def before_run(self, program: Program, scope: Scope) -> None:
        """Executor hook: initialize the variables without a value."""
        startups = [startup for _, startup in self._pairs]
        if self._initializing or program in startups or self._checked.get(program) == _state(program, startups, scope):
            return
        wanted = {n for n, v in program.desc.blocks[0].vars.items() if v.persistable()}
        self._initializing = True  # the startup program runs, too
        try:
            for main, startup in self._pairs:
                self.values.fill(main, startup, scope, wanted)
        finally:
            self._initializing = False
        self._checked[program] = _state(program, startups, scope)

    def forget_values(self, scope: Scope) -> list[str]:
        """Drop the values of all that startup programs initialize, and return the names of those that had one."""
        self._checked.clear()
        return [name for _, startup in self._pairs for name in self.values.forget(startup, scope)]

    # Cells.

    def run_cell(self, cell: Cell, replaced: Sequence[Placed] = ()) -> Report:
        """Runs a cell at its position in the notebook, inside the cell whose block it appends to, else at the end."""
        is_new = cell.program is not None and cell.program not in self.programs
        pair = self.program(cell.program)
        try:
            self._compiled[cell] = compile_cell(self.shell, cell)
            return self._run(*self._grouped(cell), replaced)
        finally:
            alive = {p.cell for p in self.cells}
            if is_new and all(c.program != cell.program for c in alive):  # the cell was refused
                self.named.pop(str(cell.program), None)
                self._pairs.remove(pair)
            self._compiled = {c: code for c, code in self._compiled.items() if c in alive}

    @property
    def cells(self) -> list[Placed]:
        """The cells in program order, those that append to a block after its opener; stale ones too."""
        return [p for f in self.log.runs if not f.loose for p in placed(f)]

    def placed(self, key: Hashable) -> Placed | None:
        """A cell with its position among all."""
        return next((p for p in self.cells if p.key == key), None)

    def identified(self, cell: Cell) -> tuple[Cell, list[Placed]]:
        """A cell with the key of the one that it replaces, by name, else by id; others that it replaces, too.

        A name that an earlier cell has means that cell, as a function that is defined again replaces the first one. A
        cell that changes its name stays the same cell; a later cell that has the name is replaced.
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
        """A cell by its name in ``%fluid cells``, or by its number ``3`` for ``In[3]``."""
        cell = next((p for p in self.cells if p.is_called(name) or name == str(p.cell.number)), None)
        if cell is None:
            names = [p.title for p in self.cells]
            raise OpValueError(
                f"there is no cell {name}.", expected=", ".join(names) or "no cells yet", received=name,
                hint=near(name, names) or "%fluid cells lists them.",
            )  # fmt: skip
        return cell

    def drop(self, names: list[str]) -> Report:
        """Remove cells, and with each those that append to its blocks."""
        return self._drop([self.find(name) for name in names])

    def follow(self, cell_id: str | None, deleted: Iterable[str]) -> Report:
        """Follow the notebook: remove cells that were deleted, move those that were moved."""
        gone = {*deleted, *self.notebook.update(cell_id)}
        here = self.notebook.positions if self.notebook.reported else ()  # the file may be older than what is deleted
        self._deleted = self._deleted - {cell_id, *here} | gone  # a cell that waits to be removed may come back
        report = self._drop([p for p in self.cells if p.cell.cell_id in self._deleted])
        self._deleted.clear()  # after an interrupt they wait for the next cell: the front end names each once
        return report

    @property
    def ghosts(self) -> list[Placed]:
        """The cells that `undo` restored and that the notebook does not have, as far as that is known."""
        positions = self.notebook.positions
        return [p for p in self.cells if (p.key, p.cell.cell_id) in self._restored and p.cell.cell_id not in positions]

    def drop_ghosts(self, cell_id: str | None) -> Report:
        """Drop the ghosts before a cell runs; none where the known order does not have that cell."""
        gone = [p for p in self.ghosts if p.cell.cell_id is not None] if cell_id in self.notebook.positions else []
        return self._drop(gone) if gone else Report()

    def reset(self) -> Report:
        """Remove all cells."""
        return self._drop(self.cells)

    def undo(self) -> Report:
        """Undo the last change; ``executed`` of the report has the cells that were restored."""
        before, loose = {p.key: p for p in self.cells}, [f for f in self.log.runs if f.loose]
        self.log.undo()
        after, left = {p.key: p for p in self.cells}, [f for f in self.log.runs if f.loose]
        back = [p.title for p in after.values() if p.key not in before or p.differs(before[p.key])]
        gone = [p.title for p in before.values() if p.key not in after]
        was = {(p.key, p.cell.cell_id) for p in before.values()}
        self._restored |= {(p.key, p.cell.cell_id) for p in after.values()} - was
        return Report(
            executed=back + [f.title for f in left if f not in loose],
            removed=gone + [f.title for f in loose if f not in left],
        )

    def free_name(self, name: str) -> str:
        """The first of ``name``, ``name_1``, … that no cell has."""
        taken = {p.cell.name for p in self.cells}
        return next(free for n in count() if (free := f"{name}_{n}" if n else name) not in taken)

    # Blocks.

    def open_block(self, cell: Cell) -> Report:
        """Open a block that stays open, or open it again."""
        group, owner = self._grouped(cell)
        return self._run(replace(group, state=OPEN), owner)

    def close_block(self, name: str = "") -> Report:
        """Append the operator that runs an open block; its name may be left out while only one is open."""
        opened = [p for p in self.cells if p.group.state == OPEN]
        meant = [p for p in opened if not name or p.cell.name == name]
        if len(meant) != 1:
            names = [p.cell.name for p in opened]
            summary = "several blocks are open." if meant else f"no block {name} is open.".replace("  ", " ")
            raise OpValueError(
                summary, expected=" or ".join(names) or "an open block", received=f"%fluid block close {name}".strip(),
                hint=near(name, names) or "%fluid block lists the blocks; a `with` closes its block itself.",
            )  # fmt: skip
        [cell] = meant
        return self._run(replace(cell.group, state=CLOSED), None if cell.owner is None else cell.owner.key)

    def named_block(self, name: str, program: Program) -> BlockDesc:
        """The block of a program that a user names."""
        block = self.blocks.block_at(program, *self.blocks.find(name, program, self.cells))
        assert block is not None, "only existing blocks are found"
        return block

    def block_of(self, cell: Placed) -> BlockDesc | None:
        """The block to which a cell appends; None for other cells, and while the block does not exist."""
        if cell.owner is None or cell.group.target is None:
            return None
        program, _ = self.program(cell.program)
        return self.blocks.block_at(program, cell.owner.key, cell.group.target)

    def drifted(self) -> list[tuple[Placed, int]]:
        """The cells that append to a block whose index has changed, with the new index."""
        blocks = ((p, self.block_of(p)) for p in self.cells if p.owner and (p.cell.block or "").isdecimal())
        return [(p, b.idx) for p, b in blocks if b is not None and str(b.idx) != p.cell.block]

    # Changes.

    def _grouped(self, cell: Cell) -> tuple[Group, Hashable | None]:
        """A cell with those that append to its blocks, and the cell to whose block it appends."""
        old = self.placed(cell.key)
        if old is None:
            group = Group(cell, first_run=max((p.group.first_run for p in self.cells), default=0) + 1)
        else:
            group = Group(cell, old.group.parts, first_run=old.group.first_run)
            old = None if old.run.apart else old
        if cell.block in (None, "0"):
            return group, None
        if old is not None and old.owner is not None and old.cell.block == cell.block:
            return replace(group, target=old.group.target), old.owner.key
        owner, target = self._find_block(cell, () if old is None else [g.key for g in old.group.walk()])
        return replace(group, target=target), owner

    def _find_block(self, cell: Cell, apart: Iterable[Hashable]) -> tuple[Hashable, BlockRef]:
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
        """Run a cell separately, or inside the cell to whose block it appends."""
        cell, old, opener = group.cell, self.placed(group.key), None if owner is None else self.placed(owner)
        root = group if opener is None else opener.run.task.source.with_part(owner, group)
        root = root.arranged(self._part_position)
        others: dict[Hashable, Group | None] = {}
        if old is not None and old.run.key != root.key:  # it moves
            whole = old.run.task.source
            others[whole.key] = None if whole.key == group.key else whole.without(group.key)
        for each in replaced:
            whole = root if each.run.key == root.key else others.get(each.run.key, each.run.task.source)
            if whole is None:
                continue
            if whole.key == each.key:
                others[each.key] = None
            elif whole is root:
                root = root.without(each.key)
            else:
                others[whole.key] = whole.without(each.key)
        if opener is not None and opener.run.ran:
            raise OpValueError(
                f'cell "{opener.title}" ran a program while building, so that it cannot run again by itself.',
                expected="a cell that only builds", received="an Executor in it",
                hint="run programs in a separate cell, then others can append to its blocks.",
            )  # fmt: skip
        # An open block is complete at its close only: operators built before that may be used in it.
        grows = old is None or bool(others) or group.state == CLOSED
        moves = grows and (root.state == OPEN or (root is group and group.state == CLOSED))
        with self.log.one_change(cell.title):
            self._displayed = group.key
            try:
                report = self.log.run(
                    root.key, root, root.cell.title, cell.title, others, order=self._order(root),
                    last=moves and not self._is_read(root.key),
                )  # fmt: skip
            except NameError as error:
                self._add_note(error, root)
                raise
            finally:
                self._displayed = None
            self._settle_drift(report, refuse=opener is not None)
            self._retry_detached(report)
        report.executed[0] = cell.title
        self._restored = {(key, i) for key, i in self._restored if key != cell.key}
        report.removed = [p.title for p in replaced if self.placed(p.key) is None]
        return report

    def _order(self, root: Group | None = None) -> dict[Hashable, int]:
        """The positions in the notebook of the cells that have one."""
        roots = {f.key: f.task.source for f in self.log.runs if not f.loose}
        if root is not None:
            roots[root.key] = root
        positions = {key: self._position(group.cell) for key, group in roots.items()} if self.notebook.positions else {}
        return {key: position for key, position in positions.items() if position is not None}

    def _position(self, cell: Cell) -> int | None:
        """A cell's position in the notebook: the first of the ids that were this cell and are no other cell now."""
        positions = self.notebook.positions
        if not positions:
            return None
        known = [i for i in cell.ids if i in positions]
        if len(known) > 1:  # another cell may have one of them by now
            known = [i for i in known if not any(p.cell.cell_id == i and p.key != cell.key for p in self.cells)]
        return min((positions[i] for i in known), default=None)

    def _part_position(self, part: Group) -> int | None:
        """A cell's position among the parts of another: in the notebook, else by its first run."""
        return self._position(part.cell) if self.notebook.positions else part.first_run

    def _settle_drift(self, report: Report, refuse: bool) -> None:
        """Detaches cells with ``--in 2`` whose block has another index now, or refuses the change."""
        for cell, index in self.drifted():
            why = f"appends to block {cell.cell.block}, which would be block {index}"
            if refuse:
                raise OpValueError(
                    f'cell "{cell.title}" {why}.',
                    expected="a cell that gives its block a name", received=f"--in {cell.cell.block}",
                    hint="run it with --in and one of the names that %fluid block lists, then make this change.",
                )  # fmt: skip
            whole = cell.run.task.source
            part = Task(cell.key, cell.title, cell.group)
            its = self.log.drop(others={whole.key: whole.without(cell.key)}, apart=[(part, why)], cause=cell.title)
            report.stale |= its.stale

    def _retry_detached(self, report: Report) -> None:
        """Attach parts that failed before again, where what they read has changed since."""
        for cell in [p for p in self.cells if p.run.apart]:
            try:
                owner, target = self._find_block(cell.cell, [g.key for g in cell.group.walk()])
            except OpValueError:
                continue
            opener = self.placed(owner)
            names, attributes = reads_of(self._code(cell.cell).code, self.shell.user_ns)
            reads: list[str | Attribute] = [*sorted(names), *attributes]
            state = [target, *(value_of(name, self.shell.user_ns) for name in reads)]
            if opener is None or opener.run.stale or opener.run.ran or cell.title in report.stale:
                continue
            state += [opener.run.origin]
            tried = self._tried.get(cell.key, [])
            if len(tried) == len(state) and state[0] == tried[0]:
                if all(a is b for a, b in zip(state[1:], tried[1:], strict=True)):
                    continue
            self._tried[cell.key] = state
            root = opener.run.task.source.with_part(owner, replace(cell.group, target=target))
            root = root.arranged(self._part_position)
            its = self.log.run(root.key, root, root.cell.title, cell.title, {cell.key: None}, order=self._order(root))
            now = self.placed(cell.key)
            if now is not None and not now.stale:
                report.executed += [cell.title, *its.executed[1:]]
                self._tried.pop(cell.key, None)

    def _is_read(self, key: Hashable) -> bool:
        """Whether a later cell reads names that a cell binds, so that it cannot move behind them."""
        runs = list(self.log.runs)
        at = next((i for i, f in enumerate(runs) if f.key == key), len(runs))
        return any(f.reads.uses.keys() & runs[at].bound.keys() for f in runs[at + 1 :])

    def _add_note(self, error: NameError, root: Group) -> None:
        """Name the later cell that binds a name which a cell does not see, since it runs inside an earlier one."""
        order = [p for p in self.cells if p.depth == 0]
        at = next((i for i, p in enumerate(order) if p.key == root.key), len(order))
        later = next((p for p in order[at + 1 :] if error.name in p.run.bound), None)
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
            rest = whole.arranged(self._part_position)
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
            self._retry_detached(report)
        report.removed = [p.title for p in before if self.placed(p.key) is None]
        return report

    # Callbacks of the log.

    def _execute(self, task: Task) -> None:
        group: Group = task.source
        main, startup = self.program(group.cell.program)
        displayed = None if task.again else self._displayed
        # A cell that builds into the default programs may put others in their place.
        with nullcontext() if group.cell.program in (None, DEFAULT) else program_guard(main, startup):
            building = Building(self.shell, group, self._code, self.blocks, displayed)
            try:
                building.run()
            finally:
                self._failed = building.failed

    def _split(self, task: Task, error: BaseException) -> tuple[Task, Task] | None:
        """A task without the part that failed, and that part; None where the user ran it."""
        group, failed = task.source, self._failed
        if failed is None or failed.key == group.key:
            return None
        if not task.again and any(each.key == self._displayed for each in failed.walk()):
            return None
        whole = replace(task, source=group.without(failed.key))
        return whole, Task(failed.key, failed.cell.title, failed)

    def _reads(self, task: Task) -> set[str | Attribute]:
        reads: set[str | Attribute] = set()
        for group in task.source.walk():
            reads.update(*reads_of(self._code(group.cell).code, self.shell.user_ns))
        return reads

    def _binds(self, task: Task) -> set[str]:
        return {name for group in task.source.walk() for name in names_bound(self._code(group.cell).code)}

    def _code(self, cell: Cell) -> Compiled:
        if cell not in self._compiled:
            self._compiled[cell] = compile_cell(self.shell, cell)
        return self._compiled[cell]


def _state(program: Program, startups: list[Program], scope: Scope) -> tuple[Any, ...]:
    """The inputs of initialization: while they are equal, no further variable is uninitialized."""
    return (program.version, *(startup.version for startup in startups), id(scope), invalidation.value)
