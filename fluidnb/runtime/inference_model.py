"""Inference models: a pruned program with its feeds, fetches and parameters, in Paddle's files; see ``fluidnb.io``."""

from collections.abc import Sequence
from typing import Any

from fluidnb.arguments import checked
from fluidnb.errors import NotFound, OpTypeError, OpValueError, near
from fluidnb.files.atomic_write import atomic_write
from fluidnb.program import Program, Variable, default_main_program
from fluidnb.program.clone import clone
from fluidnb.program.prune import prune, refuse_dropped
from fluidnb.program.sub_blocks import outer_names
from fluidnb.runtime.executor import Executor
from fluidnb.runtime.model_files import find_model, read_program
from fluidnb.runtime.parameter_files import load_parameters
from fluidnb.runtime.save_load import is_persistable, path_of, save_vars
from fluidnb.utils.source_location import warn
from fluidnb.values import VarType
from fluidnb.values import strict_feeds as declared


@checked
def get_inference_program(target_vars: Any, main_program: Program | None = None) -> Program:
    """The part of a program that some variables need, in test mode, as a new program.

    Args:
        target_vars: the variable or variables; an evaluator means its states and metrics.
        main_program: the program; default the main program.

    Example:
        >>> x = fluid.layers.data("x", [2]); y = fluid.layers.relu(x); z = fluid.layers.tanh(x)
        >>> [op.type for op in get_inference_program(y).global_block().ops]
        ['relu']
    """
    program = default_main_program() if main_program is None else main_program
    listed: list[Any] = list(target_vars) if isinstance(target_vars, list | tuple) else [target_vars]
    # An evaluator belongs to a higher package: recognized by its attributes.
    targets = [v for t in listed for v in ((*t.states, *t.metrics) if hasattr(t, "states") else (t,))]
    return clone(program, for_test=True, warn=False).prune([getattr(t, "name", t) for t in targets])


@checked
def save_inference_model(
    dirname: str, feeded_var_names: str | Sequence[str], target_vars: Variable | Sequence[Variable], executor: Executor,
    main_program: Program | None = None, model_filename: str | None = None, params_filename: str | None = None,
    export_for_deployment: bool = True, program_only: bool = False,
) -> list[str]:  # fmt: skip
    """Save what it takes to compute some variables from some others; returns the names of the targets.

    Args:
        dirname: the folder; created where it is missing.
        feeded_var_names: names of the variables that will be fed.
        target_vars: the variables to compute.
        executor: saves the parameters.
        main_program: the program; default the main program. It does not change.
        model_filename: file for the program; default ``__model__``.
        params_filename: one file for all parameters; default a file for each.
        export_for_deployment: True writes the pruned program; False the whole program in test mode, which may be
            without feeds and targets.
        program_only: leave the parameters out.

    Raises:
        OpValueError: the targets need data that is not among the feeds.
        EnforceNotMet: a parameter has no value, memory_optimize has dropped a target, or a file cannot be written.

    Example:
        >>> import tempfile
        >>> y = fluid.layers.fc(fluid.layers.data("x", [2]), 1)
        >>> exe = fluid.Executor(fluid.CPUPlace()); out = exe.run(fluid.default_startup_program())
        >>> folder = tempfile.mkdtemp(); save_inference_model(folder, ["x"], [y], exe)
        ['fc_0.tmp_1']

    Source: fluid.io.save_inference_model.
    """
    program = default_main_program() if main_program is None else main_program
    feeds = [feeded_var_names] if isinstance(feeded_var_names, str) else list(feeded_var_names or [])
    targets: list[Any] = list(target_vars) if isinstance(target_vars, list | tuple) else [target_vars]
    _check_ends(program, feeds, targets)
    if not targets and export_for_deployment:
        raise OpValueError("An inference model needs at least one target.", expected="target_vars=[a variable]")
    names = [t.name for t in targets]
    refuse_dropped(program.desc.blocks[0], names, "a target")
    model = clone(program, for_test=True, warn=False)
    if export_for_deployment:
        model = prune(model, names, feeds)
    if names:
        _check_reaches(model, feeds, names)
    _drop_nothing(model)
    parameters = [v for v in model.list_vars() if is_persistable(v)]
    path = path_of(dirname, model_filename or "__model__")  # a wrong name is refused before anything is written
    if not program_only:
        save_vars(executor, dirname, model, vars=parameters, filename=params_filename)
    add_ends(model, feeds, names)
    data = model.desc.serialize_to_string()
    with atomic_write(path, parents=True, size=len(data)) as file:
        file.write(data)
    return names


