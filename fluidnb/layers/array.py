"""Arrays of tensors, rank tables and masks of rows, with which loops go through sequences."""

from typing import Any

from fluidnb.errors import FluidError, OpTypeError, OpValueError
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.one_op import one_op, several
from fluidnb.op import takes
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming
from fluidnb.values.dtypes import VarType, dtype_name

__all__ = [
    "array_length", "array_read", "array_to_lod_tensor", "array_write", "create_array", "lod_rank_table",
    "lod_tensor_to_array", "max_sequence_len", "merge_lod_tensor", "reorder_lod_tensor_by_rank", "shrink_memory",
    "split_lod_tensor", "tensor_array_to_tensor",
]  # fmt: skip


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


def check_array(array: Variable, argument: str, layer: str, error: type[FluidError] = OpTypeError) -> None:
    """Raise unless an argument of a layer is an array of tensors."""
    if array.type != VarType.LOD_TENSOR_ARRAY:
        raise error(
            f"{argument} of {layer} must be an array of tensors.",
            slots=[(argument, array.name, dtype_name(array.dtype), array.shape)],
            expected="a LoDTensorArray, type LOD_TENSOR_ARRAY", received=VarType(array.type).name,
            hint="layers.create_array() makes one, and so does layers.array_write() without array.",
        )  # fmt: skip


def _check_index(i: Variable, layer: str) -> None:
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

    Example:
        >>> i = fluid.layers.zeros([1], "int64")
        >>> a = fluid.layers.array_write(fluid.layers.ones([2], "float32"), i)
        >>> fluid.layers.array_read(a, i).op.type
        'read_from_array'
    """
    check_array(array, "array", "array_read")
    _check_index(i, "array_read")
    helper = LayerHelper("array_read")
    return several("read_from_array", {"X": array, "I": i}, {"Out": array.dtype}, helper=helper)[0]


@naming.layer
@takes(array="lod_array_length.X")
def array_length(array: Variable) -> Variable:
    """Number of elements of an array.

    Args:
        array: the array.

    Returns:
        int64 [1].

    Example:
        >>> fluid.layers.array_length(fluid.layers.create_array("float32")).shape
        (1,)
    """
    check_array(array, "array", "array_length")
    outputs, helper = {"Out": "int64"}, LayerHelper("array_length")
    return several("lod_array_length", {"X": array}, outputs, constant=("Out",), helper=helper)[0]


@naming.layer
def tensor_array_to_tensor(input: Variable, axis: int = 1, name: str | None = None) -> tuple[Variable, Variable]:
    """The elements of an array as one tensor.

    Args:
        input: the array; its elements differ in one size at most.
        axis: the dimension along which they follow each other.

    Returns:
        (the tensor, int32 [number of elements] with the size of each along the axis).

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


def _check_table(table: Variable, argument: str, layer: str) -> None:
    if table.type != VarType.LOD_RANK_TABLE:
        raise OpTypeError(
            f"{argument} of {layer} must be a rank table.", slots=[(argument, table.name, None, None)],
            expected="a LOD_RANK_TABLE", received=VarType(table.type).name, hint="layers.lod_rank_table() makes one.",
        )  # fmt: skip


@naming.layer
def lod_rank_table(x: Variable, level: int = 0) -> Variable:
    """The sequences of a batch by falling length.

    Args:
        x: sequences.
        level: the level whose sequences are ranked.

    Returns:
        The table, a variable of type LOD_RANK_TABLE: (index, length) of each sequence, the longest first.

    Example:
        >>> x = fluid.layers.data("x", [3], lod_level=1)
        >>> table = fluid.layers.lod_rank_table(x)
        >>> feed = {"x": fluid.create_lod_tensor(np.zeros((5, 3), "float32"), [[2, 3]], fluid.CPUPlace())}
        >>> fluid.Executor().run(feed=feed, fetch_list=[table], return_numpy=False)
        [LoDRankTable([(1, 3), (0, 2)])]

    Source: developer guide, section on RNNs.
    """
    helper = LayerHelper("lod_rank_table")
    table = helper.create_variable(name=helper.name, type=VarType.LOD_RANK_TABLE)
    helper.append_op(type="lod_rank_table", inputs={"X": [x]}, outputs={"Out": [table]}, attrs={"level": level})
    return table


@naming.layer
def max_sequence_len(rank_table: Variable) -> Variable:
    """The length of the longest sequence of a rank table: how many steps a network takes.

    Returns:
        int64 [1].

    Example:
        >>> x = fluid.layers.data("x", [3], lod_level=1)
        >>> fluid.layers.max_sequence_len(fluid.layers.lod_rank_table(x)).shape
        (1,)
    """
    _check_table(rank_table, "rank_table", "max_sequence_len")
    return one_op("max_sequence_len", {"RankTable": rank_table}, dtype="int64", stop_gradient=True)


