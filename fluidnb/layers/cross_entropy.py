"""Losses of logits: the activation and the cross entropy in one step, which cannot overflow."""

from __future__ import annotations

from typing import Any

from fluidnb.layers.one_op import one_op
from fluidnb.layers.several import several
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = ["sigmoid_cross_entropy_with_logits", "softmax_with_cross_entropy"]


@naming.layer
def softmax_with_cross_entropy(
    logits: Variable,
    label: Variable,
    soft_label: bool = False,
    ignore_index: int = -100,
    numeric_stable_mode: bool = True,
    return_softmax: bool = False,
    axis: int = -1,
) -> Variable | tuple[Variable, Variable]:
    """Cross entropy of the softmax of logits: ``-log(softmax(logits)[label])``.

    Args:
        logits: any shape, float.
        label: int64 class numbers, size 1 along the axis; with ``soft_label`` distributions like the logits.
        soft_label: whether labels are distributions.
        ignore_index: rows with this label have loss 0 and no gradient.
        numeric_stable_mode: kept for old scripts; it always is stable.
        return_softmax: whether to give the probabilities too.
        axis: the axis of the classes, from the end when negative.

    Returns:
        The loss of each row, size 1 along the axis; with ``return_softmax`` (loss, probabilities).

    Raises:
        OpValueError: the labels do not fit the logits.

    Example:
        >>> x, label = fluid.layers.data("x", [10]), fluid.layers.data("label", [1], dtype="int64")
        >>> fluid.layers.softmax_with_cross_entropy(x, label).shape
        (-1, 1)

    Source: Fluid's layers.softmax_with_cross_entropy.
    """
    attrs: dict[str, Any] = {
        "soft_label": soft_label,
        "ignore_index": ignore_index,
        "numeric_stable_mode": numeric_stable_mode,
        "axis": axis,
    }
    outputs = {"Softmax": logits.dtype, "Loss": logits.dtype}
    softmax, loss = several("softmax_with_cross_entropy", {"Logits": logits, "Label": label}, outputs, attrs)
    return (loss, softmax) if return_softmax else loss


@naming.layer
def sigmoid_cross_entropy_with_logits(
    x: Variable, label: Variable, ignore_index: int = -100, name: str | None = None, normalize: bool = False
) -> Variable:
    """Cross entropy of the sigmoid of logits, element by element.

    Args:
        x: logits, any shape.
        label: probabilities of the shape of ``x``.
        ignore_index: elements with this label have loss 0 and no gradient.
        name: name of the layer.
        normalize: whether to divide by the number of elements that are not ignored.

    Returns:
        Shape of ``x``.

    Raises:
        OpValueError: the shapes differ.

    Example:
        >>> x, label = fluid.layers.data("x", [10]), fluid.layers.data("label", [10])
        >>> fluid.layers.sigmoid_cross_entropy_with_logits(x, label).shape
        (-1, 10)
    """
    attrs = {"ignore_index": ignore_index, "normalize": normalize}
    return one_op("sigmoid_cross_entropy_with_logits", {"X": x, "Label": label}, attrs, name=name)