@checked
def load_inference_model(
    dirname: str, executor: Executor, model_filename: str | None = None, params_filename: str | None = None,
    pserver_endpoints: Any = None,
) -> list[Any]:  # fmt: skip
    """Load an inference model: Fluid's folder, Paddle 2's ``.pdmodel``, Paddle 3's ``.json``.

    Args:
        dirname: a folder, the files' common beginning (``saved/inference``), or one of the files.
        executor: loads the parameters, into the global scope.
        model_filename: file of the program; default ``__model__``, or the one ``.pdmodel`` or ``.json``.
        params_filename: the one file of all parameters; default ``.pdiparams`` beside it, or a file for each.
        pserver_endpoints: ignored (compatibility).

    Returns:
        The program, the names of its feeds and the variables of its fetches.

    Raises:
        EnforceNotMet: a file is missing, cut off, or does not belong to the program.

    Example:
        >>> import tempfile
        >>> y = fluid.layers.fc(fluid.layers.data("x", [2]), 1)
        >>> exe = fluid.Executor(fluid.CPUPlace()); out = exe.run(fluid.default_startup_program())
        >>> folder = tempfile.mkdtemp(); names = save_inference_model(folder, ["x"], [y], exe)
        >>> program, feeds, fetches = load_inference_model(folder, exe); feeds, [v.name for v in fetches]
        (['x'], ['fc_0.tmp_1'])

    Source: fluid.io.load_inference_model; tensor file format of Paddle.
    """
    files = find_model(dirname, model_filename, params_filename)
    saved = read_program(files)
    load_parameters(executor, files, [v for v in saved.program.list_vars() if is_persistable(v)])
    if not saved.has_ends:  # as in Fluid, which knows none then
        return [saved.program, [], []]
    block = saved.program.global_block()
    return [saved.program, saved.feeds, [block.var(name) for name in saved.fetches]]


def _check_ends(program: Program, feeds: list[Any], targets: list[Any]) -> None:
    block = program.global_block()
    for name in feeds:
        if not isinstance(name, str):
            raise OpTypeError(
                "feeded_var_names should be names.", expected="list of str",
                received=f"{type(name).__name__} {getattr(name, 'name', name)!r}",
                hint="use x.name." if hasattr(name, "name") else "",
            )  # fmt: skip
        if not block.has_var(name):
            data = [n for n, v in block.desc.vars.items() if v.is_data()]
            raise NotFound(
                f'The program has no variable "{name}" to feed.',
                expected=", ".join(data) or "a variable of block 0", received=name, hint=near(name, block.desc.vars),
            )  # fmt: skip
    for target in targets:
        if not isinstance(target, Variable):
            raise OpTypeError("target_vars should be Variables.", expected="Variable", received=repr(target)[:80])


def _check_reaches(program: Program, feeds: list[str], targets: list[str]) -> None:
    block = program.global_block().desc
    known = set(feeds) | {n for n, v in block.vars.items() if v.persistable()}
    for op in block.ops:
        reads, writes = outer_names(program.desc, block, op)
        for name in sorted(reads - known):
            var = block.vars.get(name)
            if var is not None and var.is_data():
                ends = f"{', '.join(targets)} cannot be computed from {', '.join(feeds) or 'nothing'}"
                if not declared.binding:  # Fluid saved such programs, and old scripts resume training
                    warn(f"{ends}: it also needs {name}. The model is saved, and cannot run.")
                    continue
                raise OpValueError(
                    f"{ends}: it also needs {name}.",
                    op=op.label(), expected=f"{name} among feeded_var_names", received=", ".join(feeds),
                )  # fmt: skip
        known |= writes


def _drop_nothing(program: Program) -> None:
    """Remove delete_var from blocks that were kept whole: Paddle's later executors cannot run it."""
    for block in program.blocks:
        for index in range(len(block.desc.ops) - 1, -1, -1):
            if block.desc.ops[index].optype == "delete_var":
                block.remove_op(index)


def add_ends(program: Program, feeds: list[str], targets: list[str]) -> None:
    """Add the operators feed and fetch."""
    block = program.global_block()
    block.create_var(name="feed", type=VarType.FEED_MINIBATCH, persistable=True)
    for column, name in reversed(list(enumerate(feeds))):
        if not block.has_var(name):
            continue
        block.prepend_op("feed", {"X": ["feed"]}, {"Out": [name]}, {"col": column})
    block.create_var(name="fetch", type=VarType.FETCH_LIST, persistable=True)
    for column, name in enumerate(targets):
        block.append_op("fetch", {"X": [name]}, {"Out": ["fetch"]}, {"col": column})
