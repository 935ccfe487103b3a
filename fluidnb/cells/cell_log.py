"""The cell log: cells run again in place, dropped, undone; the program is always that of a fresh run.

To run a cell again, everything from it on is reverted, it runs, and the later cells are applied again: as they are
where nothing that they read has changed, else from their source. A later cell that cannot be built becomes stale: it is
not part of the program until what it lacks is there again. An error of the user's cell leaves all as it was.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from fluidnb.cells import bindings, build_state, delta
from fluidnb.cells import dependencies as reads
from fluidnb.cells import saved_layer_objects as saved_objects
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
#: Separates the part that failed from a task: (the rest, the part); None where nothing would be left.
Split = Callable[[Task, BaseException], "tuple[Task, Task] | None"]
#: The shell's lists of inputs and outputs.
_OF_SHELL = {"In", "Out", "_ih", "_oh", "_dh"}
#: Reasons of cells that cannot be applied again and must not run by themselves.
_RAN = "it ran a program while building; run it again yourself"
_LOOSE = "it was done outside of cells, to something that is no longer there"


class CellLog:
    """The cells that built the programs, in the order of their first run.

    Args:
        namespace: the Python names of the cells, bound again to what is replaced; None leaves names alone.
        uses: the Python names and attributes that a task reads, so that a changed ``size = 64`` counts.
        binds: the Python names that a task assigns, also to the value that they had.
        split: separates a part that failed from a task; None where tasks have no parts.
        kept: called with new piece -> old piece where a cell that ran again built the same and the old pieces stay.
    """

    def __init__(
        self, execute: Callable[[Task], object], namespace: MutableMapping[str, Any] | None = None,
        uses: Callable[[Task], Iterable[str | reads.Attribute]] | None = None,
        binds: Callable[[Task], Iterable[str]] | None = None,
        depth: int = 50, split: Split | None = None, kept: Callable[[same_result.Pairs], object] | None = None,
    ) -> None:  # fmt: skip
        self._execute = execute
        self._namespace: MutableMapping[str, Any] = {} if namespace is None else namespace
        self._uses = uses
        self._binds = binds
        self._depth = depth
        self._split = split
        self._kept = kept
        self._nested = False
        self._runs: list[CellRun] = []
        self._history: list[Moment] = []
        self._last = build_state.take()
        self._known = {self._last.settings.main, self._last.settings.startup}

    @property
    def runs(self) -> tuple[CellRun, ...]:
        """The cell runs in program order, stale ones and edits made between cells included."""
        return tuple(self._runs)

    def find(self, key: Hashable) -> CellRun:
        """The run of a cell."""
        for run in self._runs:
            if run.key == key and not run.loose:
                return run
        keys = [str(f.key) for f in self._runs if not f.loose]
        raise OpValueError(
            f"there is no cell {key!r}.", expected=", ".join(keys) or "no cells yet", received=repr(key),
            hint=near(str(key), keys),
        )  # fmt: skip

    def lineage(self, program: Program) -> tuple[Origin, ...]:
        """The runs that changed a program, in order."""
        return tuple(f.origin for f in self._runs if not f.stale and any(d.program is program for d in f.deltas))

    # Changes.

    def run(
        self,
        key: Hashable, source: Any, title: str | None = None, cause: str = "",
        others: Mapping[Hashable, Any] = NOTHING, last: bool = False, order: Mapping[Hashable, int] = NOTHING,
    ) -> Report:  # fmt: skip
        """Run a cell: for the first time at the end, or again in its place.

        A later cell that cannot be built any more becomes stale. Where ``order`` leaves it open, a cell that needs a
        Python name of a later cell goes behind that cell, and one that binds what stale cells lack goes before them.

        Args:
            cause: the part that the user ran; the title when left out.
            others: cells that change with it: their new sources, None for those that go.
            order: key -> position, for the cells whose order is known; the others stay behind the cell before them.
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
        self, *keys: Hashable, cause: str = "", others: Mapping[Hashable, Any] = NOTHING,
        order: Mapping[Hashable, int] = NOTHING, apart: Sequence[tuple[Task, str]] = (),
    ) -> Report:  # fmt: skip
        """Remove cells; later cells that cannot be built without them become stale.

        Args:
            cause: the part that the user removed; the titles when left out.
            apart: parts that ``others`` no longer have and that stay stale outside of them, each with the reason.
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
        """Whether an order differs from that of the cells now."""
        return arranged(self._runs, order) != self._runs

    @contextmanager
    def one_change(self, title: str) -> Iterator[None]:
        """One change for `undo` of all that happens inside; an error undoes all of it."""
        self._settled()
        with self._change(title):
            self._nested = True
            try:
                yield
            finally:
                self._nested = False

    def undo(self) -> Report:
        """Undoes the last change: a run, a removal, or edits made between cells; reports executed and removed cells."""
        self._settled()
        if not self._history:
            raise OpValueError("there is nothing to undo.", expected="a cell that ran", received="no changes yet")
        moment = self._history.pop()
        now = self._runs
        self._go_back(moment)
        self._last = self._state()
        for run in now:
            if run.origin not in [f.origin for f in self._runs]:
                run.origin.fate = f'was undone; run cell "{run.title}" again'
        back = [f.title for f in self._runs if f not in now]
        return Report(executed=back, removed=[f.title for f in now if f not in self._runs])

    def before_last_change(self, program: Program) -> ProgramDesc:
        """A program as `undo` would leave it; an empty description when it was not there yet."""
        self._settled()
        if not self._history:
            raise OpValueError("there is nothing to undo.", expected="a cell that ran", received="no changes yet")
        shot = self._history[-1].build_state.shots.get(program)
        return ProgramDesc() if shot is None else as_desc(shot)

    def _settled(self) -> list[CellRun]:
        """The cell runs, with edits made between cells recorded as a separate run."""
        if origin.recorder is not None:
            raise OpValueError("a cell cannot run cells.", hint="end the cell first.")
        before, now = self._last, self._state()
        recorder = Recorder(Origin(None, "edits outside cells"))
        if self._deltas(before, now, recorder) or now.settings != before.settings:
            for generator, ids in before.counters.items():
                changed = {k for k in generator.ids if generator.ids[k] != ids.get(k, 0)}
                recorder.counters.update({(generator, k): ids.get(k, 0) for k in changed})
            task = Task(recorder.origin, recorder.origin.title, None)
            self._remember(Moment(before, self.runs, dict(self._namespace), task.title))
            self._runs.append(self._cell_run(task, recorder, before, now, {}, {}, loose=True))
        self._last = now
        return self._runs

    @contextmanager
    def _change(self, title: str, remember: bool = True) -> Iterator[Report]:
        """All or nothing around the body."""
        moment = Moment(self._last, self.runs, dict(self._namespace), title)
        report = Report()
        try:
            yield report
        except BaseException:
            self._go_back(moment, failed=True)
            raise
        self._last = self._state()
        if remember and not self._nested:
            self._remember(moment)
        self._settle_fates()

    def _state(self) -> BuildState:
        return build_state.take(self._known, self._values())

    def _values(self) -> list[Any]:
        """The values of the user's names, without the shell's lists and Python's own names (``__builtins__``)."""
        return [v for name, v in self._namespace.items() if name not in _OF_SHELL and not name.startswith("__")]

    def _settle_fates(self) -> None:
        for run in self._runs:
            run.origin.fate = _fate(run.title, run.stale) if run.stale else ""

    def _remember(self, moment: Moment) -> None:
        self._history.append(moment)
        del self._history[: -self._depth]

    def _go_back(self, moment: Moment, failed: bool = False) -> None:
        """Make everything what it was; names bound since to other values stay, unless a cell that ``failed`` did it."""
        runs = (*moment.runs, *self._runs)
        touched = {name for f in runs for name in f.bound}
        if failed:  # else the corrected cell would compute with what it has changed itself
            touched |= {name for name in moment.names if not bindings.is_of_shell(name)}
        data = self._data(runs, moment.build_state)
        build_state.restore(moment.build_state)
        for container in data:
            container.put_back()
        bindings.roll_back(self._namespace, moment.names, touched)
        self._runs = list(moment.runs)
        self._settle_fates()

    def _data(self, runs: Iterable[CellRun], before: BuildState) -> list[SavedObject]:
        """Containers and records without pieces of programs that no cell changed: they stay as the user left them."""
        filled = {id(thing.thing) for f in runs for thing, _ in f.saved}
        filled |= {id(thing.thing) for thing in before.saved if bindings.ours(thing.state)}
        now = saved_objects.take(self._values())
        return [t for t in now if t.is_users and id(t.thing) not in filled and not bindings.ours(t.state)]

    def _take_off(self, place: int, fate: str) -> list[CellRun]:
        """Revert the cell runs from a place on, the last one first."""
        tail = self._runs[place:]
        for i in range(len(tail) - 1, -1, -1):
            run = tail[i]
            run.origin.fate = fate
            if not run.stale:
                for change in reversed(run.deltas):
                    change.revert()
                for generator, key, number in run.reads.counters:
                    generator.ids[key] = number
                    if not number:
                        del generator.ids[key]
                build_state.set_settings(run.reads.settings)
                for before, after in run.saved:
                    if after.holds() or not after.is_users:  # what somebody else changed since is theirs
                        before.put_back()
                tail[i] = replace(run, bound=bindings.unbind(self._namespace, run.bound))
        del self._runs[place:]
        return tail

    def _wanted(self, edits: Mapping[Hashable, Any], report: Report) -> list[CellRun]:
        """The cell runs with new sources, and without those that go."""
        wanted = []
        for run in self._runs:
            if run.key in edits and not run.loose:
                source = edits[run.key]
                if source is None:
                    report.removed.append(run.title)
                    continue
                run = replace(run, task=replace(run.task, source=source), edited=True, attempt=None)
            wanted.append(run)
        return wanted

    def _run_with_needs(self, wanted: list[CellRun | Task], task: Task, fate: str, report: Report, free: bool) -> None:
        """Rebuild with a cell that the user runs; where its place is free, it follows from names read and bound."""
        moment = Moment(self._last, self.runs, dict(self._namespace), task.title)
        empty = report.copy()
        while True:
            try:
                self._rebuild(wanted, fate, report)
                break
            except NameError as error:
                moved = _with_need(wanted, task, error.name) if free and error.name else None
                if moved is None:
                    raise
                self._go_back(moment, failed=True)
                wanted = moved
                report.become(empty)
        stale = self._lacking(task.key)
        if free and stale is not None:
            ran, earlier_report = Moment(self._state(), self.runs, dict(self._namespace), task.title), report.copy()
            now = list(self._runs)
            mine = next(f for f in now if f.key == task.key)
            now.remove(mine)
            now.insert(now.index(stale), mine)
            self._rebuild(now, fate, report)
            if any(f.stale for f in self._runs if f.key in {g.key for g in ran.runs if not g.stale}):
                self._go_back(ran)
                report.become(earlier_report)

    def _lacking(self, key: Hashable) -> CellRun | None:
        """The first stale cell before a cell that lacks a name which that cell binds, if the cell can go before it."""
        place = next(i for i, f in enumerate(self._runs) if f.key == key)
        bound = self._runs[place].bound
        for i, run in enumerate(self._runs[:place]):
            if run.stale and run.attempt is not None:
                lacks = {n for n, value in run.attempt.uses.items() if value is reads.MISSING} & bound.keys()
                between = {name for f in self._runs[i:place] if not f.stale for name in f.bound}
                if lacks and not between & self._runs[place].reads.uses.keys():
                    return run
        return None

    def _rebuild(self, wanted: list[CellRun | Task] | list[CellRun], fate: str, report: Report) -> None:
        """Make the log what is wanted: runs are applied, run again, or become stale; tasks are run."""
        now = self._runs
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

    def _put_back(self, run: CellRun, same: bool, report: Report) -> bool:
        """Apply a run as it is, run it again, or make it stale; whether all is then what it was before."""
        if run.stale and self._stays_stale(run, same):
            self._runs.append(run)
            return True
        if self._fits(run, same and not run.stale):
            self._put_on(run)
            (report.executed if run.stale else report.kept).append(run.title)
            return not run.stale
        if not run.ran and not run.loose:
            return self._run_again(run, report)
        self._stale(run, _LOOSE if run.loose else _RAN, report)
        return False

    def _stays_stale(self, run: CellRun, same: bool) -> bool:
        """Whether a stale cell would read what it read when it failed."""
        if run.apart:
            return True
        if run.attempt is None:
            return same and not run.edited
        return run.attempt.hold_in_python(self._namespace) and (same or run.attempt.hold(self.lineage, self._namespace))

    def _fits(self, run: CellRun, same: bool) -> bool:
        """Whether a cell would build what it built; if all before it is the ``same``, Python values decide."""
        if run.edited or run.apart:
            return False
        if same:
            return run.reads.hold_in_python(self._namespace)
        return run.reads.hold(self.lineage, self._namespace) and all(d.fits() for d in run.deltas)

    def _put_on(self, run: CellRun) -> None:
        run.origin.fate = ""
        for change in run.deltas:
            change.apply()
        for (generator, key), number in run.counters.items():
            generator.ids[key] = number
        build_state.set_settings(run.settings)
        for _, after in run.saved:
            after.put_back()
        bound = bindings.rebind(self._namespace, run.bound)
        self._runs.append(replace(run, bound=bound, stale=""))

    def _stale(self, run: CellRun, why: str, report: Report) -> None:
        run.origin.fate = _fate(run.title, why)
        if run.ran:  # its results stay available for inspection
            bindings.rebind(self._namespace, run.bound)
            for before, after in run.saved:
                if after.is_users and before.holds() and not bindings.ours(after.state):
                    after.put_back()
        self._runs.append(replace(run, stale=why))
        if run.stale != why:
            report.stale[run.title] = why

    def _run_again(self, run: CellRun, report: Report) -> bool:
        """Run a cell after a change before it; whether it built the same again."""
        before, names = self._state(), dict(self._namespace)
        try:
            same = self._build(replace(run.task, again=True), run, report)
        except Exception as error:
            build_state.restore(before)
            # All that this attempt assigned, also what the user bound again since: it was not run by hand.
            bindings.roll_back(self._namespace, names, {n for n in self._namespace if not bindings.is_of_shell(n)})
            self._stale(replace(run, attempt=self._attempt), self._reason(error), report)
            return False
        was = {name: value for name, (_, value) in run.bound.items()}
        unchanged = same and all(was.get(n, was) is v for n, (_, v) in self._runs[-1].bound.items())
        (report.kept if unchanged else report.executed).append(run.title)
        return same

    def _build(self, task: Task, old: CellRun | None, report: Report) -> bool:
        """Run a cell, without those of its parts that fail; whether it built the same again."""
        before, names = self._state(), dict(self._namespace)
        broken: list[tuple[Task, str]] = []
        while True:
            try:
                self._run(task)
                break
            except Exception as error:
                parts = self._split(task, error) if self._split is not None else None
                if parts is None:
                    raise
                build_state.restore(before)
                bindings.roll_back(self._namespace, names, set())
                task = replace(parts[0], again=task.again)
                broken.append((parts[1], self._reason(error)))
        same = old is not None and self._keep_old(old) and not old.stale and not broken
        for part, why in broken:
            self._stale(_apart(part), why, report)
        return same

    def _keep_old(self, old: CellRun) -> bool:
        """Apply the former pieces of a cell in place of the new ones, if they are alike."""
        new = self._runs[-1]
        named = {
            value: old.bound[name][1]
            for name, (_, value) in new.bound.items()
            if isinstance(value, Program) and name in old.bound and isinstance(old.bound[name][1], Program)
        }
        pairs = same_result.pairs_of(old.deltas, new.deltas, new.origin, named)
        if pairs is None or not self._same_ends(old, new, pairs):
            return False
        self._runs.pop()
        for change in reversed(new.deltas):
            change.revert()
        for before, _ in new.saved:
            before.put_back()
        build_state.set_settings(new.reads.settings)
        if not all(change.fits() for change in old.deltas):
            for change in new.deltas:
                change.apply()
            for _, after in new.saved:
                after.put_back()
            build_state.set_settings(new.settings)
            self._runs.append(new)
            return False
        bound = dict(new.bound)
        for name, (first, value) in new.bound.items():
            if name in old.bound and same_result.alike(value, old.bound[name][1], pairs):
                bound[name] = first, old.bound[name][1]
        old.origin.title = new.title
        merged = replace(
            old, task=new.task, reads=new.reads, counters=new.counters, bound=bound, ran=new.ran,
            edited=False, attempt=None, saved=[(b, a) for (b, _), (_, a) in zip(new.saved, old.saved, strict=True)],
        )  # fmt: skip
        self._put_on(merged)
        same_result.take_over(pairs)
        self._runs[-1] = replace(self._runs[-1], bound=bound)
        if self._kept is not None:
            self._kept(pairs)
        return True

    def _same_ends(self, old: CellRun, new: CellRun, pairs: same_result.Pairs) -> bool:
        """Whether two runs left the same settings and the same layer objects."""
        if [id(b.thing) for b, _ in old.saved] != [id(b.thing) for b, _ in new.saved]:
            return False
        settings = old.settings, new.settings
        saved = zip(new.saved, old.saved, strict=True)
        return (
            settings[0].generator is settings[1].generator
            and pairs.get(settings[1].main, settings[1].main) is settings[0].main
            and pairs.get(settings[1].startup, settings[1].startup) is settings[0].startup
            and all(same_result.alike(now.state, before.state, pairs) for (_, now), (_, before) in saved)
        )

    def _reason(self, error: Exception) -> str:
        """The reason why a cell cannot be built, in a line; for a missing name, with the stale cell that binds it."""
        if isinstance(error, NameError) and error.name:
            owner = next((f.title for f in reversed(self._runs) if f.stale and error.name in f.bound), None)
            because = "" if owner is None else f' (cell "{owner}", which binds it, is stale)'
            return f"{error.name} is not defined{because}"
        first = next(iter(str(error).strip().splitlines()), "")
        return first if isinstance(error, OpValueError) and first else f"{type(error).__name__}: {first}".rstrip(": ")

    def _run(self, task: Task) -> None:
        before, names = self._state(), dict(self._namespace)
        read = set(self._uses(task)) if self._uses is not None else set()
        uses = {name: reads.value_of(name, names) for name in read}
        recorder = origin.recorder = Recorder(Origin(task.key, task.title), known=set(before.shots))
        self._attempt: reads.Reads | None = None
        try:
            self._execute(task)
        except Exception:
            origin.recorder = None
            self._attempt = self._cell_run(task, recorder, before, self._state(), uses, {}).reads
            raise
        finally:
            origin.recorder = None
            self._meet(recorder, before)
        bound = bindings.new_names(names, self._namespace, set(self._binds(task)) if self._binds is not None else ())
        task = replace(task, again=False)
        self._runs.append(self._cell_run(task, recorder, before, self._state(), uses, bound))

    def _meet(self, recorder: Recorder, before: BuildState) -> None:
        """Track programs made outside cells that a cell edits."""
        for program, shot in recorder.met.items():
            self._known.add(program)
            for known in (before, self._last, *(m.build_state for m in self._history)):
                known.shots.setdefault(program, shot)

    def _deltas(self, before: BuildState, after: BuildState, recorder: Recorder) -> list[Delta]:
        pairs = ((shot, after.shots.get(program, shot)) for program, shot in before.shots.items())
        deltas = (delta.between(shot, then, recorder) for shot, then in pairs if then is not shot)
        return [change for change in deltas if change is not None]

    def _cell_run(
        self, task: Task, recorder: Recorder, before: BuildState, now: BuildState,
        uses: Mapping[str | reads.Attribute, Any], bound: bindings.Bound, loose: bool = False,
    ) -> CellRun:  # fmt: skip
        deltas = self._deltas(before, now, recorder)
        then = {id(thing.thing): thing for thing in now.saved}
        # An attribute that the run itself changed, a counter, would build the cell again each time.
        uses = {n: v for n, v in uses.items() if isinstance(n, str) or reads.same_value(n.value(), v)}
        saved = [(h, then[id(h.thing)]) for h in before.saved if id(h.thing) in then and not h.same(then[id(h.thing)])]
        collected = reads.collect(recorder, deltas, before, self.lineage, uses, [h for h, _ in saved])
        counters = {(generator, key): generator.ids.get(key, 0) for generator, key in recorder.counters}
        settings = build_state.settings()
        return CellRun(task, recorder.origin, deltas, collected, counters, settings, bound, saved, recorder.ran, loose)


