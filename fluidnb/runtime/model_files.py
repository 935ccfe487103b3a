"""The files of a saved model: found from a folder, a prefix or a file, and read as a program."""

import os
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from fluidnb.errors import EnforceNotMet, FluidError, near
from fluidnb.program import Program
from fluidnb.values import VarType

#: Endings of files of programs: Paddle 2's, Paddle 3's, and ONNX models, which have their parameters.
PROGRAMS = (".pdmodel", ".json", ".onnx")
#: Endings of files of all parameters: those of inference models first.
PARAMETERS = (".pdiparams", ".pdparams", ".safetensors")
#: Names of a file beside them that describes the processing of images, in the order in which they are looked for.
CONFIGS = ("inference.yml", "inference.yaml", "infer_cfg.yml", "deploy.yaml", "deploy.yml")
#: Fluid's names of the program and of a file of all parameters, in a folder.
MODEL, PARAMS = "__model__", "__params__"


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The files of a model.

    Args:
        program: file of the program.
        folder: folder of the parameters.
        parameters: name of the one file that has all parameters; None for a file for each.
    """

    program: str
    folder: str
    parameters: str | None

    @property
    def is_pir(self) -> bool:
        """Whether the program is Paddle 3's."""
        return self.program.endswith(".json")

    @property
    def is_onnx(self) -> bool:
        """Whether it is an ONNX model."""
        return self.program.endswith(PROGRAMS[2])


@dataclass
class SavedProgram:
    """The program of a saved model.

    Args:
        program: the program.
        feeds: names of the variables that are fed.
        fetches: names of the variables that are fetched.
        unknown: operations of Paddle 3 without a counterpart, with their counts.
        dropped: attributes of Paddle 3 without a counterpart, with their counts.
        parameters: name -> value where the file of the program has them; None where other files have.
        has_ends: whether the file says what is fed and fetched; else these are data variables and unread results.
    """

    program: Program
    feeds: list[str]
    fetches: list[str]
    unknown: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    has_ends: bool = True
    parameters: dict[str, np.ndarray[Any, Any]] | None = None


def find_model(path: str, model_filename: str | None = None, params_filename: str | None = None) -> ModelFiles:
    """Finds the files of a model.

    Args:
        path: a folder, the files' common beginning (``saved/inference``), or one of the files.
        model_filename: file of the program in the folder, where it has another name.
        params_filename: the one file of all parameters, where it has another name.

    Raises:
        EnforceNotMet: there is no model, or there are several.
    """
    if model_filename is not None:
        program = os.path.join(path, model_filename)
        return _with_parameters(program, params_filename) if os.path.isfile(program) else _no_model(path)
    program = _program_file(path)
    return _with_parameters(program, params_filename)


def find_config(program: str) -> str | None:
    """Finds the file of a model: one of `CONFIGS` in its folder, or one with the program's name.

    Args:
        program: file of the program.

    Example:
        >>> find_config("/no/such/folder/inference.json")
    """
    folder, name = os.path.split(program)
    own = os.path.splitext(name)[0]
    for file in dict.fromkeys((f"{own}.yml", f"{own}.yaml", *CONFIGS)):
        path = os.path.join(folder, file)
        if os.path.isfile(path):
            return path
    return None


def is_model(path: str) -> bool:
    """Whether a path is that of a saved model, which may be damaged: a folder, a prefix, or a file."""
    try:
        return os.path.exists(path) or any(os.path.isfile(path + ending) for ending in PROGRAMS)
    except ValueError:  # with a null character
        return False


def _program_file(path: str) -> str:
    stem, ending = os.path.splitext(path)
    if ending in PARAMETERS:
        path = stem
    elif os.path.isfile(path):
        return path
    for ending in PROGRAMS[:2] if os.path.isdir(path) else PROGRAMS:  # an ONNX model may have the name of a folder
        if os.path.isfile(path + ending):
            return path + ending
    if not os.path.isdir(path or "."):
        _no_model(path)
    if os.path.isfile(os.path.join(path, MODEL)):
        return os.path.join(path, MODEL)
    names = sorted(os.listdir(path or "."))
    stems = {os.path.splitext(n)[0]: n for n in reversed(names) if n.endswith(PROGRAMS[0])}
    for name in names:
        stem, ending = os.path.splitext(name)
        if ending == PROGRAMS[1] and (stem == "inference" or any(stem + e in names for e in PARAMETERS)):
            stems.setdefault(stem, name)
    if not stems:
        stems = {os.path.splitext(n)[0]: n for n in names if n.endswith(PROGRAMS[2])}
    if len(stems) != 1:
        _no_model(path, names, sorted(stems.values()))
    return os.path.join(path, *stems.values())


