"""Cells and what they appended: run again in place, dropped, undone; the program is always that of a fresh run.

A cell that runs again is replaced: everything from it on is taken off, it runs, and the later cells are put back. One
that read nothing that changed is put back as it is; the others run again from their source. A later cell that cannot be
built becomes stale: it is not part of the program until what it lacks is there again. An error of the cell that the
user runs leaves all as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from fluidnb.cells import bindings, delta
from fluidnb.cells import build_state as world
from fluidnb.cells import dependencies as reads
from fluidnb.cells import saved_layer_objects as held
from fluidnb.cells import unchanged as same_result
from fluidnb.cells.build_state import BuildState
from fluidnb.cells.cell_run import CellRun, Moment, Report, Task
from fluidnb.cells.delta import Delta
from fluidnb.cells.saved_layer_objects import SavedObject
from fluidnb.errors import OpValueError, near
from fluidnb.program import origin
from fluidnb.program.origin import Origin, Recorder
from fluidnb.program.program import Program
from fluidnb.program.snapshot import as_desc
from fluidnb.proto.desc import ProgramDesc

T = TypeVar("T", CellRun, Task, CellRun | Task)

__all__ = ["CellLog", "CellRun", "Report", "Task"]

#: No cells.
NOTHING: Mapping[Hashable, Any] = {}

#: Takes what failed out of a task: the rest, what failed as a separate task; None where nothing would be left.
Split = Callable[[Task, BaseException], "tuple[Task, Task] | None"]

#: The shell's lists of what went in and out.
_OF_SHELL = {"In", "Out", "_ih", "_oh", "_dh"}

#: What is wrong with a cell that cannot be put back and must not run again by itself.
_RAN = "it ran a program while building; run it again yourself"
_LOOSE = "it was done outside of cells, to something that is no longer there"


class CellLog:
    """The cells that built the programs, in the order of their first run.

    Args:
        execute: runs a `Task`; it raises what the cell raises.
        namespace: the Python names of the cells, so that names follow what is replaced; None leaves names alone.
        uses: gives the Python names that a task reads, so that a changed ``size = 64`` counts.
        binds: gives the Python names that a task assigns. Without it, a name that a cell binds to what it meant
            already, by declaring ``x`` a second time for example, is not known to be the cell's.
        depth: how many changes can be undone.
        split: takes a part that failed out of a task; None where tasks have no parts.
        kept: called with new piece -> old piece where a cell that ran again built the same and the old pieces stay.

    Example:
        >>> from fluidnb.program import default_main_program, fresh_programs
        >>> def x(): default_main_program().global_block().create_var(name="x", shape=[3], dtype="float32")
        >>> with fresh_programs() as (main, startup):
        ...     log = CellLog(lambda task: task.source())
        ...     report = log.run("a1", x, "data")
        ...     had = main.global_block().has_var("x")
        ...     report = log.drop("a1")
        ...     had, main.global_block().has_var("x")
        (True, False)
    """

    def __init__(
        self,
        execute: Callable[[Task], object],
        namespace: MutableMapping[str, Any] | None = None,
        uses: Callable[[Task], Iterable[str]] | None = None,
        binds: Callable[[Task], Iterable[str]] | None = None,
        depth: int = 50,
        split: Split | None = None,
        kept: Callable[[same_result.Pairs], object] | None = None,
    ) -> None:
        self._execute = execute
        self._namespace: MutableMapping[str, Any] = {} if namespace is None else namespace
        self._uses = uses
        self._binds = binds
        self._depth = depth
        self._split = split
        self._kept = kept
        self._nested = False
        self._fragments: list[CellRun] = []
        self._history: list[Moment] = []
        self._last = world.take()
        self._known = {self._last.settings.main, self._last.settings.startup}

    # What there is.

    @property
    def fragments(self) -> tuple[CellRun, ...]:
        """The fragments in program order, stale ones and edits made between cells included."""
        return tuple(self._fragments)

    def find(self, key: Hashable) -> CellRun:
        """The fragment of a cell.

        Args:
            key: the cell's key.

        Raises:
            OpValueError: there is none.
        """
        for fragment in self._fragments:
            if fragment.key == key and not fragment.loose:
                return fragment
        keys = [str(f.key) for f in self._fragments if not f.loose]
        raise OpValueError(
            f"there is no cell {key!r}.", expected=", ".join(keys) or "no cells yet", received=repr(key),
            hint=near(str(key), keys),
        )  # fmt: skip

    def lineage(self, program: Program) -> tuple[Origin, ...]:
        """The runs that made a program what it is now, in order.

        Args:
            program: the program.
        """
        return tuple(f.origin for f in self._fragments if not f.stale and any(d.program is program for d in f.deltas))

    # Changes.

    def run(
        self,
        key: Hashable,
        source: Any,
        title: str | None = None,
        cause: str = "",
        others: Mapping[Hashable, Any] = NOTHING,
        last: bool = False,
        order: Mapping[Hashable, int] = NOTHING,
    ) -> Report:
        """Run a cell: for the first time at the end, or again in its place.

        A later cell that cannot be built any more becomes stale. A cell that needs a Python name which only a later
        cell binds gets that cell before it, and a cell that binds what stale cells lack goes before them, where
        ``order`` does not say where it belongs.

        Args:
            key: what identifies the cell.
            source: what the host needs to run it.
            title: how people call it; the key when left out.
            cause: what the user ran, where that is only a part of the cell; the title when left out.
            others: cells that change with it: their new sources, None for those that go.
            last: whether a cell that ran before moves to the end.
            order: key -> position, for the cells whose order is known; the others stay behind the cell before them.

        Returns:
            What happened to the later cells.

        Raises:
            BaseException: what the cell raises; all is as it was then.
        """
        task = Task(key, str(key) if title is None else title, source)
        cause = cause or task.title
        self._settled()
        with self._change(cause) as report:
            wanted = self._wanted({**others, key: source}, report)
            place = next((i for i, f in enumerate(wanted) if f.key == key), len(wanted))
            rest = [f for f in wanted if f.key != key]
            there: list[CellRun | Task] = [*rest]
            there.insert(len(rest) if last else place, task)
            there = arranged(there, order)
            fate = f'was replaced when cell "{cause}" was run again; use the new one'
            self._run_with_needs(there, task, fate, report, free=key not in order)
        return report

    def drop(
        self,
        *keys: Hashable,
        cause: str = "",
        others: Mapping[Hashable, Any] = NOTHING,
        order: Mapping[Hashable, int] = NOTHING,
        apart: Sequence[tuple[Task, str]] = (),
    ) -> Report:
        """Remove cells; later cells that cannot be built without them become stale.

        Args:
            keys: their keys.
            cause: what the user removed, where that is only a part of a cell; the titles when left out.
            others: cells that only change: their new sources.
            order: key -> position, for the cells whose order is known.
            apart: parts that ``others`` no longer have and that wait outside, each with the reason.

        Returns:
            What happened to the later cells.

        Raises:
            OpValueError: there is no such cell.
        """
        self._settled()
        edits = {**others, **dict.fromkeys(keys)}
        titles = cause or ", ".join(self.find(key).title for key in keys)
        if not edits and not self.would_move(order):
            return Report()
        with self._change(titles, remember=bool(edits)) as report:
            fate = f'went when cell "{titles}" was removed' if edits else "was replaced when cells were moved"
            self._rebuild(arranged(self._wanted(edits, report), order), fate, report)
            for part, why in apart:
                self._stale(_apart(part), why, report)
        return report

    def would_move(self, order: Mapping[Hashable, int]) -> bool:
        """Whether an order differs from that of the cells now.

        Args:
            order: key -> position, for the cells whose order is known.
        """
        return arranged(self._fragments, order) != self._fragments

    @contextmanager
    def one_change(self, title: str) -> Iterator[None]:
        """Make one change of all that happens inside, for `undo`; an error takes all of it back.

        Args:
            title: what the user did.

        Yields:
            Nothing.
        """
        self._settled()
        with self._change(title):
            self._nested = True
            try:
                yield
            finally:
                self._nested = False

    def undo(self) -> Report:
        """Undoes the last change: a run, a removal, or edits made between cells.

        Returns:
            The titles of the cells that it concerned, as executed (put back) and removed.

        Raises:
            OpValueError: there is nothing to undo.
        """
        self._settled()
        if not self._history:
            raise OpValueError("there is nothing to undo.", expected="a cell that ran", received="no changes yet")
        moment = self._history.pop()
        now = self._fragments
        self._go_back(moment)
        self._last = self._world()
        for fragment in now:
            if fragment.origin not in [f.origin for f in self._fragments]:
                fragment.origin.fate = f'was undone; run cell "{fragment.title}" again'
        back = [f.title for f in self._fragments if f not in now]
        return Report(executed=back, removed=[f.title for f in now if f not in self._fragments])

    def before_last_change(self, program: Program) -> ProgramDesc:
        """A program as `undo` would leave it.

        Args:
            program: the program.

        Returns:
            A separate description; an empty one when the program was not there yet.

        Raises:
            OpValueError: there is nothing to undo.
        """
        self._settled()
        if not self._history:
            raise OpValueError("there is nothing to undo.", expected="a cell that ran", received="no changes yet")
        shot = self._history[-1].world.shots.get(program)
        return ProgramDesc() if shot is None else as_desc(shot)

    # How a change is made.

    def _settled(self) -> list[CellRun]:
        """The cell runs, with edits made between cells recorded as a separate run."""
        if origin.recorder is not None:
            raise OpValueError("a cell cannot run cells.", hint="end the cell first.")
        before, now = self._last, self._world()
        recorder = Recorder(Origin(None, "edits outside cells"))
        if self._deltas(before, now, recorder) or now.settings != before.settings:
            for generator, ids in before.counters.items():
                changed = {k for k in generator.ids if generator.ids[k] != ids.get(k, 0)}
                recorder.counters.update({(generator, k): ids.get(k, 0) for k in changed})
            task = Task(recorder.origin, recorder.origin.title, None)
            self._remember(Moment(before, self.fragments, dict(self._namespace), task.title))
            self._fragments.append(self._fragment(task, recorder, before, now, {}, {}, loose=True))
        self._last = now
        return self._fragments

    @contextmanager
    def _change(self, title: str, remember: bool = True) -> Iterator[Report]:
        """All or nothing around the body; what is gone for good learns its fate."""
        moment = Moment(self._last, self.fragments, dict(self._namespace), title)
        report = Report()
        try:
            yield report
        except BaseException:
            self._go_back(moment)
            raise
        self._last = self._world()
        if remember and not self._nested:
            self._remember(moment)
        self._settle_fates()

    def _world(self) -> BuildState:
        return world.take(self._known, self._values())

    def _values(self) -> list[Any]:
        """The values of the user's names, without the shell's lists of inputs and outputs."""
        return [value for name, value in self._namespace.items() if name not in _OF_SHELL]

    def _settle_fates(self) -> None:
        for fragment in self._fragments:
            fragment.origin.fate = _fate(fragment.title, fragment.stale) if fragment.stale else ""

    def _remember(self, moment: Moment) -> None:
        self._history.append(moment)
        del self._history[: -self._depth]

    def _go_back(self, moment: Moment) -> None:
        fragments = (*moment.fragments, *self._fragments)
        touched = {name for f in fragments for name in f.bound}
        data = self._data(fragments, moment.world)
        world.restore(moment.world)
        for container in data:
            container.put_back()
        bindings.roll_back(self._namespace, moment.names, touched)
        self._fragments = list(moment.fragments)
        self._settle_fates()

    def _data(self, fragments: Iterable[CellRun], before: BuildState) -> list[SavedObject]:
        """Containers without pieces of programs that no cell changed: what was computed outside of cells stays."""
        filled = {id(thing.thing) for f in fragments for thing, _ in f.held}
        filled |= {id(thing.thing) for thing in before.held if bindings.ours(thing.state)}
        now = held.take(self._values())
        return [t for t in now if t.is_container and id(t.thing) not in filled and not bindings.ours(t.state)]

    def _take_off(self, place: int, fate: str) -> list[CellRun]:
        """Take off the fragments from a place on, the last one first."""
        tail = self._fragments[place:]
        for i in range(len(tail) - 1, -1, -1):
            fragment = tail[i]
            fragment.origin.fate = fate
            if not fragment.stale:
                for change in reversed(fragment.deltas):
                    change.revert()
                for generator, key, number in fragment.reads.counters:
                    generator.ids[key] = number
                    if not number:
                        del generator.ids[key]
                world.set_settings(fragment.reads.settings)
                for before, after in fragment.held:
                    if after.holds() or not after.is_container:  # a container that somebody changed since is theirs
                        before.put_back()
                tail[i] = replace(fragment, bound=bindings.take_back(self._namespace, fragment.bound))
        del self._fragments[place:]
        return tail

    def _wanted(self, edits: Mapping[Hashable, Any], report: Report) -> list[CellRun]:
        """The fragments with new sources, and without those that go."""
        wanted = []
        for fragment in self._fragments:
            if fragment.key in edits and not fragment.loose:
                source = edits[fragment.key]
                if source is None:
                    report.removed.append(fragment.title)
                    continue
                fragment = replace(fragment, task=replace(fragment.task, source=source), edited=True, attempt=None)
            wanted.append(fragment)
        return wanted

    def _run_with_needs(
        self, wanted: list[CellRun | Task], task: Task, fate: str, report: Report, free: bool
    ) -> None:
        """Rebuild with a cell that the user runs; where its place is free, by what it reads and binds."""
        moment = Moment(self._last, self.fragments, dict(self._namespace), task.title)
        empty = report.copy()
        while True:
            try:
                self._rebuild(wanted, fate, report)
                break
            except NameError as error:
                moved = _with_need(wanted, task, error.name) if free and error.name else None
                if moved is None:
                    raise
                self._go_back(moment)
                wanted = moved
                report.become(empty)
        stale = self._lacking(task.key)
        if free and stale is not None:
            ran, said = Moment(self._world(), self.fragments, dict(self._namespace), task.title), report.copy()
            now = list(self._fragments)
            mine = next(f for f in now if f.key == task.key)
            now.remove(mine)
            now.insert(now.index(stale), mine)
            self._rebuild(now, fate, report)
            if any(f.stale for f in self._fragments if f.key in {g.key for g in ran.fragments if not g.stale}):
                self._go_back(ran)
                report.become(said)

    def _lacking(self, key: Hashable) -> CellRun | None:
        """The first stale cell before a cell that lacks a name which that cell binds, if the cell can go before it."""
        place = next(i for i, f in enumerate(self._fragments) if f.key == key)
        bound = self._fragments[place].bound
        for i, fragment in enumerate(self._fragments[:place]):
            if fragment.stale and fragment.attempt is not None:
                lacks = {n for n, value in fragment.attempt.uses.items() if value is reads.MISSING} & bound.keys()
                between = {name for f in self._fragments[i:place] if not f.stale for name in f.bound}
                if lacks and not between & self._fragments[place].reads.uses.keys():
                    return fragment
        return None

    def _rebuild(self, wanted: list[CellRun | Task] | list[CellRun], fate: str, report: Report) -> None:
        """Make the log what is wanted: fragments are put back, run again, or become stale; tasks are run."""
        now = self._fragments
        shared = min(len(now), len(wanted))
        place = next((i for i in range(shared) if now[i] is not wanted[i]), shared)
        before, tail = now[place:], self._take_off(place, fate)
        taken = {id(old): new for old, new in zip(before, tail, strict=True)}
        earlier = {f.key: f for f in tail if not f.loose}
        same = True  # whether all so far is what it was: then what comes next need not be compared with the program
        for i, each in enumerate(wanted[place:]):
            same = same and i < len(before) and before[i].key == each.key
            if isinstance(each, Task):
                kept = self._build(each, earlier.get(each.key), report)
                report.unchanged = kept
                report.executed.insert(0, each.title)
                same = same and kept
            else:
                if id(each) in taken:
                    each = taken[id(each)]
                elif each.key in earlier:  # edited
                    each = replace(each, bound=earlier[each.key].bound)
                same = self._put_back(each, same, report) and same

    def _put_back(self, fragment: CellRun, same: bool, report: Report) -> bool:
        """Put a fragment back: as it is, by running it again, or as stale. Whether all is what it was before then."""
        if fragment.stale and self._stays_stale(fragment, same):
            self._fragments.append(fragment)
            return True
        if self._fits(fragment, same and not fragment.stale):
            self._put_on(fragment)
            (report.executed if fragment.stale else report.kept).append(fragment.title)
            return not fragment.stale
        if not fragment.ran and not fragment.loose:
            return self._run_again(fragment, report)
        self._stale(fragment, _LOOSE if fragment.loose else _RAN, report)
        return False

    def _stays_stale(self, fragment: CellRun, same: bool) -> bool:
        """Whether a stale cell would read what it read when it failed."""
        if fragment.apart:
            return True
        if fragment.attempt is None:
            return same and not fragment.edited
        return fragment.attempt.hold_in_python(self._namespace) and (
            same or fragment.attempt.hold(self.lineage, self._namespace)
        )

    def _fits(self, fragment: CellRun, same: bool) -> bool:
        """Whether a cell would build what it built; while all before it is the same, only Python values can differ."""
        if fragment.edited or fragment.apart:
            return False
        if same:
            return fragment.reads.hold_in_python(self._namespace)
        return fragment.reads.hold(self.lineage, self._namespace) and all(d.fits() for d in fragment.deltas)

    def _put_on(self, fragment: CellRun) -> None:
        fragment.origin.fate = ""
        for change in fragment.deltas:
            change.apply()
        for (generator, key), number in fragment.counters.items():
            generator.ids[key] = number
        world.set_settings(fragment.settings)
        for _, after in fragment.held:
            after.put_back()
        bound = bindings.give_again(self._namespace, fragment.bound)
        self._fragments.append(replace(fragment, bound=bound, stale=""))

    def _stale(self, fragment: CellRun, why: str, report: Report) -> None:
        fragment.origin.fate = _fate(fragment.title, why)
        if fragment.ran:  # what it computed stays available for inspection
            bindings.give_again(self._namespace, fragment.bound)
            for before, after in fragment.held:
                if after.is_container and before.holds() and not bindings.ours(after.state):
                    after.put_back()
        self._fragments.append(replace(fragment, stale=why))
        if fragment.stale != why:
            report.stale[fragment.title] = why

    def _run_again(self, fragment: CellRun, report: Report) -> bool:
        """Run a cell because of what changed before it; whether it built what it had built before."""
        before, names = self._world(), dict(self._namespace)
        try:
            same = self._build(replace(fragment.task, again=True), fragment, report)
        except Exception as error:
            world.restore(before)
            bindings.roll_back(self._namespace, names, set(fragment.bound))
            attempt = self._attempt
            self._stale(replace(fragment, attempt=attempt), self._reason(error), report)
            return False
        was = {name: value for name, (_, value) in fragment.bound.items()}
        unchanged = same and all(was.get(n, was) is v for n, (_, v) in self._fragments[-1].bound.items())
        (report.kept if unchanged else report.executed).append(fragment.title)
        return same

    def _build(self, task: Task, old: CellRun | None, report: Report) -> bool:
        """Run a cell, without those of its parts that fail; whether it built what it had built before."""
        before, names = self._world(), dict(self._namespace)
        broken: list[tuple[Task, str]] = []
        while True:
            try:
                self._run(task)
                break
            except Exception as error:
                parts = self._split(task, error) if self._split is not None else None
                if parts is None:
                    raise
                world.restore(before)
                bindings.roll_back(self._namespace, names, set())
                task = replace(parts[0], again=task.again)
                broken.append((parts[1], self._reason(error)))
        same = old is not None and self._keep_old(old) and not old.stale and not broken
        for part, why in broken:
            self._stale(_apart(part), why, report)
        return same

    def _keep_old(self, old: CellRun) -> bool:
        """Put what a cell built before in place of what it has built now, if that is alike."""
        new = self._fragments[-1]
        named = {
            value: old.bound[name][1]
            for name, (_, value) in new.bound.items()
            if isinstance(value, Program) and name in old.bound and isinstance(old.bound[name][1], Program)
        }
        pairs = same_result.pairs_of(old.deltas, new.deltas, new.origin, named)
        if pairs is None or not self._same_ends(old, new, pairs):
            return False
        self._fragments.pop()
        for change in reversed(new.deltas):
            change.revert()
        for before, _ in new.held:
            before.put_back()
        world.set_settings(new.reads.settings)
        if not all(change.fits() for change in old.deltas):
            for change in new.deltas:
                change.apply()
            for _, after in new.held:
                after.put_back()
            world.set_settings(new.settings)
            self._fragments.append(new)
            return False
        bound = dict(new.bound)
        for name, (first, value) in new.bound.items():
            if name in old.bound and same_result.alike(value, old.bound[name][1], pairs):
                bound[name] = first, old.bound[name][1]
        old.origin.title = new.title
        merged = replace(
            old, task=new.task, reads=new.reads, counters=new.counters, bound=bound, ran=new.ran,
            edited=False, attempt=None, held=[(b, a) for (b, _), (_, a) in zip(new.held, old.held, strict=True)],
        )  # fmt: skip
        self._put_on(merged)
        same_result.take_over(pairs)
        self._fragments[-1] = replace(self._fragments[-1], bound=bound)
        if self._kept is not None:
            self._kept(pairs)
        return True

    def _same_ends(self, old: CellRun, new: CellRun, pairs: same_result.Pairs) -> bool:
        """Whether two runs left the same settings, and the same in objects of layers that were there before."""
        if [id(b.thing) for b, _ in old.held] != [id(b.thing) for b, _ in new.held]:
            return False
        settings = old.settings, new.settings
        held = zip(new.held, old.held, strict=True)
        return (
            settings[0].generator is settings[1].generator
            and pairs.get(settings[1].main, settings[1].main) is settings[0].main
            and pairs.get(settings[1].startup, settings[1].startup) is settings[0].startup
            and all(same_result.alike(now.state, before.state, pairs) for (_, now), (_, before) in held)
        )

    def _reason(self, error: Exception) -> str:
        """Why a cell cannot be built, in a line; for a name that is missing, the stale cell that would bind it."""
        if isinstance(error, NameError) and error.name:
            owner = next((f.title for f in reversed(self._fragments) if f.stale and error.name in f.bound), None)
            because = "" if owner is None else f' (cell "{owner}", which binds it, is stale)'
            return f"{error.name} is not defined{because}"
        first = next(iter(str(error).strip().splitlines()), "")
        return first if isinstance(error, OpValueError) and first else f"{type(error).__name__}: {first}".rstrip(": ")

    def _run(self, task: Task) -> None:
        before, names = self._world(), dict(self._namespace)
        read = set(self._uses(task)) if self._uses is not None else set()
        uses = {name: names.get(name, reads.MISSING) for name in read}
        recorder = origin.recorder = Recorder(Origin(task.key, task.title), known=set(before.shots))
        self._attempt: reads.Reads | None = None
        try:
            self._execute(task)
        except Exception:
            origin.recorder = None
            self._attempt = self._fragment(task, recorder, before, self._world(), uses, {}).reads
            raise
        finally:
            origin.recorder = None
            self._meet(recorder, before)
        bound = bindings.made(names, self._namespace, set(self._binds(task)) if self._binds is not None else ())
        task = replace(task, again=False)
        self._fragments.append(self._fragment(task, recorder, before, self._world(), uses, bound))

    def _meet(self, recorder: Recorder, before: BuildState) -> None:
        """Keep an eye from now on on programs made outside cells that a cell edits."""
        for program, shot in recorder.met.items():
            self._known.add(program)
            for known in (before, self._last, *(m.world for m in self._history)):
                known.shots.setdefault(program, shot)

    def _deltas(self, before: BuildState, after: BuildState, recorder: Recorder) -> list[Delta]:
        found = []
        for program, shot in before.shots.items():
            then = after.shots.get(program)
            if then is not None and then is not shot:
                change = delta.between(shot, then, recorder)
                if change is not None:
                    found.append(change)
        return found

    def _fragment(
        self,
        task: Task,
        recorder: Recorder,
        before: BuildState,
        now: BuildState,
        uses: Mapping[str, Any],
        bound: bindings.Bound,
        loose: bool = False,
    ) -> CellRun:
        deltas = self._deltas(before, now, recorder)
        then = {id(thing.thing): thing for thing in now.held}
        held = [(h, then[id(h.thing)]) for h in before.held if id(h.thing) in then and not h.same(then[id(h.thing)])]
        collected = reads.collect(recorder, deltas, before, self.lineage, uses, [h for h, _ in held])
        counters = {(generator, key): generator.ids.get(key, 0) for generator, key in recorder.counters}
        return CellRun(
            task, recorder.origin, deltas, collected, counters, world.settings(), bound, held, recorder.ran, loose
        )


def _fate(title: str, why: str) -> str:
    """The explanation, in errors, of variables of a stale cell."""
    return f'belongs to cell "{title}", which is stale: {why}'


def _apart(task: Task) -> CellRun:
    """A part that failed, outside of the cell with which it ran."""
    now = world.settings()
    nothing = reads.Reads([], [], [], [], [], {}, now, [])
    return CellRun(task, Origin(task.key, task.title), [], nothing, {}, now, {}, apart=True)


def arranged(parts: Sequence[T], order: Mapping[Hashable, int]) -> list[T]:
    """Fragments in a known order; those whose position is not known stay behind the one before them.

    Args:
        parts: fragments or tasks.
        order: key -> position.

    Returns:
        All of them.

    Example:
        >>> [t.key for t in arranged([Task(k, k, "") for k in "abcd"], {"a": 2, "c": 1})]
        ['c', 'd', 'a', 'b']
    """
    chunks: list[tuple[int, list[T]]] = [(-1, [])]
    for part in parts:
        if part.key in order:
            chunks.append((order[part.key], []))
        chunks[-1][1].append(part)
    return [part for _, chunk in sorted(chunks, key=lambda row: row[0]) for part in chunk]


def _with_need(wanted: list[CellRun | Task], task: Task, name: str) -> list[CellRun | Task] | None:
    """The cells with the first later one that binds a name in front of a cell; None where there is none."""
    place = next(i for i, each in enumerate(wanted) if each is task)
    for i, each in enumerate(wanted[place + 1 :], place + 1):
        if isinstance(each, CellRun) and not each.loose and name in each.bound:
            return [*wanted[:place], each, task, *wanted[place + 1 : i], *wanted[i + 1 :]]
    return None
