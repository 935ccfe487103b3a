"""A trial run of a line on copies of the programs, of which nothing stays."""

import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fluidnb.errors import FluidError
from fluidnb.program import Variable, clone, default_main_program, default_startup_program, hooks, program_guard
from fluidnb.program import unique_name as names
from fluidnb.program.constants import role_of
from fluidnb.program.program import Program
from fluidnb.program.stale_handles import is_live
from fluidnb.program.unique_name import UniqueNameGenerator
from fluidnb.runtime import Scope, global_scope, scope_guard
from fluidnb.viz.program.model import VarRow
from fluidnb.viz.program.reader import read_var


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The result of a trial run of a line.

    Example:
        >>> x = fluid.layers.data("x", [4])
        >>> tried = rehearse("h = fluid.layers.fc(x, 3)", ["h"], {"x": x, "fluid": fluid})
        >>> tried.results[0][1].shape, tried.types, len(fluid.default_main_program().global_block().ops)
        ((-1, 3), ('mul', 'elementwise_add'), 0)
    """

    results: tuple[tuple[str, VarRow], ...] = ()  # (Python name, variable)
    parameters: tuple[VarRow, ...] = ()  # the parameters that it would create
    ops: Mapping[str, int] = field(default_factory=dict)  # role -> the number of operators that it would append
    types: tuple[str, ...] = ()  # the types of the forward operators, in order
    problem: Exception | None = None  # the error that it would raise


def rehearse(
    source: str, targets: list[str], namespace: Mapping[str, Any], programs: tuple[Program, Program] | None = None,
    block: int = 0, hint: Callable[[Any], Any] | None = None,
) -> Rehearsal:  # fmt: skip
    """Run a line on copies of the programs, with a copy of the counters of names.

    Args:
        targets: the Python names that it assigns.
        namespace: the Python names that it reads; variables of the program are replaced by those of the copy.
        programs: main and startup program; default the default ones.
        block: the block of the main program to which it appends.
        hint: proposes names of results, as `hooks.name_hint`.
    """
    main, startup = programs or (default_main_program(), default_startup_program())
    twin, twin_startup = clone(main, warn=False), clone(startup, warn=False)
    twin.current_block_idx = block
    counters = UniqueNameGenerator(names.generator.prefix)
    counters.ids.update(names.generator.ids)
    values = {name: _twin(value, main, twin) for name, value in namespace.items()}
    before = [len(b.ops) for b in twin.desc.blocks]
    known = set(twin.desc.blocks[0].vars)
    outer, hooks.name_hint = hooks.name_hint, hint
    try:
        with (
            program_guard(twin, twin_startup),
            scope_guard(Scope(global_scope())),  # a reader puts its queue into the global scope
            names.guard(counters),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")  # the cell will print them
            exec(compile(source, "<builder>", "exec"), values)
    except Exception as error:
        if isinstance(error, FluidError):
            error.where = None
        return Rehearsal(problem=error)
    finally:
        hooks.name_hint = outer
    added = [op for b, count in zip(twin.desc.blocks, before, strict=False) for op in b.ops[count:]]
    new = [v for name, v in twin.desc.blocks[0].vars.items() if v.is_parameter() and name not in known]
    results = [(name, read_var(v.desc)) for name in targets for v in _variables(values.get(name))]
    forward = tuple(op.optype for op in added if role_of(op) == "forward")
    return Rehearsal(tuple(results), tuple(map(read_var, new)), Counter(map(role_of, added)), forward)


def _twin(value: Any, program: Program, copy: Program) -> Any:
    """The copy of a value in the trial program."""
    if isinstance(value, Variable):
        if value.block.program is program and is_live(value):
            return copy.block(value.block.idx).var(value.name)
    elif type(value) in (list, tuple) and any(isinstance(v, Variable) for v in value):
        return type(value)(_twin(v, program, copy) for v in value)
    return value


def _variables(value: Any) -> list[Variable]:
    """The variables of a result: one, or a few."""
    several = value if isinstance(value, list | tuple) else [value]
    return [v for v in several if isinstance(v, Variable)][:8]
