"""Layers that create variables: parameters, constants, casts, copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidnb.initializer import Constant, Initializer, array_attrs, force_init_on_cpu, number_attrs
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.one_op import one_op
from fluidnb.param_attr import ParamAttr, ParamAttrLike
from fluidnb.program import Parameter, Variable
from fluidnb.program import layer_calls as naming
from fluidnb.values import dtypes


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
    shape: Sequence[int],
    dtype: Any,
    name: str | None = None,
    attr: ParamAttrLike = None,
    is_bias: bool = False,
    default_initializer: Initializer | None = None,
) -> Parameter:
    """Creates a parameter that is not part of a layer.

    Args:
        shape: all sizes known.
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
    shape: Sequence[int],
    value: float,
    dtype: Any,
    persistable: bool = False,
    force_cpu: bool = False,
    name: str | None = None,
) -> Variable:
    """A variable of block 0 that the startup program fills with a number.

    Args:
        shape: all sizes known.
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
        x: any shape.
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
        OpTypeError: the input is neither.
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
        shape: all sizes known.
        dtype: its dtype.
        value: the number.
        force_cpu: whether it is made on the CPU whatever the executor's place.
        out: an existing variable to write; None makes one.

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
    input: Variable,
    shape: Sequence[int],
    dtype: Any,
    value: float,
    input_dim_idx: int = 0,
    output_dim_idx: int = 0,
) -> Variable:
    """A variable filled with one number, with as many rows as another.

    Args:
        input: the other variable.
        shape: sizes; the one at ``output_dim_idx`` is replaced.
        dtype: its dtype.
        value: the number.
        input_dim_idx: the axis of ``input`` whose size is taken.
        output_dim_idx: the axis that gets this size.

    Returns:
        The variable; no gradient passes.

    Example:
        >>> fluid.layers.fill_constant_batch_size_like(fluid.layers.data("x", [3]), [-1, 5], "float32", 0.0).shape
        (-1, 5)
    """
    attrs = {
        "shape": list(shape),
        "dtype": int(dtypes.var_type(dtype)),
        "input_dim_idx": input_dim_idx,
        "output_dim_idx": output_dim_idx,
        **number_attrs(value, dtype),
    }
    return one_op("fill_constant_batch_size_like", {"Input": input}, attrs, dtype=dtype, stop_gradient=True)


@naming.layer
def ones(shape: Sequence[int], dtype: Any, force_cpu: bool = False) -> Variable:
    """A variable of ones.

    Args:
        shape: all sizes known.
        dtype: its dtype.
        force_cpu: whether it is made on the CPU whatever the executor's place.

    Returns:
        The variable; no gradient passes.

    Example:
        >>> fluid.layers.ones([2], "float32").op.attr("value")
        1.0
    """
    return fill_constant(shape, dtype, 1.0, force_cpu)


@naming.layer
def zeros(shape: Sequence[int], dtype: Any, force_cpu: bool = False) -> Variable:
    """A variable of zeros.

    Args:
        shape: all sizes known.
        dtype: its dtype.
        force_cpu: whether it is made on the CPU whatever the executor's place.

    Returns:
        The variable; no gradient passes.

    Example:
        >>> fluid.layers.zeros([2], "float32").op.attr("value")
        0.0
    """
    return fill_constant(shape, dtype, 0.0, force_cpu)
