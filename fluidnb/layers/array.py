"""Arrays of tensors, which loops read and write by index."""

from __future__ import annotations

from typing import Any

from fluidnb.errors import FluidError, OpTypeError, OpValueError
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.one_op import check_variable
from fluidnb.layers.several import several
from fluidnb.op import takes
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming
from fluidnb.values.dtypes import VarType, dtype_name


@naming.layer
def create_array(dtype: Any) -> Variable:
    """An empty array of tensors.

    Args:
        dtype: dtype of its elements.

    Returns:
        The array, a variable of type LOD_TENSOR_ARRAY.

    Example:
        >>> fluid.layers.create_array("float32").name
        'array_0.out'
    """
    return _array(LayerHelper("array"), dtype)


def _array(helper: LayerHelper, dtype: Any) -> Variable:
    return helper.create_variable(name=f"{helper.name}.out", type=VarType.LOD_TENSOR_ARRAY, dtype=dtype)


def check_array(array: object, argument: str, layer: str, error: type[FluidError] = OpTypeError) -> None:
    """Raise unless an argument of a layer is an array of tensors.

    Args:
        array: the argument.
        argument: its name.
        layer: the layer's name.
        error: what is raised when it is a variable of another type.

    Raises:
        OpTypeError: it is not a Variable, or another one.

    Example:
        >>> check_array(fluid.layers.create_array("float32"), "array", "array_read")
    """
    check_variable(array, argument, layer)
    assert isinstance(array, Variable)
    if array.type != VarType.LOD_TENSOR_ARRAY:
        raise error(
            f"{argument} of {layer} must be an array of tensors.",
            slots=[(argument, array.name, dtype_name(array.dtype), array.shape)],
            expected="a LoDTensorArray, type LOD_TENSOR_ARRAY", received=VarType(array.type).name,
            hint="layers.create_array() makes one, and so does layers.array_write() without array.",
        )  # fmt: skip


def _check_index(i: object, layer: str) -> None:
    check_variable(i, "i", layer)
    assert isinstance(i, Variable)
    if dtype_name(i.dtype) != "int64" or any(size not in (1, -1) for size in i.shape):
        raise OpValueError(
            f"i of {layer} must be one int64 number.", slots=[("i", i.name, dtype_name(i.dtype), i.shape)],
            expected="int64[1]", hint='layers.zeros(shape=[1], dtype="int64") makes one.',
        )  # fmt: skip


@naming.layer
@takes(i="write_to_array.I", array="array")
def array_write(x: Variable, i: Variable, array: Variable | None = None) -> Variable:
    """Write a tensor into an array; the array grows as far as needed.

    Args:
        x: the tensor.
        i: int64 [1], the position from 0.
        array: the array; None makes one.

    Returns:
        The array.

    Raises:
        OpTypeError: an argument is not a Variable.
        OpValueError: ``array`` is not an array of tensors, or ``i`` not an int64 of one element.

    Example:
        >>> i = fluid.layers.zeros([1], "int64")
        >>> a = fluid.layers.array_write(fluid.layers.ones([2], "float32"), i)
        >>> fluid.layers.array_read(a, i).shape
        (2,)
    """
    _check_index(i, "array_write")
    helper = LayerHelper("array_write")
    if array is None:
        array = _array(helper, x.dtype)
    check_array(array, "array", "array_write", OpValueError)
    helper.append_op(type="write_to_array", inputs={"X": [x], "I": [i]}, outputs={"Out": [array]})
    return array


@naming.layer
@takes(array="read_from_array.X", i="read_from_array.I")
def array_read(array: Variable, i: Variable) -> Variable:
    """Read a tensor from an array.

    Args:
        array: the array.
        i: int64 [1], the position from 0.

    Returns:
        The tensor.

    Raises:
        OpTypeError: ``array`` is not an array of tensors.
        OpValueError: ``i`` is not an int64 of one element.

    Example:
        >>> i = fluid.layers.zeros([1], "int64")
        >>> a = fluid.layers.array_write(fluid.layers.ones([2], "float32"), i)
        >>> fluid.layers.array_read(a, i).op.type
        'read_from_array'
    """
    check_array(array, "array", "array_read")
    _check_index(i, "array_read")
    helper = LayerHelper("array_read")
    out = helper.create_tmp_variable(array.dtype)
    helper.append_op(type="read_from_array", inputs={"X": [array], "I": [i]}, outputs={"Out": [out]})
    return out


@naming.layer
@takes(array="lod_array_length.X")
def array_length(array: Variable) -> Variable:
    """Number of elements of an array.

    Args:
        array: the array.

    Returns:
        int64 [1].

    Raises:
        OpTypeError: ``array`` is not an array of tensors.

    Example:
        >>> fluid.layers.array_length(fluid.layers.create_array("float32")).shape
        (1,)
    """
    check_array(array, "array", "array_length")
    helper = LayerHelper("array_length")
    out = helper.create_tmp_variable("int64", stop_gradient=True)
    helper.append_op(type="lod_array_length", inputs={"X": [array]}, outputs={"Out": [out]})
    return out


@naming.layer
def tensor_array_to_tensor(input: Variable, axis: int = 1, name: str | None = None) -> tuple[Variable, Variable]:
    """The elements of an array as one tensor.

    Args:
        input: the array; its elements differ in one size at most.
        axis: the dimension along which they follow each other.
        name: name of the layer.

    Returns:
        (the tensor, int32 [number of elements] with the size of each along the axis).

    Raises:
        OpTypeError: ``input`` is not an array of tensors.
        RuleError: there is no such dimension.

    Example:
        >>> i = fluid.layers.zeros([1], "int64")
        >>> array = fluid.layers.array_write(fluid.layers.ones([2, 3], "float32"), i)
        >>> whole, sizes = fluid.layers.tensor_array_to_tensor(array, axis=0)
        >>> whole.shape, sizes.shape
        ((-1, 3), (-1,))
    """
    check_array(input, "input", "tensor_array_to_tensor")
    outputs = {"Out": input.dtype, "OutIndex": "int32"}
    whole, sizes = several(
        "tensor_array_to_tensor", {"X": input}, outputs, {"axis": axis}, name=name, constant=("OutIndex",)
    )
    return whole, sizes
