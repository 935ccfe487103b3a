"""Variables into files and back, in Paddle's formats; see ``fluidnb.io``."""

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from fluidnb.arguments import checked
from fluidnb.errors import EnforceNotMet, OpTypeError, OpValueError
from fluidnb.program import Parameter, Program, Variable, default_main_program
from fluidnb.runtime.executor import Executor
from fluidnb.runtime.scope import global_scope
from fluidnb.values import VarType, dtypes
from fluidnb.values.lod import Offsets
from fluidnb.values.tensor import LoDTensor, check_form

Predicate = Callable[[Variable], bool]
#: Kinds of variables that never have a value worth a file.
_NEVER = (VarType.FEED_MINIBATCH, VarType.FETCH_LIST, VarType.READER, VarType.RAW)


@checked
def is_persistable(var: Variable) -> bool:
    """Whether a variable outlives a run and can be saved."""
    return var.type not in _NEVER and bool(var.persistable)


@checked
def is_parameter(var: Variable) -> bool:
    """Whether a variable is a parameter."""
    return isinstance(var, Parameter)


def chosen(
    main_program: Program | None, vars: Iterable[Variable | str] | None, predicate: Predicate | None
) -> list[Variable]:
    """Variables of block 0 by ``vars`` or their names, else those of the program with the predicate."""
    program: Any = default_main_program() if main_program is None else main_program
    if not isinstance(program, Program):
        text = f"program should be a Program, but {type(program).__name__} was given."
        raise OpTypeError(text, expected="a fluid.Program", received=repr(program)[:80])
    if vars is not None:
        return [program.global_block().var(v) if isinstance(v, str) else v for v in vars]
    test = is_persistable if predicate is None else predicate
    return [v for v in program.list_vars() if v.type not in _NEVER and test(v)]


def path_of(dirname: str, name: str) -> str:
    """The file of a variable; a name may contain folders, and never leaves the folder."""
    if "\0" in dirname + name:
        raise OpValueError("No file has a null byte in its path.", received=repr(os.path.join(dirname, name)))
    inside = os.path.normpath(os.path.join(dirname or ".", name))
    if os.path.isabs(name) or os.path.relpath(inside, dirname or ".").split(os.sep)[0] == os.pardir:
        raise OpValueError(
            f'The variable "{name}" would be kept outside of {dirname}.',
            expected="a name that stays in the folder", received=name, hint="rename it: block.rename_var(old, new).",
        )  # fmt: skip
    return os.path.join(dirname, name)


def _program_of(vars: Sequence[Variable]) -> Program:
    program = Program()
    for v in vars:
        program.global_block().create_var(
            name=v.name, shape=v.shape if v.type != VarType.SELECTED_ROWS else None, dtype=v.dtype, type=v.type,
            lod_level=None if v.type == VarType.SELECTED_ROWS else v.lod_level or None, persistable=True,
        )  # fmt: skip
    return program


@checked
def save_vars(
    executor: Executor, dirname: str, main_program: Program | None = None, vars: Iterable[Variable | str] | None = None,
    predicate: Predicate | None = None, filename: str | None = None,
) -> None:  # fmt: skip
    """Save variables of the global scope: a file for each, or all in one.

    An interrupted save leaves the former file.

    Args:
        executor: runs the saving program.
        dirname: the folder; created where it is missing.
        main_program: the program of the variables; default the main program.
        vars: the variables, or their names; default those with the predicate.
        predicate: default the persistable variables.
        filename: one file for all, in the order of their names; default a file for each, named like it.

    Raises:
        OpValueError: a name that leads out of the folder.
        EnforceNotMet: a variable without value, or a file that cannot be written.

    Example:
        >>> import tempfile
        >>> y = fluid.layers.fc(fluid.layers.data("x", [2]), 1)
        >>> exe = fluid.Executor(fluid.CPUPlace()); out = exe.run(fluid.default_startup_program())
        >>> folder = tempfile.mkdtemp(); save_vars(exe, folder); sorted(os.listdir(folder))
        ['fc_0.b_0', 'fc_0.w_0']

    Source: fluid.io.save_vars; the byte format is Paddle's.
    """
    _check_folder(dirname)
    variables = sorted(chosen(main_program, vars, predicate), key=lambda v: v.name)
    if not variables:
        return
    program = _program_of(variables)
    block = program.global_block()
    names = [v.name for v in variables]
    if filename is None:
        for name in names:
            block.append_op("save", {"X": [name]}, {}, {"file_path": path_of(dirname, name)})
    else:
        block.append_op("save_combine", {"X": names}, {}, {"file_path": path_of(dirname, filename)})
    executor.run(program)


