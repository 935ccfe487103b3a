"""Splitting of rows and sequences by a mask, and merging."""

from __future__ import annotations

from fluidnb.layers.one_op import one_op
from fluidnb.layers.several import several
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = ["merge_lod_tensor", "split_lod_tensor"]


@naming.layer
def split_lod_tensor(input: Variable, mask: Variable, level: int = 0) -> tuple[Variable, Variable]:
    """The rows that a mask marks, and the others; with sequences, whole sequences.

    Args:
        input: [N, ...], or sequences.
        mask: bool [N, 1] or [N], one for each row, or for each sequence of ``level``.
        level: the level whose sequences the mask splits; the levels above are dropped.

    Returns:
        (those marked True, the others); one of them may have no rows.

    Raises:
        OpTypeError: an argument is not a Variable.
        RuleError: the mask is not a bool for each row.

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

    Raises:
        OpTypeError: an argument is not a Variable.
        RuleError: the sides have rows of different shape or dtype.

    Example:
        >>> x, mask = fluid.layers.data("x", [3]), fluid.layers.data("y", [1], dtype="bool")
        >>> true, false = fluid.layers.split_lod_tensor(x, mask)
        >>> fluid.layers.merge_lod_tensor(true, false, x, mask).shape
        (-1, 3)

    Source: Fluid's merge_lod_tensor, which IfElse uses.
    """
    inputs = {"InTrue": in_true, "InFalse": in_false, "X": x, "Mask": mask}
    return one_op("merge_lod_tensor", inputs, {"level": level})