def _with_parameters(program: str, params_filename: str | None) -> ModelFiles:
    folder, name = os.path.split(program)
    stem = os.path.splitext(name)[0]
    for parameters in (params_filename, *([PARAMS] if name == MODEL else [stem + ending for ending in PARAMETERS])):
        if parameters is not None and os.path.isfile(os.path.join(folder, parameters)):
            return ModelFiles(program, folder, parameters)
    return ModelFiles(program, folder, params_filename)


def _no_model(path: str, names: list[str] | None = None, models: list[str] | None = None) -> NoReturn:
    """Raises the error about a path where no model is, or several."""
    if models:
        raise EnforceNotMet(
            f"{path} has several models.", expected="one", received=", ".join(models[:6]),
            hint=f"name the file: {os.path.join(path, models[0])}.",
        )  # fmt: skip
    if names is not None:
        raise EnforceNotMet(
            f"{path} is no saved model.", expected=f"a folder with {MODEL}, or with one .pdmodel, .json or .onnx",
            received=", ".join(names[:8]) or "an empty folder",
            hint="model_filename names the program where it has another name; or name the folder that has it.",
        )  # fmt: skip
    around, name = os.path.split(os.path.abspath(path))
    beside = os.listdir(around) if os.path.isdir(around) else []
    raise EnforceNotMet(
        f"There is no model {path}.", expected="a folder, a prefix such as saved/inference, or a file",
        received="nothing of this name", hint=near(name, beside) or "correct the path.",
    )  # fmt: skip


def read_program(files: ModelFiles) -> SavedProgram:
    """Reads the program of a model.

    Raises:
        FluidError: the file cannot be read, or holds no program.
    """
    if files.is_onnx:
        from fluidnb.onnx import importer, reader

        made = importer.convert(reader.read(files.program), files.program)
        return SavedProgram(made.program, made.feeds, made.fetches, made.unknown, parameters=made.parameters)
    if files.is_pir:
        from fluidnb import pir  # the others need none of it

        done = pir.convert(pir.read(files.program))
        fetches = done.fetches or _unread(done.program)
        return SavedProgram(done.program, done.feeds, fetches, done.unknown, done.dropped)
    try:
        with open(files.program, "rb") as file:
            program = Program.parse_from_string(file.read())
    except OSError as error:
        raise EnforceNotMet(
            f"Cannot read {files.program}.", received=error.strerror, hint="correct the path or its permissions."
        ) from None
    except FluidError as error:
        error.hint = f"{MODEL}, .pdmodel and .json are programs; files of parameters are not."
        error.summary = f"{files.program} holds no program. {error.summary}"
        raise
    block = program.global_block()
    ends = sorted((op for op in block.ops if op.type in ("feed", "fetch")), key=lambda op: int(op.attr("col")))
    feeds = [op.output("Out")[0] for op in ends if op.type == "feed"]
    fetches = [op.input("X")[0] for op in ends if op.type == "fetch"]
    if not ends:  # saved for training
        feeds, fetches = [n for n, v in block.desc.vars.items() if v.is_data()], _unread(program)
    return SavedProgram(program, feeds, fetches, has_ends=bool(ends))


def _unread(program: Program) -> list[str]:
    """Results of the last operators: variables that none reads and that end with the run."""
    block = program.desc.blocks[0]
    read = {name for inner in program.desc.blocks for op in inner.ops for name in op.input_arg_names()}
    written = dict.fromkeys(name for op in block.ops for name in op.output_arg_names())
    return [
        name for name in written
        if name not in read and (var := block.find_var(name)) is not None
        and not var.persistable() and var.type() == VarType.LOD_TENSOR
    ]  # fmt: skip
