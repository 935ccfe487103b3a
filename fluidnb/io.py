"""Fluid's io: variables, parameters and inference models in files, byte for byte Paddle's."""

from typing import Any

import numpy as np

from fluidnb.arguments import checked
from fluidnb.data.py_reader import PyReader
from fluidnb.errors import NotFound
from fluidnb.program import Parameter, Program, default_main_program
from fluidnb.runtime.executor import Executor
from fluidnb.runtime.inference_model import get_inference_program, load_inference_model, save_inference_model
from fluidnb.runtime.remote_variables import save_with_servers
from fluidnb.runtime.save_load import is_parameter, is_persistable, load_vars, save_vars
from fluidnb.runtime.scope import global_scope
from fluidnb.values import LoDTensor

__all__ = [
    "PyReader", "get_inference_program", "get_parameter_value", "get_parameter_value_by_name", "is_parameter",
    "is_persistable", "load_inference_model", "load_params", "load_persistables", "load_vars", "save_inference_model",
    "save_params", "save_persistables", "save_vars",
]  # fmt: skip


@checked
def save_params(
    executor: Executor, dirname: str, main_program: Program | None = None, filename: str | None = None
) -> None:
    """Save the parameters of a program; arguments and errors as in `save_vars`.

    Example:
        >>> import tempfile
        >>> save_params(fluid.Executor(fluid.CPUPlace()), tempfile.mkdtemp(), fluid.Program())
    """
    save_vars(executor, dirname, main_program, predicate=is_parameter, filename=filename)


@checked
def save_persistables(
    executor: Executor, dirname: str, main_program: Program | None = None, filename: str | None = None
) -> None:
    """Save everything of a program that outlives a run: parameters, and the state of optimizers and norms.

    With the program of a trainer, inside the ``with`` of its engine, what parameter servers keep is received, and they
    save the rows of distributed tables themselves, server i into ``dirname/__lookup_table__/NAME_i``.
    """
    if main_program is not None and main_program.remote is not None:
        save_with_servers(executor, dirname, main_program, filename)
        return
    save_vars(executor, dirname, main_program, predicate=is_persistable, filename=filename)


@checked
def load_params(
    executor: Executor, dirname: str, main_program: Program | None = None, filename: str | None = None
) -> None:
    """Load the parameters of a program; arguments and errors as in `load_vars`.

    Example:
        >>> load_params(fluid.Executor(fluid.CPUPlace()), ".", fluid.Program())
    """
    load_vars(executor, dirname, main_program, predicate=is_parameter, filename=filename)


@checked
def load_persistables(
    executor: Executor, dirname: str, main_program: Program | None = None, filename: str | None = None
) -> None:
    """Load everything of a program that outlives a run; arguments and errors as in `load_vars`."""
    load_vars(executor, dirname, main_program, predicate=is_persistable, filename=filename)


@checked
def get_parameter_value(para: Parameter, executor: Executor) -> Any:
    """The value of a parameter in the global scope.

    Args:
        executor: ignored (compatibility).

    Returns:
        A copy, as an ndarray.

    Raises:
        EnforceNotMet: it has no value yet.

    Example:
        >>> y = fluid.layers.fc(fluid.layers.data("x", [2]), 1); exe = fluid.Executor(fluid.CPUPlace())
        >>> out = exe.run(fluid.default_startup_program()); get_parameter_value(y.param, exe).shape
        (2, 1)
    """
    variable = global_scope().find_var(para.name)
    return np.array(LoDTensor(name=para.name) if variable is None else variable.get_tensor())


@checked
def get_parameter_value_by_name(name: str, executor: Executor, program: Program | None = None) -> Any:
    """The value of a parameter by its name.

    Args:
        executor: ignored (compatibility).
        program: where it is declared; default the main program.

    Returns:
        A copy, as an ndarray.

    Example:
        >>> y = fluid.layers.fc(fluid.layers.data("x", [2]), 1); exe = fluid.Executor(fluid.CPUPlace())
        >>> out = exe.run(fluid.default_startup_program()); get_parameter_value_by_name("fc_0.b_0", exe)
        array([0.], dtype=float32)
    """
    block = (default_main_program() if program is None else program).global_block()
    var = block.var(name)
    if not isinstance(var, Parameter):
        raise NotFound(f'"{name}" is not a parameter.', expected=", ".join(p.name for p in block.all_parameters()))
    return get_parameter_value(var, executor)