@checked
def load_vars(
    executor: Executor, dirname: str, main_program: Program | None = None, vars: Iterable[Variable | str] | None = None,
    predicate: Predicate | None = None, filename: str | None = None,
) -> None:  # fmt: skip
    """Load variables into the global scope: all of them, or, when one does not fit, none.

    Args:
        executor: runs the loading program.
        dirname: the folder.
        main_program: the program of the variables; default the main program.
        vars: the variables, or their names; default those with the predicate.
        predicate: default the persistable variables.
        filename: the one file that has all of them; default a file for each.

    Raises:
        EnforceNotMet: a file that is missing, cut off or of another format, or whose shape or dtype is not that of
            its variable.

    Source: fluid.io.load_vars.
    """
    _check_folder(dirname)
    variables = sorted(chosen(main_program, vars, predicate), key=lambda v: v.name)
    if not variables:
        return
    program = Program()
    block = program.global_block()
    names = [v.name for v in variables]
    for v in variables:
        block.create_var(name=v.name, dtype=v.dtype, type=v.type)
    if filename is None:
        paths = [path_of(dirname, name) for name in names]
        for name, path in zip(names, paths, strict=True):
            block.append_op("load", {}, {"Out": [name]}, {"file_path": path})
    else:
        paths = [path_of(dirname, filename)] * len(names)
        block.append_op("load_combine", {}, {"Out": names}, {"file_path": paths[0]})
    values = executor.run(program, fetch_list=names, return_numpy=False)
    for v, value, path in zip(variables, values, paths, strict=True):
        if isinstance(value, LoDTensor) and value.array is not None:
            check_fits(v, value.array.shape, value.array.dtype, path, value.lod_)
    for v, value in zip(variables, values, strict=True):
        target = global_scope().persistable(v.name)
        if isinstance(value, LoDTensor):
            target.get_tensor().set(value.array, executor.place)
            target.get_tensor().set_lod([list(level) for level in value.lod_])
        else:
            target.value = value


def check_fits(var: Variable, shape: tuple[int, ...], dtype: Any, path: str, lod: Offsets = ()) -> None:
    """Raise unless what a file has is a value of the variable."""
    dtype = dtypes.dtype_name(dtype)
    fits = len(shape) == len(var.shape) and all(d in (-1, s) for d, s in zip(var.shape, shape, strict=False))
    if not fits and np.prod(shape) == np.prod(var.shape) == 1:
        fits = True  # [1] and [] are one number in Fluid and in its successors
    if not fits or dtype != dtypes.dtype_name(var.dtype):
        raise EnforceNotMet(
            f'{path} does not hold the variable "{var.name}".',
            slots=[("variable", var.name, dtypes.dtype_name(var.dtype), var.shape)],
            expected=f"{dtypes.dtype_name(var.dtype)} {list(var.shape)}", received=f"{dtype} {list(shape)}",
            hint=f"it is of another program: {var.name} has to have the sizes {list(shape)}, or another name.",
        )  # fmt: skip
    check_form(lod, shape[0] if shape else None, var.name)


def _check_folder(dirname: Any) -> None:
    if not isinstance(dirname, str):
        raise OpTypeError(
            f"dirname should be a str, but {type(dirname).__name__} was given.",
            expected="the name of a folder", received=repr(dirname),
        )  # fmt: skip
