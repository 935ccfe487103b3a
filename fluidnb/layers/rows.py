"""Layers over SelectedRows, the gradients of sparse embeddings."""

from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.one_op import one_op
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming
from fluidnb.values.dtypes import VarType

__all__ = ["get_tensor_from_selected_rows", "merge_selected_rows"]


@naming.layer
def merge_selected_rows(x: Variable, name: str | None = None) -> Variable:
    """Rows of the same number added up, each row once.

    Args:
        x: SelectedRows.
        name: name of the result.

    Returns:
        SelectedRows with their rows in rising order.

    Raises:
        EnforceNotMet: ``x`` holds a tensor.

    Example:
        >>> block = fluid.default_main_program().global_block()
        >>> rows = block.create_var(name="rows", shape=[9, 2], dtype="float32", type=8)
        >>> fluid.layers.merge_selected_rows(rows).type.name
        'SELECTED_ROWS'
    """
    helper = LayerHelper("merge_selected_rows", name=name)
    out = helper.create_variable(name=f"{helper.name}.out", dtype=x.dtype, type=VarType.SELECTED_ROWS)
    return one_op("merge_selected_rows", {"X": x}, out=out)


@naming.layer
def get_tensor_from_selected_rows(x: Variable, name: str | None = None) -> Variable:
    """The values of SelectedRows as a tensor.

    Args:
        x: SelectedRows.

    Returns:
        [rows held, …], in the order in which they are held.

    Raises:
        EnforceNotMet: ``x`` holds a tensor.

    Example:
        >>> block = fluid.default_main_program().global_block()
        >>> rows = block.create_var(name="rows", shape=[9, 2], dtype="float32", type=8)
        >>> fluid.layers.get_tensor_from_selected_rows(fluid.layers.merge_selected_rows(rows)).shape
        (-1, 2)
    """
    return one_op("get_tensor_from_selected_rows", {"X": x}, name=name)
