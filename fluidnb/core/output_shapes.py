"""One operator and a scope: shapes of its outputs before anything has a value, and objects that stay the same ones."""

from __future__ import annotations

from typing import Any

from fluidnb.op import EMPTY, OpDesc, get_op, infer_compile
from fluidnb.proto.desc import ProgramDesc, VarDesc
from fluidnb.runtime import Scope
from fluidnb.utils.source_location import SourceLocation
from fluidnb.values import LoDRankTable, LoDTensor, LoDTensorArray, SelectedRows, VarType, var_type

_KINDS = {
    SelectedRows: VarType.SELECTED_ROWS, LoDTensorArray: VarType.LOD_TENSOR_ARRAY, LoDRankTable: VarType.LOD_RANK_TABLE
}


def infer_output_shapes(desc: OpDesc, scope: Scope, where: SourceLocation | None = None) -> None:
    """Give the tensors that an operator writes the shapes that they will have."""
    block = ProgramDesc().block(0)
    for name in [*desc.input_arg_names(), *desc.output_arg_names()]:
        if name != EMPTY and not block.has_var(name):
            variable = scope.find_var(name)
            declare(block.var(name), None if variable is None else variable.value)
    twin = block.append_op(desc.clone())
    infer_compile(get_op(twin.optype), twin, block, where)
    for name in desc.output_arg_names():
        variable = scope.find_var(name)
        if variable is None or block.var(name).type() != VarType.LOD_TENSOR:
            continue
        shape = block.var(name).shape()
        value = variable.value
        if min(shape, default=0) >= 0 and (value is None or isinstance(value, LoDTensor) and value.shape() != shape):
            variable.get_tensor().set_dims(shape)


def declare(var: VarDesc, value: Any) -> None:
    """Let a declaration say what a variable holds; a tensor without a value is taken for float32."""
    tensor = value.get_tensor() if isinstance(value, SelectedRows) else value
    if not isinstance(value, LoDTensor | None):
        var.set_type(_KINDS.get(type(value), VarType.RAW))
    if isinstance(tensor, LoDTensor):
        var.set_shape(value.shape())
        var.set_dtype(VarType.FP32 if tensor.array is None else var_type(tensor.array.dtype))
        if tensor is value and tensor.lod_:
            var.set_lod_level(len(tensor.lod_))


def take_over(old: Any, new: Any) -> bool:
    """Give the object that a variable held the content of the one that an operator made.

    Args:
        old: rows, an array of tensors or a rank table; anything else is left alone.

    Example:
        >>> old, new = SelectedRows(), SelectedRows([3], 5)
        >>> take_over(old, new), old.rows(), take_over(None, new)
        (True, [3], False)
    """
    if type(old) is not type(new):
        return False
    if isinstance(old, SelectedRows):
        old.height_, old.rows_ = new.height_, new.rows_
        old.value._replace(new.value.array, new.value.place)
    elif isinstance(old, LoDTensorArray):
        old[:] = list(new)
    elif isinstance(old, LoDRankTable):
        old.become(new)
    else:
        return False
    return True
