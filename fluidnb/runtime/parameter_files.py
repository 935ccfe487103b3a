"""Parameters of a saved model: one file by order, a file for each, or one with names (``.pdparams``, safetensors)."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fluidnb.errors import EnforceNotMet, near
from fluidnb.files.plain_pickle import load
from fluidnb.files.safetensors import read_safetensors
from fluidnb.program import Variable
from fluidnb.runtime.executor import Executor
from fluidnb.runtime.model_files import MODEL, PARAMETERS, PARAMS, ModelFiles
from fluidnb.runtime.save_load import check_fits, load_vars
from fluidnb.runtime.scope import global_scope
from fluidnb.values import CPUPlace, VarType
from fluidnb.values.place import Place
from fluidnb.values.tensor import LoDTensor
from fluidnb.values.tensor_file import read_tensors

#: What Paddle adds to the parameters of a layer: its own names of them.
_NAMES = "StructuredToParameterName@@"


def load_parameters(executor: Executor, files: ModelFiles, variables: Sequence[Variable]) -> None:
    """Loads the parameters of a model into the global scope: all of them, or, when one does not fit, none.

    Args:
        executor: whose place they are on.
        files: the files of the model.
        variables: the persistable variables of its program.

    Raises:
        EnforceNotMet: a file is missing, cut off or of another format, or a parameter is missing or does not fit.
    """
    if files.parameters is None and variables and not any(
        os.path.exists(os.path.join(files.folder, v.name)) for v in variables
    ):
        stem = os.path.splitext(os.path.basename(files.program))[0]
        wanted = [PARAMS] if stem == MODEL else [stem + ending for ending in PARAMETERS]
        raise EnforceNotMet(
            f"{files.program} has {len(variables)} parameters, and no file of parameters is beside it.",
            expected=f"{' or '.join(wanted)}, or a file for each", received=_beside(files),
            hint="copy the file there; params_filename names one with another name.",
        )  # fmt: skip
    if files.parameters is None or any(v.type != VarType.LOD_TENSOR for v in variables):
        return load_vars(executor, files.folder or ".", vars=variables, filename=files.parameters)
    path = os.path.join(files.folder, files.parameters)
    if not files.parameters.endswith((".pdparams", ".safetensors")):
        return _load_combined(path, sorted(variables, key=lambda v: v.name), executor.place)
    values = read_named(path)
    for v in variables:
        if v.name not in values:
            raise EnforceNotMet(
                f'{path} has no "{v.name}".', expected=f"{len(variables)} parameters of the program",
                received=f"{len(values)} others: {', '.join(list(values)[:6])}",
                hint=near(v.name, values) or "it is of another program.",
            )  # fmt: skip
        check_fits(v, values[v.name].shape, values[v.name].dtype, path)
    for v in variables:
        _put(v.name, values[v.name], executor.place)


def _beside(files: ModelFiles) -> str:
    """The other files in the folder of a model."""
    names = sorted(set(os.listdir(files.folder or ".")) - {os.path.basename(files.program)})
    return ", ".join(names[:6]) or "no other file"


def _load_combined(path: str, variables: Sequence[Variable], place: Place) -> None:
    """Loads a file that has parameters by order; load_combine would copy what is only mapped here."""
    if not variables:
        return
    values = read_tensors(path, len(variables))
    for v, (array, lod) in zip(variables, values, strict=True):
        check_fits(v, array.shape, array.dtype, path, lod)
    for v, (array, lod) in zip(variables, values, strict=True):
        _put(v.name, array, place)
        global_scope().persistable(v.name).get_tensor().set_lod([list(level) for level in lod])


def _put(name: str, array: np.ndarray, place: Place) -> None:
    """Gives a variable a value: the array itself where that is possible."""
    tensor = global_scope().persistable(name).get_tensor()
    if isinstance(place, CPUPlace) and array.flags.writeable and array.flags.aligned and array.flags.c_contiguous:
        tensor._share_data_with(LoDTensor(np.asarray(array)))
    else:
        tensor.set(array, place)


def read_named(path: str) -> dict[str, np.ndarray]:
    """Reads a file of parameters with names; no code in it runs.

    Args:
        path: a ``.safetensors``, or a ``.pdparams`` or ``.pdopt`` of Paddle.

    Returns:
        name -> array; Paddle's own names where a layer's parameters have two.

    Raises:
        EnforceNotMet: the file cannot be read, or holds something else.
    """
    if path.endswith(".safetensors"):
        return read_safetensors(path)
    try:
        with open(path, "rb") as file:
            found: Any = load(file)
    except OSError as error:
        raise EnforceNotMet(f"Cannot read {path}.", received=error.strerror, hint="correct the path.") from None
    if not isinstance(found, Mapping):
        raise EnforceNotMet(
            f"{path} holds no parameters.", expected="arrays by name", received=type(found).__name__,
            hint="paddle.save(layer.state_dict(), path) and paddle.static.save write them.",
        )  # fmt: skip
    names = found.get(_NAMES)
    names = names if isinstance(names, Mapping) else {}
    return {str(names.get(n, n)): v for n, v in found.items() if isinstance(v, np.ndarray)}
