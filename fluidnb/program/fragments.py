"""Cells and what they appended: run again in place, dropped, undone; the program is always that of a fresh run.

A cell that runs again is replaced: everything from it on is taken off, it runs, and the later cells are put back. One
that read nothing that changed is put back as it is; the others run again from their source. Whatever raises on the
way leaves all as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from fluidnb.errors import OpValueError, near
from fluidnb.program import bindings, delta, origin, reads, world
from fluidnb.program.delta import Delta
from fluidnb.program.fragment import Fragment, Moment, Report, Task
from fluidnb.program.origin import Origin, Recorder
from fluidnb.program.program import Program
from fluidnb.program.world import World

__all__ = ["Fragment", "FragmentLog", "Report", "Task"]

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

    def run(self, key: Hashable, source: Any, title: str | None = None) -> Report:
        """Run a cell: for the first time at the end, or again in its place.

        A cell that had become stale because an earlier one went is run at the end.

        Args:
            key: what identifies the cell.
            source: what the host needs to run it.
            title: how people call it; the key when left out.

        Returns:
            What happened to the later cells.

        Raises:
            BaseException: what the cell, or a later one that runs again, raises; all is as it was then.
        """
        task = Task(key, str(key) if title is None else title, source)
        self._settled()
        with self._change(task.title) as report:
            # What broke without an earlier cell is out of the program; running it is a first run, at the end.
            self._fragments = [f for f in self._fragments if f.key != key or not f.stale or f.ran]
            place = next((i for i, f in enumerate(self._fragments) if f.key == key), len(self._fragments))
            tail = self._take_off(place, f'was replaced when cell "{task.title}" was run again; use the new one')
            self._run(task, report)
            self._put_back(tail[1:], task.title, report)
        return report

    def drop(self, *keys: Hashable, keep_going: bool = False) -> Report:
        """Remove cells.

        Args:
            keys: their keys.
            keep_going: whether later cells that raise without them become stale, instead of keeping all as it was.

        Returns:
            What happened to the later cells.

        Raises:
            OpValueError: there is no such cell.
            BaseException: what a later cell raises without them; all is as it was then.
        """
        self._settled()
        gone = [self.find(key) for key in keys]
        if not gone:
            return Report()
        titles = ", ".join(f.title for f in gone)
        with self._change(titles) as report:
            place = min(self._fragments.index(f) for f in gone)
            tail = self._take_off(place, f'went when cell "{titles}" was removed')
            report.removed += [f.title for f in tail if f.key in keys]
            self._put_back([f for f in tail if f.key not in keys], titles, report, keep_going)
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
        self._last = world.take(self._known)
        for fragment in now:
            if fragment.origin not in [f.origin for f in self._fragments]:
                fragment.origin.fate = f'was undone; run cell "{fragment.title}" again'
        back = [f.title for f in self._fragments if f not in now]
        return Report(executed=back, removed=[f.title for f in now if f not in self._fragments])

    # How a change is made.

    def _settled(self) -> list[Fragment]:
        """The fragments, after edits made between cells have become a fragment of their own."""
        if origin.recorder is not None:
            raise OpValueError("a cell cannot run cells.", hint="end the cell first.")
        before, now = self._last, world.take(self._known)
        recorder = Recorder(Origin(None, "edits outside cells"))
        deltas = self._deltas(before, now, recorder)
        if deltas or now.settings != before.settings:
            for generator, ids in before.counters.items():
                changed = {k for k in generator.ids if generator.ids[k] != ids.get(k, 0)}
                recorder.counters.update({(generator, k): ids.get(k, 0) for k in changed})
            task = Task(recorder.origin, recorder.origin.title, None)
            self._remember(Moment(before, self.fragments, dict(self._namespace), task.title))
            self._fragments.append(self._fragment(task, recorder, deltas, before, {}, {}, loose=True))
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
        self._last = world.take(self._known)
        self._remember(moment)
        self._settle_fates()

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
                tail[i] = replace(fragment, bound=bindings.take_back(self._namespace, fragment.bound))
        del self._fragments[place:]
        return tail

    def _put_back(self, tail: list[Fragment], cause: str, report: Report, keep_going: bool = False) -> None:
        """Put fragments back in order: as they are, by running them again, or as stale."""
        for fragment in tail:
            if fragment.reads.hold(self.lineage, self._namespace) and all(d.fits() for d in fragment.deltas):
                self._put_on(fragment)
                report.kept.append(fragment.title)
            elif fragment.ran or fragment.loose:
                self._stale(fragment, _LOOSE if fragment.loose else _RAN, report)
            else:
                # What reads a stale cell cannot be built either; the user runs that one again, then this one.
                self._run_again(fragment, cause, report, keep_going or bool(report.stale))

    def _put_on(self, fragment: Fragment) -> None:
        fragment.origin.fate = ""
        for change in fragment.deltas:
            change.apply()
        for (generator, key), number in fragment.counters.items():
            generator.ids[key] = number
        world.set_settings(fragment.settings)
        bound = bindings.give_again(self._namespace, fragment.bound)
        self._fragments.append(replace(fragment, bound=bound, stale=""))

    def _stale(self, fragment: Fragment, why: str, report: Report) -> None:
        fragment.origin.fate = _fate(fragment.title, why)
        if fragment.ran:  # what it computed stays, for whoever looks at it
            bindings.give_again(self._namespace, fragment.bound)
        self._fragments.append(replace(fragment, stale=why))
        report.stale[fragment.title] = why

    def _run_again(self, fragment: Fragment, cause: str, report: Report, keep_going: bool) -> None:
        before, names = world.take(self._known), dict(self._namespace)
        try:
            self._run(replace(fragment.task, again=True), report)
        except BaseException as error:
            if keep_going and isinstance(error, Exception):
                world.restore(before)
                bindings.roll_back(self._namespace, names, set(fragment.bound))
                self._stale(fragment, f"{type(error).__name__}: {error}".splitlines()[0], report)
                return
            error.add_note(f'Cell "{fragment.title}" ran again because it reads what cell "{cause}" had made.')
            raise

    def _run(self, task: Task, report: Report) -> None:
        before, names = world.take(self._known), dict(self._namespace)
        read = set(self._uses(task)) if self._uses is not None else set()
        uses = {name: names.get(name, reads.MISSING) for name in read}
        recorder = origin.recorder = Recorder(Origin(task.key, task.title), known=set(before.shots))
        try:
            self._execute(task)
        finally:
            origin.recorder = None
            self._meet(recorder, before)
        bound = bindings.made(names, self._namespace, set(self._binds(task)) if self._binds is not None else ())
        deltas = self._deltas(before, world.take(self._known), recorder)
        task = replace(task, again=False)
        self._fragments.append(self._fragment(task, recorder, deltas, before, uses, bound))
        report.executed.append(task.title)

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
        deltas: list[Delta],
        before: World,
        uses: Mapping[str, Any],
        bound: bindings.Bound,
        loose: bool = False,
    ) -> Fragment:
        collected = reads.collect(recorder, deltas, before, self.lineage, uses)
        counters = {(generator, key): generator.ids.get(key, 0) for generator, key in recorder.counters}
        return Fragment(
            task, recorder.origin, deltas, collected, counters, world.settings(), bound, recorder.ran, loose
        )


def _fate(title: str, why: str) -> str:
    """What became of what a stale cell had made."""
    return f'belongs to cell "{title}", which is stale: {why}'
