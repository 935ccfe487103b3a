"""evaluate: the value of a variable without ceremony."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fluidnb.errors import OpTypeError, typed
from fluidnb.program import Program, Variable, default_main_program, default_startup_program
from fluidnb.runtime import Executor, Scope, global_scope
from fluidnb.values import CPUPlace, LoDTensor


def evaluate(variables: Any, feed: Mapping[str, Any] | None = None) -> Any:
    """Run a program on the CPU and give the values of variables.

    Parameters that have no value yet get their first one from the startup program; those that have one keep it.

    Args:
        variables: a Variable or name, or a list of them; they belong to one program.
        feed: variable name -> value, as for ``Executor.run``.

    Returns:
        An ndarray for a variable, a list of them for a list; LoD is dropped. Values that are no tensors are given as
        they are.

    Example:
        >>> evaluate(fluid.layers.fill_constant(shape=[2], dtype="float32", value=3.0) * 2)
        array([6., 6.], dtype=float32)
    """
    several = isinstance(variables, list | tuple)
    wanted = list(variables) if several else [variables]
    program = default_main_program()
    for variable in wanted:
        if isinstance(variable, Variable):
            program = variable.block.program
        elif not isinstance(variable, str):
            raise OpTypeError(
                "evaluate takes Variables.", expected="a Variable, a name, or a list of them", received=typed(variable)
            )
    scope, executor = global_scope(), Executor(CPUPlace())
    if program is default_main_program():
        initialize(program, default_startup_program(), scope, executor)
    values = executor.run(program, {} if feed is None else feed, wanted, scope=scope, return_numpy=False)
    arrays = [np.array(v) if isinstance(v, LoDTensor) else v for v in values]
    return arrays if several else arrays[0]


def initialize(program: Program, startup: Program, scope: Scope, executor: Executor) -> None:
    """Run the part of a startup program that gives a value to what has none yet."""
    known = startup.global_block().vars
    missing = []
    for variable in program.list_vars():
        stored = scope.find_var(variable.name)
        value = None if stored is None else stored.value
        if variable.persistable and variable.name in known and getattr(value, "array", value) is None:
            missing.append(variable.name)
    if missing:
        executor.run(startup.prune(missing), scope=scope)
