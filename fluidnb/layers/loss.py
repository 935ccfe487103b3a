"""Losses: one number for each row, for `mean` or `reduce_sum` to join."""

from __future__ import annotations

from fluidnb.layers.one_op import one_op
from fluidnb.op import takes
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming


@naming.layer
def cross_entropy(input: Variable, label: Variable, soft_label: bool = False, ignore_index: int = -100) -> Variable:
    """Cross entropy of given probabilities: ``-log(input[label])``, or ``-sum(label · log(input))``.

    Args:
        input: probabilities [N, classes], for example from `softmax`.
        label: int64 [N, 1], the class of each row; with ``soft_label`` a distribution [N, classes].
        soft_label: whether labels are distributions.
        ignore_index: rows with this label have loss 0 and no gradient.

    Returns:
        The loss of each row, [N, 1].

    Example:
        >>> p, label = fluid.layers.data("p", [10]), fluid.layers.data("label", [1], dtype="int64")
        >>> fluid.layers.cross_entropy(p, label).shape
        (-1, 1)
    """
    attrs = {"soft_label": soft_label, "ignore_index": ignore_index}
    return one_op("cross_entropy", {"X": input, "Label": label}, attrs, slot="Y")


@naming.layer
@takes(input="float", label="float")
def square_error_cost(input: Variable, label: Variable) -> Variable:
    """Squared difference of prediction and target, element by element: ``(input - label)²``.

    Args:
        input: any shape, float.
        label: shape of ``input``.

    Returns:
        Shape of ``input``.

    Example:
        >>> y, t = fluid.layers.data("y", [1]), fluid.layers.data("t", [1])
        >>> fluid.layers.square_error_cost(input=y, label=t).op.type
        'square'
    """
    difference = one_op("elementwise_sub", {"X": input, "Y": label})
    return one_op("square", {"X": difference})
