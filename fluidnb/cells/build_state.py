"""The world that cells change: programs, the counters of names, and which programs are the defaults."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fluidnb.cells import saved_layer_objects as held
from fluidnb.cells.saved_layer_objects import SavedObject
from fluidnb.program import defaults, snapshot
from fluidnb.program import unique_name as names
from fluidnb.program.program import Program, programs
from fluidnb.program.snapshot import Snapshot
from fluidnb.program.unique_name import UniqueNameGenerator


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings that a cell may change.

    Args:
        main: the default main program.
        startup: the default startup program.
        generator: the generator of unique names in use.

    Example:
        >>> settings().main is defaults.default_main_program()
        True
    """

    main: Program
    startup: Program
    generator: UniqueNameGenerator


def settings() -> Settings:
    """The settings now."""
    return Settings(defaults.default_main_program(), defaults.default_startup_program(), names.generator)


def set_settings(wanted: Settings) -> None:
    """Switch to other settings.

    Args:
        wanted: the settings.
    """
    defaults.switch_main_program(wanted.main)
    defaults.switch_startup_program(wanted.startup)
    names.switch(wanted.generator)


@dataclass(frozen=True, slots=True, eq=False)
class BuildState:
    """The programs that matter, and the names, at one moment.

    Args:
        shots: a snapshot of each program.
        counters: generator -> its counters.
        settings: the settings.
        held: objects of layers and containers of the user's, as they were.

    Example:
        >>> before = take(); program = Program()
        >>> restore(before)
    """

    shots: dict[Program, Snapshot]
    counters: dict[UniqueNameGenerator, dict[str, int]]
    settings: Settings
    held: list[SavedObject]


def take(known: Iterable[Program] = (), values: Iterable[object] = ()) -> BuildState:
    """The world now: the default programs, those that cells made, and others.

    Args:
        known: the others.
        values: values among which objects of layers and containers are saved.

    Returns:
        The world; internal programs, an Executor's copies for example, are not in it.
    """
    wanted = settings()
    made = [p for p in list(programs) if p.origin is not None and not p.origin.fate]
    tracked = dict.fromkeys([wanted.main, wanted.startup, *known, *made])
    counters = {g: dict(g.ids) for g in list(names.generators)}
    return BuildState({p: snapshot.take(p) for p in tracked}, counters, wanted, held.take(values))


def restore(world: BuildState) -> None:
    """Make the world what it was: the programs that were there have their bytes and objects back.

    Args:
        world: what `take` gave.
    """
    for program, shot in world.shots.items():
        if snapshot.take(program) is not shot:
            snapshot.restore(shot)
    for generator, ids in world.counters.items():
        generator.ids.clear()
        generator.ids.update(ids)
    set_settings(world.settings)
    for thing in world.held:
        thing.put_back()
