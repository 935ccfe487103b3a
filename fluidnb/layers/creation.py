"""Layers that create variables: parameters, constants, casts, copies, number ranges, random numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidnb.initializer import Constant, Initializer, array_attrs, force_init_on_cpu, number_attrs
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.one_op import family, one_op, several
from fluidnb.op import takes
from fluidnb.param_attr import ParamAttr, ParamAttrLike
from fluidnb.program import Parameter, Variable
from fluidnb.program import layer_calls as naming
from fluidnb.values import dtypes
from fluidnb.values.seeding import generator

__all__ = [
    "assign", "cast", "create_global_var", "create_parameter", "create_tensor", "diag", "dropout", "fill_constant",
    "fill_constant_batch_size_like", "gaussian_random", "gaussian_random_batch_size_like", "linspace", "ones",
    "random_crop", "range", "sampling_id", "uniform_random", "uniform_random_batch_size_like", "zeros", "zeros_like",
]  # fmt: skip


@naming.layer
def create_tensor(dtype: Any, name: str | None = None, persistable: bool = False) -> Variable:
    """A variable without a writer yet, for layers with an ``out`` argument.

    Args:
        dtype: its dtype.
        name: its name.
        persistable: whether it outlives a run.

    Returns:
        The variable.

    Example:
        >>> fluid.layers.create_tensor("float32", name="t").name
        't'
    """
    helper = LayerHelper("create_tensor", name=name)
    return helper.create_variable(name=helper.name, dtype=dtype, persistable=persistable)


@naming.layer
def create_parameter(
    shape: Sequence[int], dtype: Any, name: str | None = None, attr: ParamAttrLike = None, is_bias: bool = False,
    default_initializer: Initializer | None = None,
) -> Parameter:  # fmt: skip
    """Creates a parameter that is not part of a layer.

    Args:
        dtype: its dtype.
        name: its name, where ``attr`` does not say one.
        attr: its description.
        is_bias: whether its default value is that of biases.
        default_initializer: its initializer, where ``attr`` does not say one.

    Returns:
        The parameter.

    Example:
        >>> fluid.layers.create_parameter([2, 3], "float32", name="w").shape
        (2, 3)
    """
    attr = ParamAttr.to_attr(attr) or ParamAttr()
    attr.name = attr.name or name
    return LayerHelper("create_parameter").create_parameter(attr, shape, dtype, is_bias, default_initializer)


@naming.layer
def create_global_var(
    shape: Sequence[int], value: float, dtype: Any, persistable: bool = False, force_cpu: bool = False,
    name: str | None = None,
) -> Variable:  # fmt: skip
    """A variable of block 0 that the startup program fills with a number.

    Args:
        value: the number.
        dtype: its dtype.
        persistable: whether it outlives a run.
        force_cpu: whether it is filled on the CPU whatever the executor's place.
        name: its name.

    Returns:
        The variable; optimizers leave it alone.

    Example:
        >>> fluid.layers.create_global_var([1], 0.0, "float32", persistable=True, name="step").name
        'step'
    """
    helper = LayerHelper("global_var")
    var = helper.create_global_variable(persistable, name=name, shape=list(shape), dtype=dtype, stop_gradient=True)
    helper.set_variable_initializer(var, Constant(value, force_cpu))
    return var


@naming.layer
def cast(x: Variable, dtype: Any) -> Variable:
    """Elements converted to another dtype.

    Args:
        dtype: the new dtype.

    Returns:
        Shape and LoD of ``x``.

    Example:
        >>> fluid.layers.cast(fluid.layers.data("x", [3]), "float64").shape
        (-1, 3)
    """
    attrs = {"in_dtype": int(dtypes.var_type(x.dtype)), "out_dtype": int(dtypes.var_type(dtype))}
    return one_op("cast", {"X": x}, attrs, dtype=dtype)


@naming.layer
def assign(input: Variable | np.ndarray[Any, Any], output: Variable | None = None) -> Variable:
    """A copy of a variable, or a variable with the values of an array.

    Args:
        input: a variable, or an array of at most a million elements, which the program then carries in itself.
        output: an existing variable to write; None makes one.

    Returns:
        The copy.

    Raises:
        OpValueError: the array is too big, or of a dtype that a program cannot carry.

    Example:
        >>> fluid.layers.assign(fluid.layers.data("x", [3])).shape
        (-1, 3)
    """
    if isinstance(input, np.ndarray):
        return one_op("assign_value", {}, array_attrs(input, input.dtype), dtype=input.dtype, out=output)
    return one_op("assign", {"X": input}, out=output)


@naming.layer
def fill_constant(
    shape: Sequence[int], dtype: Any, value: float, force_cpu: bool = False, out: Variable | None = None
) -> Variable:
    """A variable filled with one number.

    Args:
        dtype: its dtype.
        value: the number.
        force_cpu: whether it is made on the CPU whatever the executor's place.

    Returns:
        The variable; no gradient passes.

    Example:
        >>> fluid.layers.fill_constant(shape=[2, 3], dtype="int64", value=4).shape
        (2, 3)
    """
    on_cpu = force_cpu or force_init_on_cpu()
    attrs = {"shape": list(shape), "dtype": int(dtypes.var_type(dtype)), "force_cpu": on_cpu}
    out = one_op("fill_constant", {}, {**attrs, **number_attrs(value, dtype)}, dtype=dtype, out=out)
    out.stop_gradient = True
    return out


@naming.layer
def fill_constant_batch_size_like(
    input: Variable, shape: Sequence[int], dtype: Any, value: float, input_dim_idx: int = 0, output_dim_idx: int = 0
) -> Variable:
    """A variable filled with one number, with as many rows as another.

    Args:
        input: the other variable.
        shape: sizes; the one at ``output_dim_idx`` is replaced.
        dtype: its dtype.
        value: the number.

    Returns:
        The variable; no gradient passes.

    Example:
        >>> fluid.layers.fill_constant_batch_size_like(fluid.layers.data("x", [3]), [-1, 5], "float32", 0.0).shape
        (-1, 5)
    """
    attrs = {
        "shape": list(shape), "dtype": int(dtypes.var_type(dtype)), "input_dim_idx": input_dim_idx,
        "output_dim_idx": output_dim_idx, **number_attrs(value, dtype),
    }  # fmt: skip
    return one_op("fill_constant_batch_size_like", {"Input": input}, attrs, dtype=dtype, stop_gradient=True)


@family
def _filled(name: str, shape: Sequence[int], dtype: Any, force_cpu: bool = False) -> Variable:
    """A variable of {name}.

    Args:
        dtype: its dtype.
        force_cpu: whether it is made on the CPU whatever the executor's place.

    Returns:
        The variable; no gradient passes.

    Example:
        >>> fluid.layers.{name}([2], "float32").op.attr("value")
        {summary}
    """
    return fill_constant(shape, dtype, float(name == "ones"), force_cpu)


ones = _filled("ones", "1.0")
zeros = _filled("zeros", "0.0")


def _number(value: Variable | float, dtype: Any) -> Variable:
    return value if isinstance(value, Variable) else fill_constant([1], dtype, value)


@naming.layer
def range(start: Variable | float, end: Variable | float, step: Variable | float, dtype: Any) -> Variable:
    """Evenly spaced numbers: start, start + step, … before end.

    Args:
        start: the first number, or a variable of shape [1].
        end: the bound, not reached.
        step: the distance, not 0.
        dtype: their dtype.

    Returns:
        [n], as many as there are when the program runs; no gradient passes.

    Example:
        >>> fluid.layers.range(0, 10, 2, "int64").shape
        (-1,)
    """
    inputs = {slot: _number(v, dtype) for slot, v in (("Start", start), ("End", end), ("Step", step))}
    return one_op("range", inputs, dtype=dtype, stop_gradient=True)


@naming.layer
def linspace(start: Variable | float, stop: Variable | float, num: Variable | int, dtype: Any) -> Variable:
    """Evenly spaced numbers from start to stop, both included.

    Args:
        start: the first number, or a variable of shape [1].
        stop: the last number.
        num: how many; or an int32 variable.
        dtype: their dtype.

    Returns:
        [num]; no gradient passes.

    Example:
        >>> fluid.layers.linspace(0.0, 1.0, 5, "float32").shape
        (-1,)
    """
    inputs = {"Start": _number(start, dtype), "Stop": _number(stop, dtype), "Num": _number(num, "int32")}
    return one_op("linspace", inputs, {"dtype": int(dtypes.var_type(dtype))}, dtype=dtype, stop_gradient=True)


@naming.layer
def zeros_like(x: Variable, out: Variable | None = None) -> Variable:
    """Zeros of the shape of a tensor.

    Args:
        x: says shape and dtype.

    Returns:
        Shape, dtype and LoD of ``x``; no gradient passes.

    Example:
        >>> fluid.layers.zeros_like(fluid.layers.data("x", [3])).shape
        (-1, 3)
    """
    return one_op("fill_zeros_like", {"X": x}, out=out, stop_gradient=True)


@naming.layer
def diag(diagonal: Variable | np.ndarray[Any, Any]) -> Variable:
    """A square matrix with given numbers on its diagonal, 0 elsewhere.

    Args:
        diagonal: [n], a variable or an array.

    Returns:
        [n, n].

    Example:
        >>> fluid.layers.diag(fluid.layers.fill_constant([3], "float32", 2.0)).shape
        (3, 3)
    """
    return one_op("diag", {"Diagonal": assign(diagonal) if isinstance(diagonal, np.ndarray) else diagonal})


@naming.layer
def uniform_random_batch_size_like(
    input: Variable, shape: Sequence[int], dtype: Any = "float32", input_dim_idx: int = 0, output_dim_idx: int = 0,
    min: float = -1.0, max: float = 1.0, seed: int = 0,
) -> Variable:  # fmt: skip
    """Independent draws between two numbers, as many rows as a batch has.

    Args:
        input: has the batch size; with sequences their number counts.
        shape: the sizes; the one that is copied may be -1.
        dtype: a floating dtype.

    Returns:
        The draws; no gradient passes.

    Example:
        >>> fluid.layers.uniform_random_batch_size_like(fluid.layers.data("x", [3]), shape=[-1, 5]).shape
        (-1, 5)
    """
    attrs = _like(shape, dtype, input_dim_idx, output_dim_idx, seed) | {"min": float(min), "max": float(max)}
    return one_op("uniform_random_batch_size_like", {"Input": input}, attrs, dtype=dtype, stop_gradient=True)


@naming.layer
def gaussian_random_batch_size_like(
    input: Variable, shape: Sequence[int], input_dim_idx: int = 0, output_dim_idx: int = 0, mean: float = 0.0,
    std: float = 1.0, seed: int = 0, dtype: Any = "float32",
) -> Variable:  # fmt: skip
    """Independent normal draws, as many rows as a batch has.

    Args:
        input: has the batch size; with sequences their number counts.
        shape: the sizes; the one that is copied may be -1.
        dtype: a floating dtype.

    Returns:
        The draws; no gradient passes.

    Example:
        >>> fluid.layers.gaussian_random_batch_size_like(fluid.layers.data("x", [3]), shape=[-1, 5]).shape
        (-1, 5)
    """
    attrs = _like(shape, dtype, input_dim_idx, output_dim_idx, seed) | {"mean": float(mean), "std": float(std)}
    return one_op("gaussian_random_batch_size_like", {"Input": input}, attrs, dtype=dtype, stop_gradient=True)


def _like(shape: Sequence[int], dtype: Any, source: int, target: int, seed: int) -> dict[str, Any]:
    return {
        "shape": list(shape), "dtype": int(dtypes.var_type(dtype)), "input_dim_idx": source, "output_dim_idx": target,
        "seed": seed,
    }  # fmt: skip


@naming.layer
def sampling_id(x: Variable, min: float = 0.0, max: float = 1.0, seed: int = 0, dtype: Any = "float32") -> Variable:
    """A class for each row, drawn with the row's own probabilities.

    Args:
        x: probabilities [N, classes].
        min: lower bound of the numbers that choose.
        max: their upper bound.
        dtype: kept for old scripts; the classes are int64.

    Returns:
        Int64 [N]; no gradient passes.

    Example:
        >>> fluid.layers.sampling_id(fluid.layers.data("p", [10])).shape
        (-1,)
    """
    attrs = {"min": float(min), "max": float(max), "seed": seed}
    return one_op("sampling_id", {"X": x}, attrs, dtype="int64", stop_gradient=True)


@naming.layer
def uniform_random(
    shape: Sequence[int], dtype: Any = "float32", min: float = -1.0, max: float = 1.0, seed: int = 0
) -> Variable:
    """Independent draws from the uniform distribution on [min, max), new ones at every run.

    Args:
        dtype: a floating dtype.

    Returns:
        The draws.

    Example:
        >>> fluid.layers.uniform_random([2, 3]).shape
        (2, 3)
    """
    attrs = _drawn(shape, dtype, seed) | {"min": float(min), "max": float(max)}
    return one_op("uniform_random", {}, attrs, dtype=dtype)


@naming.layer
def gaussian_random(
    shape: Sequence[int], mean: float = 0.0, std: float = 1.0, seed: int = 0, dtype: Any = "float32"
) -> Variable:
    """Independent draws from a normal distribution, new ones at every run.

    Args:
        dtype: a floating dtype.

    Returns:
        The draws.

    Example:
        >>> fluid.layers.gaussian_random([2, 3]).shape
        (2, 3)
    """
    attrs = _drawn(shape, dtype, seed) | {"mean": float(mean), "std": float(std)}
    return one_op("gaussian_random", {}, attrs, dtype=dtype)


def _drawn(shape: Sequence[int], dtype: Any, seed: int) -> dict[str, Any]:
    return {"shape": list(shape), "dtype": int(dtypes.var_type(dtype)), "seed": seed}


@naming.layer
@takes(x="float")
def dropout(
    x: Variable, dropout_prob: float, is_test: bool = False, seed: int | None = None, name: str | None = None,
    dropout_implementation: str = "downgrade_in_infer",
) -> Variable:  # fmt: skip
    """Set each element to zero with a probability, in training; in test programs every element stays.

    Args:
        x: any shape, float.
        dropout_prob: probability of a zero, from 0 to 1.
        is_test: whether this is a test program; ``clone(for_test=True)`` sets it.
        seed: a number that gives the same mask at every run; None draws new ones.
        dropout_implementation: ``downgrade_in_infer`` scales by ``1 - dropout_prob`` in test,
            ``upscale_in_train`` by ``1 / (1 - dropout_prob)`` in training.

    Returns:
        Shape, dtype and LoD of ``x``.

    Example:
        >>> fluid.layers.dropout(fluid.layers.data("x", [3]), dropout_prob=0.5).shape
        (-1, 3)
    """
    attrs = {
        "dropout_prob": float(dropout_prob), "is_test": is_test, "fix_seed": bool(seed), "seed": seed or 0,
        "dropout_implementation": dropout_implementation,
    }  # fmt: skip
    return several("dropout", {"X": x}, {"Out": x.dtype, "Mask": "uint8"}, attrs, name=name, constant=("Mask",))[0]


@naming.layer
@takes(x="any[batch, …]")
def random_crop(x: Variable, shape: Sequence[int], seed: int | Variable | None = None) -> Variable:
    """A part of each instance of a batch, each from another random place.

    Args:
        x: [batch, …].
        shape: shape of a part; as many of the last dimensions of ``x`` are cut, those before them are the batch.
        seed: a number from which the places follow, other ones in every run; or an int64 variable [1], which holds the
            next one after each run. None draws a number, which `fluid.seed` fixes.

    Returns:
        [batch, the shape]; no gradient passes.

    Example:
        >>> fluid.layers.random_crop(fluid.layers.data("image", [3, 256, 256]), shape=[3, 224, 224]).shape
        (-1, 3, 224, 224)
    """
    helper = LayerHelper("random_crop")
    attrs: dict[str, Any] = {"shape": list(shape)}
    if seed is None:
        seed = int(generator().integers(-65536, 65536))
    if isinstance(seed, int):
        attrs["startup_seed"] = seed
        seed, _ = helper.create_or_get_global_variable(
            naming.layer_name("random_crop_seed"), dtype="int64", shape=[1], persistable=True, stop_gradient=True
        )
        helper.set_variable_initializer(seed, Constant(attrs["startup_seed"], force_cpu=True))
    outputs = {"Out": x.dtype, "SeedOut": seed}
    return several("random_crop", {"X": x, "Seed": seed}, outputs, attrs, constant=("Out",), helper=helper)[0]