@naming.layer
@takes(table="lod_tensor_to_array.RankTable")
def lod_tensor_to_array(x: Variable, table: Variable) -> Variable:
    """A batch of sequences step by step: element t has the t-th row of every sequence longer than t.

    Args:
        x: sequences of the lengths in the table.

    Returns:
        An array of tensors; the rows of each are in the order of the table.

    Example:
        >>> x = fluid.layers.data("x", [3], lod_level=1)
        >>> array = fluid.layers.lod_tensor_to_array(x, fluid.layers.lod_rank_table(x))
        >>> fluid.layers.array_read(array, fluid.layers.zeros([1], "int64")).shape
        (-1, 3)

    Source: developer guide, section on RNNs.
    """
    _check_table(table, "table", "lod_tensor_to_array")
    helper = LayerHelper("lod_tensor_to_array")
    array = helper.create_variable(name=helper.name, type=VarType.LOD_TENSOR_ARRAY, dtype=x.dtype)
    helper.append_op(type="lod_tensor_to_array", inputs={"X": [x], "RankTable": [table]}, outputs={"Out": [array]})
    return array


@naming.layer
@takes(table="array_to_lod_tensor.RankTable")
def array_to_lod_tensor(x: Variable, table: Variable) -> Variable:
    """Sequences from their steps: `lod_tensor_to_array` the other way.

    Args:
        x: an array of tensors, one for each step of the longest sequence.
        table: the table by which it was made.

    Returns:
        The sequences in their first order, with their LoD.

    Example:
        >>> x = fluid.layers.data("x", [3], lod_level=1)
        >>> table = fluid.layers.lod_rank_table(x)
        >>> array = fluid.layers.lod_tensor_to_array(x, table)
        >>> back = fluid.layers.array_to_lod_tensor(array, table)
        >>> back.shape, back.lod_level
        ((-1, 3), 1)

    Source: developer guide, section on RNNs.
    """
    check_array(x, "x", "array_to_lod_tensor")
    _check_table(table, "table", "array_to_lod_tensor")
    return one_op("array_to_lod_tensor", {"X": x, "RankTable": table})


@naming.layer
@takes(i="shrink_rnn_memory.I", table="shrink_rnn_memory.RankTable")
def shrink_memory(x: Variable, i: Variable, table: Variable) -> Variable:
    """The rows of a memory whose sequences are not finished at a step.

    Args:
        x: a row (or a sequence) for each sequence, in the order of the table.
        i: int64 [1], the step, from 0.

    Returns:
        The first rows of ``x``: those of sequences longer than ``i``.

    Example:
        >>> x = fluid.layers.data("x", [3], lod_level=1)
        >>> h, i = fluid.layers.data("h", [4]), fluid.layers.zeros([1], "int64")
        >>> fluid.layers.shrink_memory(h, i, fluid.layers.lod_rank_table(x)).shape
        (-1, 4)

    Source: developer guide, section on RNNs.
    """
    _check_table(table, "table", "shrink_memory")
    return one_op("shrink_rnn_memory", {"X": x, "I": i, "RankTable": table})


@naming.layer
def reorder_lod_tensor_by_rank(x: Variable, rank_table: Variable) -> Variable:
    """Sequences, or rows, in the order of a rank table.

    Args:
        x: as many sequences as the table has, or as many rows.

    Returns:
        Shape of ``x``; what belongs to the longest sequence of the table comes first.

    Example:
        >>> x, h = fluid.layers.data("x", [3], lod_level=1), fluid.layers.data("h", [4])
        >>> fluid.layers.reorder_lod_tensor_by_rank(h, fluid.layers.lod_rank_table(x)).shape
        (-1, 4)
    """
    _check_table(rank_table, "rank_table", "reorder_lod_tensor_by_rank")
    return one_op("reorder_lod_tensor_by_rank", {"X": x, "RankTable": rank_table})


@naming.layer
def split_lod_tensor(input: Variable, mask: Variable, level: int = 0) -> tuple[Variable, Variable]:
    """The rows that a mask marks, and the others; with sequences, whole sequences.

    Args:
        input: [N, ...], or sequences.
        mask: bool [N, 1] or [N], one for each row, or for each sequence of ``level``.
        level: the level whose sequences the mask splits; the levels above are dropped.

    Returns:
        (those marked True, the others); one of them may have no rows.

    Example:
        >>> x, y = fluid.layers.data("x", [3]), fluid.layers.data("y", [1], dtype="bool")
        >>> [v.shape for v in fluid.layers.split_lod_tensor(x, mask=y)]
        [(-1, 3), (-1, 3)]

    Source: Fluid's split_lod_tensor, which IfElse uses.
    """
    outputs = {"OutTrue": input.dtype, "OutFalse": input.dtype}
    true, false = several("split_lod_tensor", {"X": input, "Mask": mask}, outputs, {"level": level})
    return true, false


@naming.layer
def merge_lod_tensor(in_true: Variable, in_false: Variable, x: Variable, mask: Variable, level: int = 0) -> Variable:
    """Rows from two sides in the order that a mask gives: `split_lod_tensor` the other way.

    Args:
        in_true: what belongs where the mask holds.
        in_false: what belongs elsewhere, rows of the same shape.
        x: what was split; its levels above ``level`` come back.
        mask: the mask that split it.
        level: the level at which it was split.

    Returns:
        A row or sequence for each element of the mask.

    Example:
        >>> x, mask = fluid.layers.data("x", [3]), fluid.layers.data("y", [1], dtype="bool")
        >>> true, false = fluid.layers.split_lod_tensor(x, mask)
        >>> fluid.layers.merge_lod_tensor(true, false, x, mask).shape
        (-1, 3)

    Source: Fluid's merge_lod_tensor, which IfElse uses.
    """
    inputs = {"InTrue": in_true, "InFalse": in_false, "X": x, "Mask": mask}
    return one_op("merge_lod_tensor", inputs, {"level": level})
