"""The state that cells change: programs, counters of names, and the default programs."""

from collections.abc import Iterable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from fluidnb.cells import saved_layer_objects
from fluidnb.cells.saved_layer_objects import SavedObject
from fluidnb.program import defaults, snapshot
from fluidnb.program import unique_name as names
from fluidnb.program.program import Program, programs
from fluidnb.program.snapshot import Snapshot
from fluidnb.program.unique_name import UniqueNameGenerator


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings that a cell may change."""

    main: Program  # the default main program
    startup: Program  # the default startup program
    generator: UniqueNameGenerator  # the generator of unique names in use


def settings() -> Settings:
    """The settings now."""
    return Settings(defaults.default_main_program(), defaults.default_startup_program(), names.generator)


def set_settings(wanted: Settings) -> None:
    """Switch to other settings."""
    defaults.switch_main_program(wanted.main)
    defaults.switch_startup_program(wanted.startup)
    names.switch(wanted.generator)


@dataclass(frozen=True, slots=True, eq=False)
class BuildState:
    """Programs, counters of names and layer objects at one moment."""

    shots: dict[Program, Snapshot]
    # generator -> its counters; a state alone keeps no generator alive, else each guard of a cell would stay for ever
    counters: WeakKeyDictionary[UniqueNameGenerator, dict[str, int]]
    settings: Settings
    saved: list[SavedObject]  # objects of layers, containers and records of the user's, as they were


def take(known: Iterable[Program] = (), values: Iterable[object] = ()) -> BuildState:
    """The state now of the default programs, those that cells created, and ``known`` others."""
    wanted = settings()
    created = [p for p in list(programs) if p.origin is not None and not p.origin.fate]
    tracked = dict.fromkeys([wanted.main, wanted.startup, *known, *created])
    counters = WeakKeyDictionary({g: dict(g.ids) for g in list(names.generators)})
    return BuildState({p: snapshot.take(p) for p in tracked}, counters, wanted, saved_layer_objects.take(values))


def restore(state: BuildState) -> None:
    """Restore a state: programs get their bytes and objects again."""
    for program, shot in state.shots.items():
        if snapshot.take(program) is not shot:
            snapshot.restore(shot)
    for generator, ids in state.counters.items():
        generator.ids.clear()
        generator.ids.update(ids)
    set_settings(state.settings)
    for thing in state.saved:
        thing.put_back()
