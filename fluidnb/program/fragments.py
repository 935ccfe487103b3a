"""Cells and what they appended: run again in place, dropped, undone; the program is always that of a fresh run.

A cell that runs again is replaced: everything from it on is taken off, it runs, and the later cells are put back. One
that read nothing that changed is put back as it is; the others run again from their source. Whatever raises on the
way leaves all as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from fluidnb.errors import OpValueError, near
from fluidnb.program import bindings, delta, origin, reads, world
from fluidnb.program.delta import Delta
from fluidnb.program.fragment import Fragment, Moment, Report, Task
from fluidnb.program.origin import Origin, Recorder
from fluidnb.program.program import Program
from fluidnb.program.snapshot import as_desc
from fluidnb.program.world import World
from fluidnb.proto.desc import ProgramDesc

__all__ = ["Fragment", "FragmentLog", "Report", "Task"]

#: No cells.
NOTHING: Mapping[Hashable, Any] = {}

#: What is wrong with a cell that cannot be put back and must not run again by itself.
_RAN = "it ran a program while building; run it again yourself"
_LOOSE = "it was done outside of cells, to something that is no longer there"


class FragmentLog:
    """The cells that built the programs, in the order of their first run.

    Args:
        execute: runs a `Task`; it raises what the cell raises.
        namespace: the Python names of the cells, so that names follow what is replaced; None leaves names alone.
        uses: gives the Python names that a task reads, so that a changed ``size = 64`` counts.
        binds: gives the Python names that a task assigns. Without it, a name that a cell binds to what it meant
            already, by declaring ``x`` a second time for example, is not known to be the cell's.
        depth: how many changes can be undone.

    Example:
        >>> from fluidnb.program import default_main_program, fresh_programs
        >>> def x(): default_main_program().global_block().create_var(name="x", shape=[3], dtype="float32")
        >>> with fresh_programs() as (main, startup):
        ...     log = FragmentLog(lambda task: task.source())
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
    ) -> None:
        self._execute = execute
        self._namespace: MutableMapping[str, Any] = {} if namespace is None else namespace
        self._uses = uses
        self._binds = binds
        self._depth = depth
        self._fragments: list[Fragment] = []
        self._history: list[Moment] = []
        self._last = world.take()
        self._known = {self._last.settings.main, self._last.settings.startup}

    # What there is.

    @property
    def fragments(self) -> tuple[Fragment, ...]:
        """The fragments in program order, stale ones and edits made between cells included."""
        return tuple(self._fragments)

    def find(self, key: Hashable) -> Fragment:
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
    ) -> Report:
        """Run a cell: for the first time at the end, or again in its place.

        A cell that had become stale because an earlier one went is run at the end.

        Args:
            key: what identifies the cell.
            source: what the host needs to run it.
            title: how people call it; the key when left out.
            cause: what the user ran, where that is only a part of the cell; the title when left out.
            others: cells that change with it: their new sources, None for those that go.
            last: whether a cell that ran before moves to the end.

        Returns:
            What happened to the later cells.

        Raises:
            BaseException: what the cell, or a later one that runs again, raises; all is as it was then.
        """
        task = Task(key, str(key) if title is None else title, source)
        cause = cause or task.title
        self._settled()
        with self._change(cause) as report:
            # What broke without an earlier cell is out of the program; running it is a first run, at the end.
            self._fragments = [f for f in self._fragments if f.key != key or not f.stale or f.ran]
            edits = {**others, key: source}
            fate = f'was replaced when cell "{cause}" was run again; use the new one'
            tail = self._take_off(self._first(edits), fate)
            rest = [f for f in tail if f.key != key]
            place = len(rest) if last else next((i for i, f in enumerate(tail) if f.key == key), len(rest))
            self._put_back(rest[:place], cause, report, edits=edits)
            self._run(task)
            report.executed.insert(0, task.title)
            self._put_back(rest[place:], cause, report, edits=edits)
        return report

    def drop(
        self, *keys: Hashable, keep_going: bool = False, cause: str = "", others: Mapping[Hashable, Any] = NOTHING
    ) -> Report:
        """Remove cells.

        Args:
            keys: their keys.
            keep_going: whether later cells that raise without them become stale, instead of keeping all as it was.
            cause: what the user removed, where that is only a part of a cell; the titles when left out.
            others: cells that only change: their new sources.

        Returns:
            What happened to the later cells.

        Raises:
            OpValueError: there is no such cell.
            BaseException: what a later cell raises without them; all is as it was then.
        """
        self._settled()
        edits = {**others, **dict.fromkeys(keys)}
        titles = cause or ", ".join(self.find(key).title for key in keys)
        if not edits:
            return Report()
        with self._change(titles) as report:
            tail = self._take_off(self._first(edits), f'went when cell "{titles}" was removed')
            self._put_back(tail, titles, report, keep_going, edits)
        return report

    def undo(self) -> Report:
        """Take back the last change: a run, a removal, or edits made between cells.

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
            A description of its own; an empty one when the program was not there yet.

        Raises:
            OpValueError: there is nothing to undo.
        """
        self._settled()
        if not self._history:
            raise OpValueError("there is nothing to undo.", expected="a cell that ran", received="no changes yet")
        shot = self._history[-1].world.shots.get(program)
        return ProgramDesc() if shot is None else as_desc(shot)

    # How a change is made.

    def _settled(self) -> list[Fragment]:
        """The fragments, after edits made between cells have become a fragment of their own."""
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
    def _change(self, title: str) -> Iterator[Report]:
        """All or nothing around the body; what is gone for good learns its fate."""
        moment = Moment(self._last, self.fragments, dict(self._namespace), title)
        report = Report()
        try:
            yield report
        except BaseException:
            self._go_back(moment)
            raise
        self._last = self._world()
        self._remember(moment)
        self._settle_fates()

    def _world(self) -> World:
        return world.take(self._known, self._namespace.values())

    def _first(self, keys: Collection[Hashable]) -> int:
        """The place of the first of some cells; the end when there is none of them."""
        return next((i for i, f in enumerate(self._fragments) if f.key in keys), len(self._fragments))

    def _settle_fates(self) -> None:
        for fragment in self._fragments:
            fragment.origin.fate = _fate(fragment.title, fragment.stale) if fragment.stale else ""

    def _remember(self, moment: Moment) -> None:
        self._history.append(moment)
        del self._history[: -self._depth]

    def _go_back(self, moment: Moment) -> None:
        touched = {name for f in (*moment.fragments, *self._fragments) for name in f.bound}
        world.restore(moment.world)
        bindings.roll_back(self._namespace, moment.names, touched)
        self._fragments = list(moment.fragments)
        self._settle_fates()

    def _take_off(self, place: int, fate: str) -> list[Fragment]:
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
                for before, _ in fragment.held:
                    before.put_back()
                tail[i] = replace(fragment, bound=bindings.take_back(self._namespace, fragment.bound))
        del self._fragments[place:]
        return tail

    def _put_back(
        self,
        tail: list[Fragment],
        cause: str,
        report: Report,
        keep_going: bool = False,
        edits: Mapping[Hashable, Any] = NOTHING,
    ) -> None:
        """Put fragments back in order: as they are, by running them again, perhaps with a new source, or as stale."""
        for fragment in tail:
            if fragment.key in edits:
                source = edits[fragment.key]
                if source is None:
                    report.removed.append(fragment.title)
                    continue
                fragment = replace(fragment, task=replace(fragment.task, source=source), edited=True)
            if self._fits(fragment):
                self._put_on(fragment)
                report.kept.append(fragment.title)
            elif fragment.ran or fragment.loose:
                self._stale(fragment, _LOOSE if fragment.loose else _RAN, report)
            else:
                # What reads a stale cell cannot be built either; the user runs that one again, then this one.
                self._run_again(fragment, cause, report, keep_going or bool(report.stale))

    def _fits(self, fragment: Fragment) -> bool:
        if fragment.edited or not fragment.reads.hold(self.lineage, self._namespace):
            return False
        return all(d.fits() for d in fragment.deltas)

    def _put_on(self, fragment: Fragment) -> None:
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

    def _stale(self, fragment: Fragment, why: str, report: Report) -> None:
        fragment.origin.fate = _fate(fragment.title, why)
        if fragment.ran:  # what it computed stays, for whoever looks at it
            bindings.give_again(self._namespace, fragment.bound)
        self._fragments.append(replace(fragment, stale=why))
        report.stale[fragment.title] = why

    def _run_again(self, fragment: Fragment, cause: str, report: Report, keep_going: bool) -> None:
        before, names = self._world(), dict(self._namespace)
        try:
            self._run(replace(fragment.task, again=True))
            report.executed.append(fragment.title)
        except BaseException as error:
            if keep_going and isinstance(error, Exception):
                world.restore(before)
                bindings.roll_back(self._namespace, names, set(fragment.bound))
                self._stale(fragment, f"{type(error).__name__}: {error}".splitlines()[0], report)
                return
            error.add_note(f'Cell "{fragment.title}" ran again because it reads what cell "{cause}" had made.')
            raise

    def _run(self, task: Task) -> None:
        before, names = self._world(), dict(self._namespace)
        read = set(self._uses(task)) if self._uses is not None else set()
        uses = {name: names.get(name, reads.MISSING) for name in read}
        recorder = origin.recorder = Recorder(Origin(task.key, task.title), known=set(before.shots))
        try:
            self._execute(task)
        finally:
            origin.recorder = None
            self._meet(recorder, before)
        bound = bindings.made(names, self._namespace, set(self._binds(task)) if self._binds is not None else ())
        task = replace(task, again=False)
        self._fragments.append(self._fragment(task, recorder, before, self._world(), uses, bound))

    def _meet(self, recorder: Recorder, before: World) -> None:
        """Keep an eye from now on on programs made outside cells that a cell edits."""
        for program, shot in recorder.met.items():
            self._known.add(program)
            for known in (before, self._last, *(m.world for m in self._history)):
                known.shots.setdefault(program, shot)

    def _deltas(self, before: World, after: World, recorder: Recorder) -> list[Delta]:
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
        before: World,
        now: World,
        uses: Mapping[str, Any],
        bound: bindings.Bound,
        loose: bool = False,
    ) -> Fragment:
        deltas = self._deltas(before, now, recorder)
        then = {id(thing.thing): thing for thing in now.held}
        held = [(h, then[id(h.thing)]) for h in before.held if id(h.thing) in then and not h.same(then[id(h.thing)])]
        collected = reads.collect(recorder, deltas, before, self.lineage, uses, [h for h, _ in held])
        counters = {(generator, key): generator.ids.get(key, 0) for generator, key in recorder.counters}
        return Fragment(
            task, recorder.origin, deltas, collected, counters, world.settings(), bound, held, recorder.ran, loose
        )


def _fate(title: str, why: str) -> str:
    """What became of what a stale cell had made."""
    return f'belongs to cell "{title}", which is stale: {why}'