def _fate(title: str, why: str) -> str:
    """The explanation, in errors, of variables of a stale cell."""
    return f'belongs to cell "{title}", which is stale: {why}'


def _apart(task: Task) -> CellRun:
    """A part that failed, as a separate run."""
    now = build_state.settings()
    nothing = reads.Reads([], [], [], [], [], {}, now, [])
    return CellRun(task, Origin(task.key, task.title), [], nothing, {}, now, {}, apart=True)


def arranged(parts: Sequence[T], order: Mapping[Hashable, int]) -> list[T]:
    """Cells in a known order; those whose position is not known stay behind the one before them."""
    chunks: list[tuple[int, list[T]]] = [(-1, [])]
    for part in parts:
        if part.key in order:
            chunks.append((order[part.key], []))
        chunks[-1][1].append(part)
    return [part for _, chunk in sorted(chunks, key=lambda row: row[0]) for part in chunk]


def _with_need(wanted: list[CellRun | Task], task: Task, name: str) -> list[CellRun | Task] | None:
    """The cells with the first later one that binds a name moved in front of a cell; None without one."""
    place = next(i for i, each in enumerate(wanted) if each is task)
    for i, each in enumerate(wanted[place + 1 :], place + 1):
        if isinstance(each, CellRun) and not each.loose and name in each.bound:
            return [*wanted[:place], each, task, *wanted[place + 1 : i], *wanted[i + 1 :]]
    return None
