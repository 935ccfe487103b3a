"""Edits, moves, deletions, interrupts, undos and restarts in any order: Run All builds the bytes of a fresh run.

A notebook is a list of cells. Its front end is JupyterLab, which reports the ids of cells, deletions and perhaps the
order, or bare IPython, which reports nothing: then cells have names, and the order is that of their first run, or of
what they read.
"""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

import fluidnb as fluid
from fluidnb_magics import extension
from fluidnb_magics.session.cell_groups import Placed

#: How many sequences each front end gets: in `make test`, `make test-more`, and `make test-full`. One takes 1.3 s.
FEW, SEVERAL, MANY = 4, 60, 500
FULL = settings.default.max_examples > 100

#: Parts of a model. The text after the first line; {i} is what it reads, {o} what it binds.
BODIES = (
    "{o} = layers.fc({i}, size)",
    "{o} = layers.fc({i}, size, act='relu')",
    "{o} = layers.relu({i})",
    "{o} = layers.tanh({i})\nlayers.relu({o})",
    "layers.fc({i}, 2)\n{o} = layers.scale({i}, 2.0)",
    "def block(v): return layers.fc(v, size)\n{o} = block(block({i}))",
    "parts = [layers.relu({i})]\nparts.append(layers.tanh(parts[0]))\n{o} = layers.sum(parts)",
    "{o} = layers.dropout(layers.batch_norm({i}), 0.5)",
    "{o} = layers.scale({i}, 3.0)\n{o}.stop_gradient = True",
    "size = 5\n{o} = layers.relu({i})",
    "if interrupt: raise KeyboardInterrupt\n{o} = layers.sigmoid({i})",
    "{o} = layers.fc({i}, 'wrong')",
    "clone = fluid.default_main_program().clone()\n{o} = layers.relu({i})",
)
#: Cells that make, change in place and read a list, a dict and an object of several cells.
SHARED = (
    "kept = [layers.relu({i})]",
    "kept = []\nfirst, table = kept, {{'all': kept}}",
    "kept.append(layers.tanh({i}))",
    "kept += [layers.scale({i}, 2.0)]",
    "first.append({i})",
    "kept[0] = layers.sigmoid(kept[-1])",
    "{o} = layers.sum(kept)",
    "for each in list(kept): kept.append(layers.relu(each))",
    "table = {{'x': {i}}}",
    "table['{o}'] = layers.fc({i}, size)",
    "table.setdefault('all', []).append({i})",
    "del table['all'], kept[:1]",
    "for name, value in table.items(): layers.relu(value) if name != 'all' else layers.sum(value)",
    "def add(v): kept.append(v); return v\n{o} = add(layers.tanh({i}))",
    "widths = [4]",
    "widths.append(len(widths) + 2)\n{o} = layers.fc({i}, widths[-1])",
    "for width in widths: layers.fc({i}, width)",
    "kept.append({i})\nlayers.fc({i}, 'wrong')",
    "cfg = Config()\ncfg.width = 4",
    "class Config: parts = ()\ncfg = Config()",
    "cfg.width = getattr(cfg, 'width', 2) + 1",
    "{o} = layers.fc({i}, cfg.width)",
    "cfg.parts = [*cfg.parts, layers.tanh({i})]",
    "cfg.last, cfg.kept = {i}, kept\ncfg.kept.append(layers.relu(cfg.last))",
    "{o} = layers.relu(cfg.last)\nfor each in cfg.parts: layers.relu(each)",
    "del cfg.last",
)
LOOP = (
    "k = layers.fill_constant([1], 'int64', 0)\nmost = layers.fill_constant([1], 'int64', 3)\n"
    "more = layers.less_than(k, most)\nturns = layers.While(more)\n"
    "with turns.block():\n    layers.increment(k, 1)\n    layers.less_than(k, most, cond=more)"
)
PARTS = ("total = layers.scale({i}, 2.0)", "layers.assign(layers.relu({i}), output={i})", "w = layers.fc({i}, size)")
LOSS = "loss = layers.mean({i})\nfluid.optimizer.{kind}(0.1).minimize(loss);"
NAMES = ("x", "h", "g", "u")
#: Cells of each notebook, after the one of x: all names are bound, so that most of what is inserted builds.
FIRST = ("h = layers.fc(x, size)", "g = layers.relu(h)\nkept = [h]\ntable = {'x': x}", "u = layers.tanh(g)")


