"""Index of a program's run, an input of random numbers."""

from collections.abc import MutableMapping
from typing import Any
from weakref import WeakKeyDictionary

from fluidnb.op.rng import times_seeded
from fluidnb.program import Program
from fluidnb.proto.desc import ProgramDesc
from fluidnb.runtime.compile.lowering import LoweredProgram
from fluidnb.runtime.scope import Scope

_runs: WeakKeyDictionary[ProgramDesc, tuple[WeakKeyDictionary[Scope, int], dict[int, int]]] = WeakKeyDictionary()


def coming_run(lowered: LoweredProgram, program: Program, scope: Scope) -> int:
    """The index of the next run of a program. With random_seed set, runs are counted per scope, so that two
    scopes get the same parameters; else all its runs since the session was seeded are counted, so that they differ.
    """
    counts, key = _counts(lowered.desc, program, scope)
    return counts.get(key, 0)


def next_run(lowered: LoweredProgram, program: Program, scope: Scope) -> int:
    """The same as `coming_run`, and it is counted."""
    lowered.clock.seed = program.random_seed
    counts, key = _counts(lowered.desc, program, scope)
    number = counts.get(key, 0)
    counts[key] = number + 1
    return number


def count_from(program: Program, scope: Scope, number: int) -> None:
    """Let the next run of a program have a number, as if so many runs had been before it."""
    counts, key = _counts(program.desc, program, scope)
    counts[key] = number


def _counts(desc: ProgramDesc, program: Program, scope: Scope) -> tuple[MutableMapping[Any, int], Any]:
    key: Any = scope if program.random_seed else times_seeded()
    return _runs.setdefault(desc, (WeakKeyDictionary(), {}))[0 if program.random_seed else 1], key
