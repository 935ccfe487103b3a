"""Layers over sequences: pooling, softmax, repeating."""

from __future__ import annotations

from fluidnb.layers.one_op import one_op
from fluidnb.layers.several import several
from fluidnb.op import takes
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = [
    "sequence_expand", "sequence_expand_as", "sequence_first_step", "sequence_last_step", "sequence_pool",
    "sequence_softmax",
]  # fmt: skip


@naming.layer
@takes(pool_type=("average", "sum", "sqrt", "max", "last", "first"))
def sequence_pool(input: Variable, pool_type: str, is_test: bool = False, pad_value: float = 0.0) -> Variable:
    """One row from each sequence of the last level.

    Args:
        input: [rows, …] with sequences.
        pool_type: ``"average"``, ``"sum"``, ``"sqrt"`` (the sum over the square root of the length), ``"max"``,
            ``"last"`` or ``"first"``.
        is_test: kept for old scripts; it changes nothing.
        pad_value: what a sequence without rows gives.

    Returns:
        [sequences, …]; its LoD lacks the last level.

    Raises:
        OpTypeError: the input is not a Variable.
        OpValueError: ``pool_type`` is another word.

    Example:
        >>> x = fluid.layers.data("x", [32], lod_level=1)
        >>> y = fluid.layers.sequence_pool(x, "average")
        >>> y.shape, y.lod_level
        ((-1, 32), 0)

    Source: Fluid's layers.sequence_pool.
    """
    attrs = {"pooltype": str(pool_type).upper(), "is_test": bool(is_test), "pad_value": float(pad_value)}
    outputs = {"Out": input.dtype, "MaxIndex": "int32"}
    return several("sequence_pool", {"X": input}, outputs, attrs, constant=("MaxIndex",))[0]


@naming.layer
@takes(input="sequence_pool.X")
def sequence_first_step(input: Variable) -> Variable:
    """The first row of each sequence.

    Args:
        input: [rows, …] with sequences.

    Returns:
        [sequences, …]; its LoD lacks the last level.

    Raises:
        OpTypeError: the input is not a Variable.

    Example:
        >>> fluid.layers.sequence_first_step(fluid.layers.data("x", [32], lod_level=1)).shape
        (-1, 32)

    Source: Fluid's layers.sequence_first_step.
    """
    return sequence_pool(input, "first")


@naming.layer
@takes(input="sequence_pool.X")
def sequence_last_step(input: Variable) -> Variable:
    """The last row of each sequence.

    Args:
        input: [rows, …] with sequences.

    Returns:
        [sequences, …]; its LoD lacks the last level.

    Raises:
        OpTypeError: the input is not a Variable.

    Example:
        >>> fluid.layers.sequence_last_step(fluid.layers.data("x", [32], lod_level=1)).shape
        (-1, 32)

    Source: Fluid's layers.sequence_last_step.
    """
    return sequence_pool(input, "last")


@naming.layer
def sequence_softmax(input: Variable, use_cudnn: bool = False, name: str | None = None) -> Variable:
    """Probabilities that sum to one over each sequence of the last level.

    Args:
        input: [rows, 1] with sequences.
        use_cudnn: whether to use cuDNN on a GPU.
        name: name of the layer.

    Returns:
        Shape and LoD of the input.

    Raises:
        OpTypeError: the input is not a Variable.
        OpValueError: rows of more than one number.

    Example:
        >>> y = fluid.layers.sequence_softmax(fluid.layers.data("x", [1], lod_level=1))
        >>> y.shape, y.lod_level
        ((-1, 1), 1)

    Source: Fluid's layers.sequence_softmax.
    """
    return one_op("sequence_softmax", {"X": input}, {"use_cudnn": bool(use_cudnn)}, name=name)


@naming.layer
def sequence_expand(x: Variable, y: Variable, ref_level: int = -1, name: str | None = None) -> Variable:
    """Rows, or sequences where there are any, repeated as often as another variable's sequences are long.

    Args:
        x: [n, …], with one level of LoD or without: n rows or sequences.
        y: with sequences, n at level ``ref_level``; its values do not matter.
        ref_level: the level of ``y`` whose lengths count; -1 is the last.
        name: name of the layer.

    Returns:
        The rows or sequences of ``x``, each as often as the sequence of ``y`` is long; a length of 0 leaves it out.
        With a LoD when ``x`` has one.

    Raises:
        OpTypeError: an argument is not a Variable.
        OpValueError: ``x`` has more than one level.

    Example:
        >>> x, y = fluid.layers.data("x", [10]), fluid.layers.data("y", [20], lod_level=1)
        >>> fluid.layers.sequence_expand(x, y).shape
        (-1, 10)

    Source: Fluid's layers.sequence_expand.
    """
    return one_op("sequence_expand", {"X": x, "Y": y}, {"ref_level": ref_level}, name=name)


@naming.layer
def sequence_expand_as(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """Rows, one for each sequence of another variable, repeated to be as many as its rows.

    Args:
        x: [sequences of ``y``, …].
        y: with one level of LoD; its values do not matter.
        name: name of the layer.

    Returns:
        [rows of ``y``, …], with the LoD of ``y``.

    Raises:
        OpTypeError: an argument is not a Variable.

    Example:
        >>> x, y = fluid.layers.data("x", [10]), fluid.layers.data("y", [20], lod_level=1)
        >>> fluid.layers.sequence_expand_as(x, y).lod_level
        1

    Source: Fluid's layers.sequence_expand_as.
    """
    return one_op("sequence_expand_as", {"X": x, "Y": y}, name=name)