@dataclass(frozen=True)
class Text:
    """A cell as the notebook shows it.

    Args:
        id: the front end's id.
        name: the name after ``%%fluid``, or empty.
        body: what stands below.
        block: the block that it goes on with, or empty.
    """

    id: str
    name: str
    body: str
    block: str = ""

    @property
    def text(self) -> str:
        """All of it."""
        options = f" --in {self.block}" if self.block else ""
        return f"%%fluid {self.name}{options}\n{self.body}\n"


class Front:
    """One kernel and what a front end sends to it.

    Args:
        shell: the shell.
    """

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell
        self.restart()

    def restart(self) -> None:
        """Begin with an empty session."""
        extension.unload(self.shell)
        for name in [n for n in self.shell.user_ns if not n.startswith("_") or n.lstrip("_i").isdigit()]:
            self.shell.user_ns.pop(name)
        self.shell.compile._filename_map.clear()
        linecache.clearcache()  # IPython keeps the text of each cell, and looks through all of them at each traceback
        self.bench = extension.load(self.shell).bench
        self.shell.user_ns.update(size=3, interrupt=False, Config=SimpleNamespace)

    def run(self, cell: Text, ids: bool, order: list[Text] | None, deleted: list[str]) -> bool:
        """Run a cell; whether it succeeded."""
        if order is not None:
            self.bench.notebook.report([each.id for each in order])
        parent = {"metadata": {"deletedCells": deleted}}
        self.shell.kernel = SimpleNamespace(get_parent=lambda: parent) if ids else None  # type: ignore[attr-defined]
        try:
            with capture_output():
                done = self.shell.run_cell(cell.text, store_history=True, cell_id=cell.id if ids else None)
                return bool(done.success)
        finally:
            del self.shell.kernel  # type: ignore[attr-defined]


def state() -> tuple[bytes, bytes]:
    """The bytes of the default programs."""
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    return main.desc.serialize_to_string(), startup.desc.serialize_to_string()


shells: list[InteractiveShell] = []
#: Which cells a fresh kernel can build, the ids or names of those that are stale then, and the bytes.
FreshRun = tuple[list[bool], list[str], tuple[bytes, bytes]]
#: What fresh kernels made of lists of cells.
fresh_runs: dict[Any, FreshRun] = {}


