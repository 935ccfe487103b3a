"""Variables of the design documents: numbers that the program carries in itself, parameters, and what is fed."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidnb import layers
from fluidnb.compat.words import Tensor, called
from fluidnb.errors import OpTypeError
from fluidnb.initializer import Constant
from fluidnb.program import Parameter, default_main_program, unique_name
from fluidnb.program import Variable as _Variable
from fluidnb.program import layer_calls as naming


@naming.layer
def minibatch(values: Any, name: str | None = None) -> _Variable:
    """A mini-batch of instances that the program carries in itself.

    Returns:
        Shape [-1, 1] for numbers, [-1, …] for rows; the size of the batch is not recorded, as if it were fed.
    """
    return called(_rows(_array("minibatch", values)), name)


def _array(word: str, values: Any) -> np.ndarray[Any, Any]:
    array = np.asarray(values)
    if array.dtype.kind not in "biuf" or not array.size:
        raise OpTypeError(
            f"{word} takes numbers or bools.", expected="for example [10, 20, 30]", received=f"{values!r}"[:200]
        )
    array = array if array.dtype == bool else array.astype("float32")
    return array.reshape(-1, 1) if array.ndim < 2 else array


def _rows(array: np.ndarray[Any, Any]) -> _Variable:
    result = layers.assign(array)
    result.desc.set_shape([-1, *array.shape[1:]])
    return result


@naming.layer
def sequence(values: Any, name: str | None = None) -> _Variable:
    """A sequence that the program carries in itself, or several of different lengths.

    Args:
        values: the numbers of one sequence; an array [steps, width] is one sequence of rows; a list of lists is
            several sequences of numbers.

    Returns:
        Shape [-1, 1], or [-1, width], with one level of LoD.
    """
    lists = [values]
    if not isinstance(values, np.ndarray) and len(values) and all(isinstance(v, list | tuple) for v in values):
        lists = values
    parts = [_array("sequence", part) for part in lists]
    offsets = np.cumsum([0, *(len(part) for part in parts)]).tolist()
    result = layers.lod_reset(_rows(np.concatenate(parts)), target_lod=offsets)
    return called(result, name)


@naming.layer
def var(value: float, param: bool = False, name: str | None = None) -> _Variable:
    """A variable of shape [1] with a value.

    Args:
        value: a float makes float32, a bool bool, an int int64, which becomes float32 beside floats.
        param: whether it is a parameter, always float32, that begins with the value and is trained.
    """
    if not isinstance(value, bool | int | float | np.number | np.bool_):
        raise OpTypeError(
            "var takes one number.", expected="for example 10, 0.314 or True", received=f"{value!r}"[:200],
            hint="pd.minibatch() takes several.",
        )  # fmt: skip
    if param:
        return layers.create_parameter([1], "float32", name=name, default_initializer=Constant(float(value)))
    kind = np.asarray(value).dtype.kind
    dtype = {"b": "bool", "f": "float32"}.get(kind, "int64")
    return called(layers.fill_constant([1], dtype, value), name)


def tensor(shape: Sequence[int] | None = None, dtype: Any = "float32", name: str | None = None) -> Tensor | Parameter:
    """A parameter with the default initializer.

    Args:
        shape: its shape; None takes it from the first variable beside which it is used: one number for each feature,
            and beside several features a square matrix in products.
        dtype: its dtype, where a shape is given.
    """
    return Tensor(name) if shape is None else layers.create_parameter(shape, dtype, name=name)


@naming.layer
def Variable(
    shape: Sequence[int | None], dtype: Any = "float32", name: str | None = None, lod_level: int = 0
) -> _Variable:
    """A variable that a run must feed; `fluid.layers.data` with all sizes written out.

    Args:
        shape: sizes; -1 or None for one that is only known when it is fed.
        name: its name, the key in ``feed``; None makes one.
    """
    return layers.data(name or unique_name.generate("variable"), shape, False, dtype, lod_level)


def get_variable(name: str) -> _Variable:
    """The variable that the current block sees under a name: its own, or the innermost around it."""
    return default_main_program().current_block().var_recursive(name)
