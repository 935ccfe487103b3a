"""Layers of networks that step through sequences: ranks, steps, and what is remembered."""

from __future__ import annotations

from fluidnb.errors import OpTypeError
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.array import check_array
from fluidnb.layers.one_op import check_variable, one_op
from fluidnb.op import takes
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming
from fluidnb.values.dtypes import VarType

__all__ = [
    "array_to_lod_tensor", "lod_rank_table", "lod_tensor_to_array", "max_sequence_len", "reorder_lod_tensor_by_rank",
    "shrink_memory",
]  # fmt: skip


def _check_table(table: object, argument: str, layer: str) -> None:
    check_variable(table, argument, layer)
    assert isinstance(table, Variable)
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

    Raises:
        OpTypeError: ``x`` is not a Variable.
        OpValueError: a negative level.

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

    Args:
        rank_table: what `lod_rank_table` gave.

    Returns:
        int64 [1].

    Raises:
        OpTypeError: ``rank_table`` is not a rank table.

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
        table: what `lod_rank_table` gave.

    Returns:
        An array of tensors; the rows of each are in the order of the table.

    Raises:
        OpTypeError: ``x`` is not a Variable, or ``table`` not a rank table.

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

    Raises:
        OpTypeError: ``x`` is not an array, or ``table`` not a rank table.

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
        table: what `lod_rank_table` gave.

    Returns:
        The first rows of ``x``: those of sequences longer than ``i``.

    Raises:
        OpTypeError: an argument is of another type.
        RuleError: ``i`` is not one number.

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
        rank_table: what `lod_rank_table` gave.

    Returns:
        Shape of ``x``; what belongs to the longest sequence of the table comes first.

    Raises:
        OpTypeError: ``x`` is not a Variable, or ``rank_table`` not a rank table.

    Example:
        >>> x, h = fluid.layers.data("x", [3], lod_level=1), fluid.layers.data("h", [4])
        >>> fluid.layers.reorder_lod_tensor_by_rank(h, fluid.layers.lod_rank_table(x)).shape
        (-1, 4)
    """
    _check_table(rank_table, "rank_table", "reorder_lod_tensor_by_rank")
    return one_op("reorder_lod_tensor_by_rank", {"X": x, "RankTable": rank_table})