@pytest.fixture(scope="module", autouse=True)
def two_shells(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A shell to work in, and one for fresh runs."""
    InteractiveShell.clear_instance()
    shells[:] = [
        InteractiveShell.instance(ipython_dir=str(tmp_path_factory.mktemp("ipython"))),
        InteractiveShell(),
    ]
    for shell in shells:
        shell.history_manager.enabled = False
    yield
    for shell in shells:
        extension.unload(shell)
        shell.history_manager.end_session()
    shells.clear()
    fresh_runs.clear()
    InteractiveShell.clear_instance()


names = st.sampled_from(NAMES)
bodies = st.one_of(
    st.builds(lambda body, i, o: body.format(i=i, o=o), st.sampled_from(BODIES), names, names),
    st.builds(lambda body, i, o: body.format(i=i, o=o), st.sampled_from(SHARED), names, names),
    st.builds(lambda i, kind: LOSS.format(i=i, kind=kind), names, st.sampled_from(("SGD", "Adam"))),
)
parts = st.builds(lambda body, i: body.format(i=i), st.sampled_from(PARTS), names)
which = st.integers(0, 30)


class Notebook(RuleBasedStateMachine):
    """A notebook whose front end reports ids and order."""

    #: Whether the front end sends ids, and whether it reports the order.
    ids, ordered = True, True

    def __init__(self) -> None:
        super().__init__()
        self.around = fluid.fresh()
        self.around.__enter__()
        self.front = Front(shells[0])
        self.cells: list[Text] = []
        self.trash: list[tuple[int, Text]] = []
        self.deleted: list[str] = []
        self.count = 0
        self.holds = True

    def teardown(self) -> None:
        """Run all cells at the end of each sequence, unless something failed before."""
        try:
            if self.holds:
                self.run_all()
        finally:
            self.around.__exit__(None, None, None)

    # What a user does to the notebook.

    def fresh_id(self) -> str:
        self.count += 1
        return f"{self.count:08d}"

    @initialize(named=st.booleans(), loop=st.booleans())
    def begin(self, named: bool, loop: bool) -> None:
        texts = ["x = layers.data('x', shape=[4])", *([LOOP] if loop else []), *FIRST]
        for i, text in enumerate(texts):
            self.cells.append(Text(self.fresh_id(), f"c{i}" if named or not self.ids else "", text))
        self.run_all()

    @rule(at=which, body=bodies, named=st.booleans())
    def insert(self, at: int, body: str, named: bool) -> None:
        at = at % (len(self.cells) + 1) if self.ordered else len(self.cells)
        each = self.fresh_id()
        self.cells.insert(at, Text(each, f"n{each[-3:]}" if named or not self.ids else "", body))

    @rule(body=parts, named=st.booleans())
    def insert_part(self, body: str, named: bool) -> None:
        each = self.fresh_id()
        name = f"n{each[-3:]}" if named or not self.ids else ""
        self.cells.append(Text(each, name, body, "turns"))

    @rule(at=which, body=bodies)
    def edit(self, at: int, body: str) -> None:
        if self.cells:
            at %= len(self.cells)
            self.cells[at] = replace(self.cells[at], body=body)

    @rule(old=names, new=names)
    def rename_variable(self, old: str, new: str) -> None:
        self.cells = [replace(cell, body=cell.body.replace(f"{old} = ", f"{new} = ")) for cell in self.cells]

    @precondition(lambda self: self.ids)
    @rule(at=which, name=st.sampled_from(("", "c0", "c1", "c2", "other")))
    def rename_cell(self, at: int, name: str) -> None:
        if self.cells:
            at %= len(self.cells)
            self.cells[at] = replace(self.cells[at], name=name)

    @precondition(lambda self: self.ordered)
    @rule(at=which, to=which)
    def move(self, at: int, to: int) -> None:
        if self.cells:
            cell = self.cells.pop(at % len(self.cells))
            self.cells.insert(to % (len(self.cells) + 1), cell)

    @rule(at=which)
    def delete(self, at: int) -> None:
        if len(self.cells) > 1:
            self.take_out(at % len(self.cells))

    def take_out(self, at: int) -> None:
        cell = self.cells.pop(at)
        self.trash.append((at, cell))
        if self.ids:
            self.deleted.append(cell.id)
        else:
            with capture_output():
                self.front.shell.run_cell(f"%fluid drop {cell.name}")

    @precondition(lambda self: self.ordered and self.trash)
    @rule()
    def restore(self) -> None:
        at, cell = self.trash.pop()
        self.cells.insert(min(at, len(self.cells)), cell)

    # What a user runs.

    def run(self, cell: Text) -> bool:
        deleted, self.deleted = [i for i in self.deleted if i not in {c.id for c in self.cells}], []
        return self.front.run(cell, self.ids, self.cells if self.ordered else None, deleted)

    @rule(at=which)
    def run_one(self, at: int) -> None:
        if self.cells:
            before, follows = state(), self.ordered or self.deleted
            if not self.run(self.cells[at % len(self.cells)]) and not follows:
                self.holds = state() == before
                assert self.holds

    @rule(at=which)
    def run_above(self, at: int) -> None:
        for cell in self.cells[: at % (len(self.cells) + 1)]:
            if not self.run(cell):
                break

    @rule(at=which)
    def interrupt(self, at: int) -> None:
        self.front.shell.user_ns["interrupt"] = True
        self.run_one(at)
        self.front.shell.user_ns["interrupt"] = False

    @rule()
    def undo(self) -> None:
        with capture_output():
            self.front.shell.run_cell("%fluid undo")

    @precondition(lambda self: self.front.bench.ghosts)
    @rule(at=which)
    def drop_ghost(self, at: int) -> None:
        ghosts = self.front.bench.ghosts
        with capture_output():
            self.front.shell.run_cell(f"%fluid drop {ghosts[at % len(ghosts)].title}")

    @precondition(lambda self: self.ordered and self.deleted)
    @rule()
    def reload(self) -> None:
        """The page forgets which cells it deleted; without the order of those that are left, nothing tells."""
        self.deleted.clear()

    @rule()
    def restart(self) -> None:
        self.around.__exit__(None, None, None)
        self.around = fluid.fresh()
        self.around.__enter__()
        self.front.restart()
        self.deleted.clear()

    @rule()
    def run_all(self) -> None:
        """Run all cells, but those that a fresh kernel cannot build either; then the same in a fresh kernel.

        Deleted cells that `%fluid undo` brought back go where the order is known. Where it is not they stay: a fresh
        kernel builds them too, and `%fluid cells` lists them as ghosts.
        """
        self.holds = False
        self.front.shell.user_ns.update(size=3)
        if self.ordered:
            while not all(fine := self.fresh_run(self.cells)[0]):
                self.take_out(fine.index(False))
            fine = [self.run(cell) for cell in self.cells]
            there = self.cells
        else:
            while not all(fine := [self.run(cell) for cell in self.cells]):
                self.take_out(fine.index(False))
                self.front.shell.user_ns.update(size=3)  # what a failed cell assigned stays, as in any notebook
            by_name = {self.key(cell): cell for cell in self.cells}
            placed = self.front.bench.cells  # a cell that became stale after it was built is so in a fresh kernel too
            there = [by_name.get(p.cell.cell_id or p.cell.name) or self.ghost(p) for p in placed]
        if not self.cells:  # nothing was run that would tell of the last deletions
            self.holds = True
            return
        got = state()
        for cell in there:
            note(repr(cell.text))
        afresh, stale, expected = self.fresh_run(there)
        here = {p.cell.cell_id or p.cell.name for p in self.front.bench.cells if p.stale}
        unbuilt = {self.key(cell) for cell, ran in zip(there, afresh, strict=True) if not ran}
        assert unbuilt <= here, "a fresh kernel refuses what this one builds"
        # A fresh kernel builds a cell before the later one that makes it stale; here that one is there when it runs.
        refused = {self.key(cell) for cell, ran in zip(self.cells, fine, strict=True) if not ran}
        assert refused <= {*stale, *unbuilt}, "a fresh kernel builds what this one refuses"
        shown = {self.key(cell) for cell in self.cells}
        # Of two cells of one name the second replaces the first; what reads the first is stale, in a fresh kernel too.
        named = [cell.name for cell in self.cells if cell.name]
        if self.ordered or len(named) == len(set(named)):
            assert (here & shown) | refused == (set(stale) | unbuilt) & shown
        others = [p.title for p in self.front.bench.cells if (p.cell.cell_id or p.cell.name) not in shown]
        assert others == ([] if self.ordered else [p.title for p in self.front.bench.ghosts])
        assert got == expected
        self.holds = True

    def key(self, cell: Text) -> str:
        """The key of a cell: the front end's id, or its name."""
        return cell.id if self.ids else cell.name

    def ghost(self, placed: Placed) -> Text:
        """The text of a cell that is in the program only."""
        cell = placed.cell
        name = cell.name if cell.is_named else ""
        return Text(cell.cell_id or cell.name, name, cell.source.removesuffix("\n"), cell.block or "")

    def fresh_run(self, cells: list[Text]) -> FreshRun:
        """The result of some cells in a fresh kernel; each list of cells is run once."""
        key = type(self), tuple(cells), tuple(self.cells)
        if key not in fresh_runs:
            with fluid.fresh():
                again = Front(shells[1])
                fine = [again.run(cell, self.ids, self.cells if self.ordered else None, []) for cell in cells]
                stale = [p.cell.cell_id or p.cell.name for p in again.bench.cells if p.stale]
                fresh_runs[key] = fine, stale, state()
        return fresh_runs[key]


class WithoutOrder(Notebook):
    """A front end that sends ids and deletions, but no order."""

    ordered = False


class Bare(Notebook):
    """Bare IPython: cells have names."""

    ids = ordered = False


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("examples", [FEW, pytest.param(MANY if FULL else SEVERAL, marks=pytest.mark.slow)])
@pytest.mark.parametrize("front_end", [Notebook, WithoutOrder, Bare])
def test_run_all_is_a_fresh_run(front_end: type[Notebook], examples: int) -> None:
    run_state_machine_as_test(
        front_end,
        settings=settings(
            max_examples=examples, stateful_step_count=15, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
